"""Runs the suite on every mutant and with every seed: whether it dies, of which check, under which clause, how soon."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.history import History
from logitsproc.conformance.machine import BEYOND, REACHABLE, World
from logitsproc.conformance.mutants.derived import Mutant
from logitsproc.conformance.mutants.shortest import events, shortest
from logitsproc.conformance.plans import Case
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers.suite import ProducerRun
from logitsproc.conformance.suite import TIERS, Failure, Report, Run, Settings, Tier, conditions
from logitsproc.spec import clauses

T = TypeVar("T")
LIMIT = 0.2
"""Seconds that one call of a mutant may take."""
ELSEWHERE = Tier(20, 60, 18)
"""The quick tier less most reachable histories, for what shows in other worlds only; there it plays the same ones."""
SHORT = Tier(60, 30, 18)
"""For asking whether another check would have caught it too, and for producers, which are played in one world."""
BRIEF = Tier(8, 1, 18)
"""For what is seen in any history, or before there is one."""
LATER = tuple(world.name for world in BEYOND)
EVIDENCE = "evidence"
"""Where it is seen, when all is over, that a SHOULD is not met."""
NOT_RUN = "cannot run"


@dataclass(frozen=True)
class Kill:
    """What became of a mutant with one seed.

    `clauses`: those that were named; none, if it lives. `check`: where it was caught, and by what. `histories`: played
    until then, none for what is seen when all is over. `events`: of the history that is shown, if there is one that was
    made small, which is not done where a call hangs. `shown`: it, if an engine makes it.
    """

    seed: int
    clauses: tuple[str, ...] = ()
    check: str = ""
    histories: int = 0
    seconds: float = 0.0
    events: int = 0
    shown: History | None = None


@dataclass(frozen=True)
class Part:
    """What of a run is played: how much, all but the check that is named, the histories of one world only."""

    tier: Tier
    blind: str = ""
    world: str = ""


class PartialRun(Run):
    """A run of which a part is played."""

    def __init__(self, settings: Settings, part: Part) -> None:
        super().__init__(settings)
        self.tier, self.part = part.tier, part

    def looks(self) -> dict[str, Callable[[], Failure | None]]:
        return {stage: look for stage, look in super().looks().items() if not self.part.blind.startswith(f"{stage}: ")}

    def explore(self, world: World, histories: int) -> Failure | None:
        return super().explore(world, histories) if self.part.world in ("", world.name) else None

    def counts(self, world: World, case: Case, violation: Violation) -> bool:
        return self.part.blind != check(world.name, violation) and super().counts(world, case, violation)


def check(stage: str, violation: Violation) -> str:
    """`edges: rows`, `reachable: PROC-SHAPE`: the stage of a run, and the direct check or the comparison of rows."""
    return f"{stage}: {violation.clause or 'rows'}"


def attempt(mutant: Mutant, seed: int, part: Part) -> Kill:
    """One run on a mutant."""
    started = time.monotonic()
    try:
        with conditions(settings := settings_for(mutant, seed)):
            run = producer_run(settings, part.tier) if mutant.producer else PartialRun(settings, part)
            report = run.report()
    except CannotRun as refusal:
        return Kill(seed, (NOT_RUN,), str(refusal), seconds=time.monotonic() - started)
    kill = replace(told(seed, report), seconds=time.monotonic() - started)
    beyond = run.beyond_evidence.histories if isinstance(run, Run) else 0
    return kill if kill.check == EVIDENCE else replace(kill, histories=run.evidence.histories + beyond)


def settings_for(mutant: Mutant, seed: int) -> Settings:
    """The settings of a run on a mutant."""
    return Settings(mutant.subject(), mutant.kind, params=mutant.pool, seed=seed, limit=LIMIT)


def producer_run(settings: Settings, tier: Tier) -> ProducerRun:
    """A run on a producer."""
    run = ProducerRun(settings)
    run.histories = tier.histories
    return run


def at_first(mutant: Mutant) -> Part:
    """What is played with the first seed."""
    return Part(ELSEWHERE if mutant.elsewhere else TIERS["quick"])


def afterwards(mutant: Mutant, first: Kill) -> Part:
    """What is played with the other seeds, when it is known where the mutant shows."""
    stage = first.check.partition(":")[0]
    if stage in LATER:
        return Part(TIERS["quick"], world=stage)
    if stage == EVIDENCE:
        return Part(BRIEF, world=REACHABLE.name)
    if first.clauses and not any(clauses()[clause].is_must for clause in first.clauses if clause != NOT_RUN):
        return Part(SHORT if mutant.producer else ELSEWHERE)
    return at_first(mutant)


def told(seed: int, report: Report) -> Kill:
    """What a report says of a mutant: the clause that is broken, or those that are not met."""
    beyond = [seen.failure for seen in report.beyond if seen.failure is not None]
    failures = [report.failure] if report.failure is not None else beyond
    short = [] if report.failure else [each.clause.id for each in report.results if each.status == "not met"]
    found = tuple(dict.fromkeys((*(failure.clause.id for failure in failures), *short)))
    if not failures:
        return Kill(seed, found, EVIDENCE if found else "")
    shown, violation = failures[0].history, failures[0].violation
    kill = Kill(seed, found, check(failures[0].stage, violation))
    if violation.hangs:
        return kill
    return replace(kill, events=events(shown.steps), shown=shown if failures[0].world == REACHABLE else None)


@dataclass(frozen=True)
class Fate:
    """A mutant over all seeds.

    `only`: whether its check, with the first seed, is the only one that catches it. `shortest`: for each check the
    number of events of the shortest history known to show it.
    """

    kills: tuple[Kill, ...]
    only: bool = False
    shortest: Mapping[str, int] = field(default_factory=dict)


def fate(mutant: Mutant, seeds: range) -> Fate:
    """The mutant with every seed, and with the first once more without the check that caught it.

    Of one that lives by an argument the first seed is enough.
    """
    first = attempt(mutant, seeds[0], at_first(mutant))
    if not first.clauses and mutant.argument:
        return Fate((first,))
    part = afterwards(mutant, first)
    kills = (first, *(attempt(mutant, seed, part) for seed in seeds[1:]))
    return Fate(kills, bool(first.clauses) and is_alone(mutant, first), shortest_known(mutant, kills))


def is_alone(mutant: Mutant, kill: Kill) -> bool:
    """Whether no other check catches it."""
    return not mutant.producer and not attempt(mutant, kill.seed, Part(SHORT, blind=kill.check)).clauses


def shortest_known(mutant: Mutant, kills: Sequence[Kill]) -> dict[str, int]:
    """For each check the least events that any seed shows, or that any history has which is made of the same."""
    shown = sorted((kill for kill in kills if kill.events), key=lambda kill: -kill.events)
    return {kill.check: searched(mutant, kill) for kill in {kill.check: kill for kill in shown}.values()}


def searched(mutant: Mutant, kill: Kill) -> int:
    """The events of the shortest history that is made of the same as the shown one, and shows the same."""
    if kill.shown is None or mutant.producer:
        return kill.events
    with conditions(settings := settings_for(mutant, kill.seed)):
        return shortest(Run(settings), kill.shown)


def fates(mutants: list[Mutant], seeds: range, jobs: int) -> Iterator[Fate]:
    """The fates of all mutants, in their order."""
    return over_all(partial(fate, seeds=seeds), mutants, jobs)


def over_all(found: Callable[[Mutant], T], mutants: list[Mutant], jobs: int) -> Iterator[T]:
    """What is found of every mutant, in their order; of several at a time each has a process of its own."""
    if jobs == 1:
        yield from map(found, mutants)
        return
    MUTANTS[:] = mutants
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(partial(numbered, found), range(len(mutants)), chunksize=1)


MUTANTS: list[Mutant] = []
"""What a forked process finds by number; classes that were made at run time cannot be sent."""


def numbered(found: Callable[[Mutant], T], number: int) -> T:
    """What is found of a mutant, by its number."""
    return found(MUTANTS[number])
