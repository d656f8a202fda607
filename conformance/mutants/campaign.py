"""Runs the suite on every mutant and with every seed: whether it dies, of which check, under which clause, how soon."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.machine import World
from logitsproc.conformance.mutants.derived import Mutant
from logitsproc.conformance.notation import format_step
from logitsproc.conformance.plans import Case
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers.suite import ProducerRun
from logitsproc.conformance.suite import TIERS, Failure, Report, Run, Settings, Tier, conditions

LIMIT = 0.5
"""Seconds that one call of a mutant may take."""
ELSEWHERE = Tier(20, 60, 18)
"""The quick tier less most reachable histories, for what shows in other worlds only; there it plays the same ones."""
SHORT = Tier(60, 30, 18)
"""For asking whether another check would have caught it too."""
NOT_RUN = "cannot run"


@dataclass(frozen=True)
class Kill:
    """What became of a mutant with one seed.

    `clauses`: those that were named; none, if it lives. `check`: where it was caught, and by what. `histories`: played
    until then. `events`: of the history that is shown.
    """

    seed: int
    clauses: tuple[str, ...] = ()
    check: str = ""
    histories: int = 0
    seconds: float = 0.0
    events: int = 0


class Blind(Run):
    """A run without one of its checks."""

    def __init__(self, settings: Settings, blind: str) -> None:
        super().__init__(settings)
        self.blind = blind

    def looks(self) -> dict[str, Callable[[], Failure | None]]:
        return {stage: look for stage, look in super().looks().items() if not self.blind.startswith(f"{stage}: ")}

    def counts(self, world: World, case: Case, violation: Violation) -> bool:
        return self.blind != check(world.name, violation) and super().counts(world, case, violation)


def check(stage: str, violation: Violation) -> str:
    """`edges: rows`, `reachable: PROC-SHAPE`: the stage of a run, and the direct check or the comparison of rows."""
    return f"{stage}: {violation.clause or 'rows'}"


def attempt(mutant: Mutant, seed: int, blind: str = "") -> Kill:
    """One run of the quick tier on a mutant; `blind`: the check that is left out."""
    settings = Settings(mutant.subject(), mutant.kind, params=mutant.pool, seed=seed, limit=LIMIT)
    tier, started = tier_for(mutant, bool(blind)), time.monotonic()
    run: Blind | ProducerRun
    try:
        with conditions(settings):
            if mutant.producer:
                run = ProducerRun(settings)
                run.histories = tier.histories
            else:
                run = Blind(settings, blind)
                run.tier = tier
            report = run.report()
    except CannotRun as refusal:
        return Kill(seed, (NOT_RUN,), str(refusal), seconds=time.monotonic() - started)
    beyond = run.beyond_evidence.histories if isinstance(run, Run) else 0
    seconds = time.monotonic() - started
    return replace(told(seed, report), histories=run.evidence.histories + beyond, seconds=seconds)


def tier_for(mutant: Mutant, short: bool) -> Tier:
    """How much is played."""
    if short:
        return SHORT
    return ELSEWHERE if mutant.elsewhere else TIERS["quick"]


def told(seed: int, report: Report) -> Kill:
    """What a report says of a mutant: the clause that is broken, or those that are not met."""
    beyond = [seen.failure for seen in report.beyond if seen.failure is not None]
    failures = [report.failure] if report.failure is not None else beyond
    short = [] if report.failure else [each.clause.id for each in report.results if each.status == "not met"]
    found = tuple(dict.fromkeys((*(failure.clause.id for failure in failures), *short)))
    if not failures:
        return Kill(seed, found, "evidence" if found else "")
    events = sum(format_step(step).count(";") + 1 for step in failures[0].history.steps)
    return Kill(seed, found, check(failures[0].stage, failures[0].violation), events=events)


@dataclass(frozen=True)
class Fate:
    """A mutant over all seeds. `only`: whether its check, with the first seed, is the only one that catches it."""

    kills: tuple[Kill, ...]
    only: bool


def fate(mutant: Mutant, seeds: range) -> Fate:
    """The mutant with every seed, and with the first once more without the check that caught it.

    Of one that lives by an argument the first seed is enough.
    """
    first = attempt(mutant, seeds[0])
    lives = not first.clauses and bool(mutant.argument)
    kills = (first, *(attempt(mutant, seed) for seed in (() if lives else seeds[1:])))
    alone = bool(first.clauses) and not mutant.producer and not attempt(mutant, first.seed, first.check).clauses
    return Fate(kills, alone)


def fates(mutants: list[Mutant], seeds: range, jobs: int) -> Iterator[Fate]:
    """All mutants, some at the same time, in their order; each in a process of its own, if not one after the other."""
    if jobs == 1:
        yield from (fate(mutant, seeds) for mutant in mutants)
        return
    MUTANTS[:] = mutants
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(numbered, [(number, seeds) for number in range(len(mutants))], chunksize=1)


MUTANTS: list[Mutant] = []
"""What a forked process finds by number; classes that were made at run time cannot be sent."""


def numbered(task: tuple[int, range]) -> Fate:
    """The fate of a mutant by its number."""
    number, seeds = task
    return fate(MUTANTS[number], seeds)
