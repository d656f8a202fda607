"""A process for each mutant, forked from one that has imported everything but logitsproc."""

from __future__ import annotations

import compileall
import gc
import importlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from changes import Mutant
from killers import ROOMS, Killer, killers_of, look

FORK = get_context("fork")
LIBRARIES = (
    "torch",
    "numpy",
    "pytest",
    "_pytest.pytester",
    "hypothesis.stateful",
    "hypothesis.strategies",
    "rich.table",
    "rich.progress",
    "typer",
    "junitparser",
    "z3",
)
PATIENCE = 600
"""How many seconds a look may take on the clock: more than all its killers' time, for what waits without end."""

Killers = Callable[[str], tuple[Killer, ...]]
"""The killers of a file's mutants, in their turn."""


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: which killer noticed it, and what that said. Both are empty when it survived."""

    killer: str
    by: str


@dataclass
class Look:
    """A process that looks at a mutant, or at the file as it is, and where it was when it was last heard of."""

    job: Mutant | str
    copy: Path
    process: BaseProcess
    pipe: Connection
    started: float = field(default_factory=time.monotonic)
    killer: str = "import"
    target: str = ""

    def hear(self) -> Fate | None:
        """Takes one message; gives the fate when it is the last one."""
        try:
            what, *said = self.pipe.recv()
        except EOFError:
            return self.ended()
        if what == "at":
            self.killer, self.target = said
            return None
        return Fate("", "") if what == "survived" else Fate(self.killer, said[0].replace(f"{self.copy}{os.sep}", ""))

    def ended(self) -> Fate:
        """The fate of what ended without a word: it computed too long, or brought its process down."""
        self.process.join()
        if self.process.exitcode in (-signal.SIGPROF, -signal.SIGKILL):
            return Fate("timeout", f"{self.killer} {self.target}")
        return Fate(self.killer, f"{self.target}: the process ended with {self.process.exitcode}")

    def close(self) -> None:
        """Ends what is left of the process, and its copy."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        shutil.rmtree(self.copy)


@contextmanager
def tree(root: Path) -> Iterator[Path]:
    """A copy of the tree in a folder of its own, laid out as it is installed; copies of it are made beside it."""
    with TemporaryDirectory(prefix="logitsproc-mutants-") as folder:
        base, ignored = Path(folder) / "tree", shutil.ignore_patterns("__pycache__")
        for room, name in ROOMS.items():
            shutil.copytree(root / room, base / "logitsproc" / name, ignore=ignored)
        shutil.copytree(root / "tests", base / "tests", ignore=ignored)
        shutil.copy(root / "pyproject.toml", base)
        compileall.compile_dir(base, quiet=2)
        yield base


def judged(
    base: Path, jobs: Iterable[Mutant | str], at_once: int, killers: Killers = killers_of
) -> Iterator[tuple[Mutant | str, Fate]]:
    """Every job with its fate, as they come: a mutant, or a file that is looked at as it is."""
    import_libraries()
    waiting, numbers = iter(jobs), count()
    running: list[Look] = []
    while True:
        while len(running) < at_once and (job := next(waiting, None)) is not None:
            running.append(start(base, base.parent / str(next(numbers)), job, killers))
        if not running:
            return
        for each, fate in heard(running):
            running.remove(each)
            each.close()
            yield each.job, fate


def heard(running: Sequence[Look]) -> Iterator[tuple[Look, Fate]]:
    """Waits for messages; gives the looks that are over. One that is too long on the clock is ended."""
    for each in running:
        if time.monotonic() - each.started > PATIENCE:
            each.process.kill()
    pipes = wait([each.pipe for each in running], timeout=PATIENCE / 10)
    for each in running:
        if each.pipe in pipes and (fate := each.hear()) is not None:
            yield each, fate


def import_libraries() -> None:
    """All that the killers import, once; memory is then left alone, so that it stays shared."""
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()


def start(base: Path, copy: Path, job: Mutant | str, killers: Killers) -> Look:
    """Starts the look at a job."""
    file = job if isinstance(job, str) else job.file
    shutil.copytree(base, copy, copy_function=os.link)
    if isinstance(job, Mutant):
        put(copy / "logitsproc" / file, job.text)
    hears, tells = FORK.Pipe(duplex=False)
    process = FORK.Process(target=look, args=(copy, killers(file), tells.send), daemon=True)
    process.start()
    tells.close()
    return Look(job, copy, process, hears)


def put(path: Path, text: str) -> None:
    """Another text in place of the file, which is a link, and of the bytecode of the old one."""
    path.unlink()
    path.write_text(text, encoding="utf-8")
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        stale.unlink()
