"""What may notice a mutant, and one look at it: in a process of its own, on a copy of the tree.

Nothing here imports logitsproc before the process has the copy first on its path.
"""

from __future__ import annotations

import doctest
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOMS = {
    "spec": "spec",
    "reference": "reference",
    "conformance": "conformance",
    "optimized": "optimized",
    "tests/proofs": "proofs",
}
"""Where the packages stand, and what they are called."""
SECONDS = {"import": 20, "doctests": 10, "tests": 60, "suite": 180, "lemmas": 60, "cases": 60}
"""How long a killer may compute, in seconds of its processor's time; a mutant that takes longer has no end."""
KINDS = {
    "allowed_token_ids": "AllowedTokenIds",
    "bad_words": "BadWords",
    "min_tokens": "MinTokens",
    "logit_bias": "LogitBias",
    "repetition_penalty": "RepetitionPenalty",
    "frequency_penalty": "FrequencyPenalty",
    "presence_penalty": "PresencePenalty",
    "temperature": "Temperature",
    "min_p": "MinP",
    "top_k": "TopK",
    "top_p": "TopP",
}


class Killer(NamedTuple):
    """A doctest's module, a test's file, a right subject of the suite's with its kind (None: a producer), or names of
    lemmas or of exhaustive checks, with blanks between.
    """

    name: str
    target: str
    kind: str | None = None


def tests_in(name: str) -> Killer:
    """The tests of one file."""
    return Killer("tests", f"tests/test_{name}.py")


def fast(kind: str) -> Killer:
    """The suite on the fast path's processor of a kind."""
    names = {"pipeline": "Pipeline", "adapter": "AdapterLogitsProcessor"}
    name = names.get(kind) or f"{KINDS[kind]}LogitsProcessor"
    return Killer("suite", f"logitsproc.optimized:{name}", kind)


def control(module: str, name: str, kind: str) -> Killer:
    """The suite on one of the right processors that its miniatures are spoiled copies of."""
    return Killer("suite", f"logitsproc.conformance.miniatures.{module}:{name}", kind)


def producer(name: str) -> Killer:
    """The suite on an adapter of the reference producer."""
    return Killer("suite", f"logitsproc.conformance.producers.reference:{name}")


REFERENCE, PRODUCERS, FINDINGS = tests_in("reference"), tests_in("producers"), tests_in("findings")
PIPELINE = fast("pipeline")
OF_REFERENCE: dict[str, tuple[Killer, ...]] = {
    "batch": (REFERENCE, producer("Explicit"), PIPELINE),
    "expectation": (REFERENCE, fast("top_p"), PIPELINE),
    "loading": (REFERENCE, FINDINGS, control("adapters", "Adapter", "adapter"), PIPELINE),
    "numerics": (REFERENCE, fast("repetition_penalty"), fast("frequency_penalty"), PIPELINE),
    "pipeline": (REFERENCE, control("pipelines", "Pipeline", "pipeline"), PIPELINE),
    "processor": (REFERENCE, fast("min_p"), PIPELINE),
    "producer": (REFERENCE, producer("Elided"), producer("Explicit"), PRODUCERS),
    "request": (REFERENCE, fast("min_p"), producer("Elided")),
    "validation": (REFERENCE, FINDINGS, control("validators", "ValidatedBias", "logit_bias"), PIPELINE),
}
OF_OPTIMIZED: dict[str, tuple[Killer, ...]] = {
    "table": (
        fast("min_tokens"),
        fast("presence_penalty"),
        fast("pipeline"),
        tests_in("row_table"),
        tests_in("optimized"),
    ),
    "processor": (fast("min_p"), fast("min_tokens"), tests_in("optimized"), tests_in("optimized_loading")),
    "packing": (fast("min_tokens"), fast("logit_bias"), fast("pipeline"), tests_in("optimized")),
    "domains": (fast("pipeline"), fast("repetition_penalty"), tests_in("optimized"), tests_in("pipeline")),
    "adapter": (fast("adapter"), tests_in("optimized_loading"), tests_in("optimized")),
    "loading": (fast("pipeline"), tests_in("optimized_loading"), tests_in("pipeline")),
    "seen": (fast("frequency_penalty"), fast("repetition_penalty"), fast("pipeline"), tests_in("optimized")),
}


LEMMAS_OF = {
    "optimized/table.py": (
        "base remove add move swap users_remove users_add users_move users_swap follows_in_order",
        "states updates",
    ),
    "reference/batch.py": (
        "remove add move swap shrink follows_in_order none_changes_nothing refuses_what_it_cannot never_cuts_a_request "
        "gather_add orders_agree",
        "updates reachable",
    ),
    "reference/producer.py": ("trims condenses_once condenses steps dialects_agree", "reachable"),
}
"""What proves something of the code under proof: lemmas, and exhaustive checks for what no lemma runs."""


def provers_of(file: str) -> tuple[Killer, ...]:
    """What may refute a mutant of a file that is under proof: lemmas first."""
    lemmas, cases = LEMMAS_OF[file]
    known = Killer("import", ".".join(("logitsproc", *Path(file).with_suffix("").parts)))
    return known, Killer("lemmas", lemmas), Killer("cases", cases)


def killers_of(file: str) -> tuple[Killer, ...]:
    """The killers of a file's mutants in their turn: of the reference the suite comes last, of the fast path first."""
    path = Path(file).with_suffix("")
    module = ".".join(("logitsproc", *path.parts)).removesuffix(".__init__")
    known, doctests = Killer("import", module), Killer("doctests", module)
    if path.parts[0] == "optimized":
        return known, *OF_OPTIMIZED[path.name], doctests
    if path.name in KINDS:
        return known, doctests, REFERENCE, fast(path.name), PIPELINE
    return known, doctests, *OF_REFERENCE.get(path.name, ())


def look(copy: Path, killers: tuple[Killer, ...], send: Callable[[tuple[str, ...]], None]) -> None:
    """Tries the killers on the copy until one notices: sends ("at", name, target) before each, ("noticed", what) last.

    Sends ("survived",) when none does. To be called in a process of its own.
    """
    settle(copy)
    for killer in killers:
        send(("at", killer.name, killer.target))
        signal.setitimer(signal.ITIMER_PROF, SECONDS[killer.name])
        if found := noticed_by(killer):
            send(("noticed", found))
            return
    send(("survived",))


def settle(copy: Path) -> None:
    """The copy first on the path and as the working directory, nothing on the screen, no bytecode written."""
    sys.path[:0] = [str(copy), str(copy / "tests")]
    sys.dont_write_bytecode = True
    os.chdir(copy)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    limit_memory()


def limit_memory() -> None:
    """2 GiB more than the process has now, so that a list without end is an error."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (2 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def noticed_by(killer: Killer) -> str:
    """What the killer finds, or nothing."""
    try:
        return LOOKS[killer.name](killer)
    except BaseException as error:
        return f"{type(error).__name__} in {killer.target}"


def imported(killer: Killer) -> str:
    """Nothing, when the module can be imported and is the copy's."""
    module = importlib.import_module(killer.target)
    assert str(module.__file__).startswith(f"{Path.cwd()}{os.sep}")
    return ""


def doctested(killer: Killer) -> str:
    """The first example of the module that fails."""
    failed: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    module = importlib.import_module(killer.target)
    for each in doctest.DocTestFinder().find(module):
        if runner.run(each, out=failed.append).failed:
            return each.name
    return ""


class FirstFailure:
    """What pytest says of the first test that fails."""

    def __init__(self) -> None:
        self.node = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test."""
        if report.failed:
            self.node = self.node or report.nodeid

    pytest_collectreport = pytest_runtest_logreport


def tested(killer: Killer) -> str:
    """The first test of the file that fails."""
    first = FirstFailure()
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", killer.target], plugins=[first])
    return (first.node or f"pytest ends with {int(status)}") if status else ""


def suited(killer: Killer) -> str:
    """What the suite's report says of a right subject, other than that every clause holds."""
    from logitsproc.conformance import kinds
    from logitsproc.conformance.bindings import CannotRun, load_subject
    from logitsproc.conformance.producers.suite import load_producer, run_producer
    from logitsproc.conformance.suite import ENOUGH_BEYOND, TIERS, Settings, Tier, run

    TIERS["quick"] = Tier(100, ENOUGH_BEYOND, 90)
    try:
        if killer.kind is None:
            report = run_producer(Settings(load_producer(killer.target)))
        else:
            report = run(Settings(load_subject(killer.target), kinds.KINDS[killer.kind]))
    except CannotRun as error:
        return f"{killer.target}: {error}"
    bad = [result.clause.id for result in report.results if result.status in ("broken", "unproven", "not met")]
    incomplete = not all(beyond.complete for beyond in report.beyond)
    if bad or incomplete or report.exit_status:
        return f"{killer.target}: {report.verdict}{', incomplete' * incomplete} {' '.join(bad)}".rstrip()
    return ""


def proved(killer: Killer) -> str:
    """The first lemma that the code does not have, and a counterexample."""
    from logitsproc.proofs.lemmas import LEMMAS
    from logitsproc.proofs.prove import explored

    for name in killer.target.split():
        outcome = explored(LEMMAS[name])
        if outcome.refuted or outcome.unknown:
            return f"{name}: {outcome.refuted or outcome.unknown}"
    return ""


def looked_at(killer: Killer) -> str:
    """The first case of an exhaustive check that differs."""
    from logitsproc.proofs.exhaustive import CHECKS, looked, miscounted
    from logitsproc.proofs.statement import code_with

    checks = {check.name: check for check in CHECKS}
    for name in killer.target.split():
        count, trouble = looked(checks[name].cases(code_with()))
        if found := trouble or miscounted(checks[name], count):
            return f"{name}: {found}"
    return ""


LOOKS: dict[str, Callable[[Killer], str]] = {
    "import": imported,
    "doctests": doctested,
    "tests": tested,
    "suite": suited,
    "lemmas": proved,
    "cases": looked_at,
}
