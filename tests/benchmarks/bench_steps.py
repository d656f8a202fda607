"""Steps checked a second for min-p at 4 rows and 64 tokens, with all that the quick tier does to a step.

The profile comes from the same histories, played once more with a clock around each part, so that its shares belong to
one run.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from logitsproc.conformance import suite
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.evidence import Evidence
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.machine import MAX_ROWS, REACHABLE, Draw, Drive, explore
from logitsproc.conformance.player import Player
from logitsproc.conformance.watch import Watch

HISTORIES = 150
ROUNDS = 9
VOCAB = 64
TARGET = "logitsproc.optimized:MinPLogitsProcessor"
KIND = KINDS["min_p"]


def play(run: suite.Run) -> int:
    """Plays the histories as the quick tier does, at 4 rows and 64 tokens; gives the number of steps."""
    assert MAX_ROWS == 4
    chance = random.Random(0)
    run.evidence = Evidence()
    judged = suite.Judged(run, run.evidence)
    draw = Draw(KIND.users(chance), KIND.others(chance), (VOCAB,), KIND.field, wide=False)
    drive = Drive(partial(Player, run.settings.subject), REACHABLE, draw, judged.step, judged.begin)
    explore(drive, HISTORIES, 0)
    return run.evidence.steps


def clocked(spent: Counter[str], part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its time added to a part."""

    def timed(*arguments: Any) -> Any:
        start = perf_counter()
        try:
            return function(*arguments)
        finally:
            spent[part] += perf_counter() - start

    return timed


def profile(run: suite.Run) -> dict[str, float]:
    """Seconds for each part of one play."""
    spent: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "call", clocked(spent, "subject", Watch.call))
        patch.setattr(Player, "play", clocked(spent, "play", Player.play))
        patch.setattr(suite, "judge", clocked(spent, "judge", suite.judge))
        patch.setattr(Evidence, "step", clocked(spent, "count", Evidence.step))
        patch.setattr(suite, "witness", clocked(spent, "witness", suite.witness))
        start = perf_counter()
        play(run)
        whole = perf_counter() - start
    spent["play"] -= spent["subject"]
    return dict(spent) | {"draw": whole - spent.total()}


def test_steps(benchmark: BenchmarkFixture) -> None:
    """All that the quick tier does to a step."""
    torch.set_num_threads(1)
    run = suite.Run(suite.Settings(load_subject(TARGET), KIND, seconds=3600))
    benchmark.extra_info["steps"] = play(run)
    benchmark.pedantic(play, args=(run,), rounds=ROUNDS, iterations=1)
    profiles = [profile(run) for _ in range(ROUNDS)]
    benchmark.extra_info["profile"] = min(profiles, key=lambda parts: sum(parts.values()))
