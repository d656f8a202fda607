"""Steps checked a second, and wrong processors caught a second, with all that the quick tier does.

Steps have 4 rows and 64 tokens; a producer's have the suite's own sizes. Those of min-p are played once more with a
clock around each part, so that the shares belong to one run. Every round has an oracle of its own, as a run has, since
an oracle remembers what it has said.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import pytest
from clocks import clocked
from kills import SEEDS, VICTIMS, kill_all, quickest
from pytest_benchmark.fixture import BenchmarkFixture

from logitsproc.conformance import suite
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.evidence import Evidence
from logitsproc.conformance.kinds import KINDS, Kind
from logitsproc.conformance.machine import MAX_ROWS, REACHABLE, SCHEDULES, Draw, Drive, explore
from logitsproc.conformance.player import Player
from logitsproc.conformance.producers.player import ProducerPlayer
from logitsproc.conformance.producers.suite import ProducerRun, load_producer
from logitsproc.conformance.watch import Watch

HISTORIES = 150
ROUNDS = 9
KILL_ROUNDS = 3
VOCAB = 64
HOUR = 3600
MIN_P = "logitsproc.optimized:MinPLogitsProcessor"
PIPELINE = "logitsproc.optimized:Pipeline"
PRODUCER = "logitsproc.conformance.producers.reference:Elided"


@dataclass
class Steps:
    """A subject whose steps are judged as the quick tier does: plays the histories, and gives the number of steps."""

    settings: suite.Settings
    play: Callable[[], int]

    def conditions(self) -> AbstractContextManager[None]:
        """What holds during a run."""
        return suite.conditions(self.settings)


def processor(target: str, kind: Kind, is_known: bool) -> Steps:
    """A processor with params of the kind, judged by the reference, or by the solo law if it is not known."""
    assert MAX_ROWS == 4
    chance = random.Random(0)
    draw = Draw(kind.users(chance), kind.others(chance), (VOCAB,), kind.field, wide=False)
    run = suite.Run(suite.Settings(load_subject(target), kind if is_known else None, seconds=HOUR))

    def play() -> int:
        run.evidence, run.oracle = Evidence(), suite.make_oracle(run.settings)
        judged = suite.Judged(run, run.evidence)
        drive = Drive(partial(Player, run.settings.subject), REACHABLE, draw, judged.step, judged.begin)
        explore(drive, HISTORIES, 0)
        return run.evidence.steps

    return Steps(run.settings, play)


def producer(target: str) -> Steps:
    """A producer."""
    run = ProducerRun(suite.Settings(load_producer(target), seconds=HOUR))

    def play() -> int:
        run.evidence = Evidence()
        player = partial(ProducerPlayer, run.settings.subject)
        explore(Drive(player, SCHEDULES, run.draw, run.judge, run.begin, run.counts, run.finish), HISTORIES, 0)
        return run.evidence.steps

    return Steps(run.settings, play)


SUBJECTS: dict[str, Callable[[], Steps]] = {
    "min_p": lambda: processor(MIN_P, KINDS["min_p"], is_known=True),
    "solo": lambda: processor(MIN_P, KINDS["min_p"], is_known=False),
    "pipeline": lambda: processor(PIPELINE, KINDS["pipeline"], is_known=True),
    "producer": lambda: producer(PRODUCER),
}


def profile(play: Callable[[], int]) -> dict[str, float]:
    """Seconds for each part of one play."""
    spent: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "call", clocked(spent, "subject", Watch.call))
        patch.setattr(Player, "play", clocked(spent, "play", Player.play))
        patch.setattr(suite, "judge", clocked(spent, "judge", suite.judge))
        patch.setattr(Evidence, "step", clocked(spent, "count", Evidence.step))
        patch.setattr(suite, "witness", clocked(spent, "witness", suite.witness))
        start = perf_counter()
        play()
        whole = perf_counter() - start
    spent["play"] -= spent["subject"]
    return dict(spent) | {"draw": whole - spent.total()}


@pytest.mark.parametrize("name", SUBJECTS)
def test_steps(benchmark: BenchmarkFixture, name: str) -> None:
    """All that the quick tier does to a step."""
    subject = SUBJECTS[name]()
    with subject.conditions():
        benchmark.extra_info["steps"] = subject.play()
        benchmark.pedantic(subject.play, rounds=ROUNDS, iterations=1)
        if name == "min_p":
            profiles = [profile(subject.play) for _ in range(ROUNDS)]
            benchmark.extra_info["profile"] = min(profiles, key=lambda parts: sum(parts.values()))


def test_kills(benchmark: BenchmarkFixture) -> None:
    """Whole runs of wrong processors, up to the report."""
    rounds = []
    benchmark.pedantic(lambda: rounds.append(kill_all()), rounds=KILL_ROUNDS, iterations=1, warmup_rounds=1)
    benchmark.extra_info["kills"] = quickest(rounds)
    benchmark.extra_info["victims"], benchmark.extra_info["seeds"] = len(VICTIMS), len(SEEDS)
