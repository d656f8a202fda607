"""How a pipeline loads custom processors: it is built with some, and what was loaded, and applied, is looked at."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from logitsproc.conformance.bindings import CannotRun, Subject
from logitsproc.conformance.findings import CONFIG, Finding, class_name, import_line
from logitsproc.conformance.watch import WATCH

MODULE = "logitsproc_recorders"
GROUP = "vllm.logits_processors"
VOCAB = 8
Given = Sequence[type | str]
LOG: list[tuple[str, list[float]]] = []
"""Which processor was applied, and to which first row."""


class Recorder:
    """A processor that writes down that it was applied, and how often it was asked."""

    invariant = False

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.asked = 0
        BUILT.append(self)

    def is_argmax_invariant(self) -> bool:
        """The same answer every time; the times are counted."""
        self.asked += 1
        return self.invariant

    def update_state(self, batch_update: Any) -> None:
        """There is nothing to follow."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Writes down the first row."""
        LOG.append((type(self).__name__, logits[0].tolist()))
        return logits


BUILT: list[Recorder] = []


class NoProcessor:
    """Nothing that a logits processor has, but for the way it is built."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        pass


REFUSED: dict[str, type | str] = {
    "a class that is no logits processor": NoProcessor,
    "the name of a class that is no logits processor": f"{MODULE}:NoProcessor",
    "a name without a colon": MODULE,
    "a name with two colons": f"{MODULE}:First:Second",
    "a name that leads nowhere": f"{MODULE}:Missing",
    "a nested name that leads nowhere": f"{MODULE}:Outer.Missing",
    "the name of a function": f"{MODULE}:function",
    "a module that is not there": "logitsproc_no_such_module:First",
    "a module that raises when it is imported": f"{MODULE}_raising:First",
}


@contextmanager
def recorders(subject: Subject, plugins: Sequence[str] = ()) -> Iterator[ModuleType]:
    """A module of recorders for this host, and a distribution on the path whose entry points name these."""
    module: Any = ModuleType(MODULE)
    derived = subject.binding.derived
    for name, invariant in (("First", False), ("Second", False), ("Plugin", False), ("Always", True)):
        setattr(module, name, derived(type(name, (Recorder,), {"invariant": invariant})))
    module.Outer = type("Outer", (), {"Inner": derived(type("Inner", (Recorder,), {}))})
    module.NoProcessor, module.function = NoProcessor, recorders
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / f"{MODULE}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n")
        points = "\n".join(f"plugin{number} = {target}" for number, target in enumerate(plugins))
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (Path(folder) / f"{MODULE}_raising.py").write_text("raise RuntimeError('no such library')\n")
        sys.modules[MODULE] = module
        sys.path.insert(0, folder)
        try:
            yield module
        finally:
            sys.path.remove(folder)
            del sys.modules[MODULE]


def check_loading(subject: Subject) -> Iterator[Finding]:
    """LOAD-CLASS, LOAD-NAME, LOAD-ENTRY, LOAD-ORDER, LOAD-INVARIANT, LOAD-REFUSE: every way in, and every refusal."""
    with recorders(subject) as module:
        yield loads(subject, "LOAD-CLASS", [module.First], ["First"])
        yield loads(subject, "LOAD-NAME", [f"{MODULE}:First"], ["First"])
        yield loads(subject, "LOAD-NAME", [f"{MODULE}:Outer.Inner"], ["Inner"])
    with recorders(subject, [f"{MODULE}:Plugin"]) as module:
        yield loads(subject, "LOAD-ENTRY", None, ["Plugin"])
        given = [module.Second, f"{MODULE}:Always", module.First]
        yield loads(subject, "LOAD-ORDER", given, ["Plugin", "Second", "First", "Always"])
        yield built_ins_come_first(subject)
        yield asks_once(subject, given)
    for why, target in REFUSED.items():
        with recorders(subject):
            yield refuses(subject, why, [target], None)
    with recorders(subject, [f"{MODULE}:Missing"]):
        yield refuses(subject, "an entry point that leads nowhere", None, f"{MODULE}:Missing")
    with recorders(subject, [f"{MODULE}:NoProcessor"]):
        yield refuses(subject, "an entry point of a class that is no logits processor", None, f"{MODULE}:NoProcessor")


def loads(subject: Subject, clause: str, given: Given | None, names: list[str]) -> Finding:
    """LOAD-CLASS, LOAD-NAME, LOAD-ENTRY, LOAD-ORDER: these recorders are applied, each once and in this order."""
    try:
        applied = [name for name, _ in run_once(subject, given, {})]
    except Exception as error:
        return Finding(clause, f"{shown(given)} raised {type(error).__name__}: {error}", lines(subject, given))
    if applied == names:
        return Finding(clause)
    listed = ", ".join(applied) or "nothing"
    return Finding(clause, f"of {shown(given)} {listed} was applied, not {', '.join(names)}", lines(subject, given))


def built_ins_come_first(subject: Subject) -> Finding:
    """LOAD-ORDER: a built-in processor has worked when the first custom one is applied."""
    first = run_once(subject, None, {"logit_bias": {0: 5.0}})[0][1]
    trouble = None if first[0] == 5.0 else "logit bias had not been added when the first custom processor was applied"
    return Finding("LOAD-ORDER", trouble, lines(subject, None))


def asks_once(subject: Subject, given: Given) -> Finding:
    """LOAD-INVARIANT: is_argmax_invariant was called once on each instance, when the batch had run too."""
    run_once(subject, given, {})
    counts = {type(recorder).__name__: recorder.asked for recorder in BUILT}
    wrong = [f"{name} {count} times" for name, count in counts.items() if count != 1]
    trouble = f"is_argmax_invariant() was asked of {', '.join(wrong)}" if wrong else None
    return Finding("LOAD-INVARIANT", trouble, lines(subject, given))


def refuses(subject: Subject, why: str, given: Given | None, plugin: str | None) -> Finding:
    """LOAD-REFUSE: to build the pipeline raises an error."""
    note = f"{GROUP} = {plugin}" if plugin else shown(given)
    logging.disable()
    try:
        WATCH.call(subject.build_with, VOCAB, given)
    except Exception:
        return Finding("LOAD-REFUSE")
    finally:
        logging.disable(logging.NOTSET)
    return Finding("LOAD-REFUSE", f"{why} was let in: {note}", lines(subject, given))


def run_once(subject: Subject, given: Given | None, params: dict[str, Any]) -> list[tuple[str, list[float]]]:
    """One request that is not greedy, one step; what was applied to which row."""
    LOG.clear()
    BUILT.clear()
    made = subject.binding.make_params(params)
    update = subject.binding.batch_update(1, [], [(0, made, [1], [])], [])
    pipeline = WATCH.call(subject.build_with, VOCAB, given)
    WATCH.call(pipeline.update_state, update)
    WATCH.call(pipeline.apply, torch.zeros(1, VOCAB))
    return list(LOG)


def shown(given: Given | None) -> str:
    """The configuration's list."""
    names = [target if isinstance(target, str) else target.__name__ for target in given or ()]
    return f"logits_processors={names}"


def lines(subject: Subject, given: Given | None) -> tuple[str, ...]:
    """The construction as a script."""
    return (
        "import torch",
        CONFIG,
        import_line(subject),
        "",
        f"# {MODULE}: a module with these processors",
        f"config = host_config(vocab={VOCAB}, max_num_seqs=16, {shown(given)})",
        f"{class_name(subject)}(config, torch.device('cpu'), False)",
    )


def require_pipeline(subject: Subject) -> None:
    """Raises CannotRun for what takes no configuration with custom processors."""
    try:
        run_once(subject, None, {})
    except Exception as error:
        raise CannotRun(f"{subject.target} does not run as a pipeline: {type(error).__name__}: {error}") from error
