"""The fast path on one thread: each stage, the whole pipeline, its updates, and how all of that grows.

Every round has its logits anew, and beside it the floor is timed: one multiplication of all logits in place. So what is
said in floors belongs to one run, whatever else the machine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from workload import (
    ALL,
    BUT_THE_LIST,
    CPU,
    FEW_TOKENS,
    FLAT,
    HEAVY,
    LIGHT,
    NINE,
    PEAKED,
    PROCESSORS,
    QUARTER,
    ROWS,
    VOCAB,
    Update,
    churn,
    filling,
    logits,
    pipeline,
    requests,
    seconds,
    sizes,
)

from logitsproc.conformance.bindings import plain_binding
from logitsproc.conformance.interface import host_config
from logitsproc.optimized import pipeline as pipeline_module
from logitsproc.optimized import top_k, top_p
from logitsproc.optimized.pipeline import record
from logitsproc.optimized.table import Users

BINDING = plain_binding()
PIPELINES: dict[str, tuple[tuple[str, ...], int]] = {
    "all": (ALL, 1),
    "quarter": (ALL, QUARTER),
    "but_the_list": (BUT_THE_LIST, 1),
    "temperature_top_p": (("temperature", "top_p"), 1),
    "nothing": ((), 1),
}
"""Pipelines: what requests ask for, and every how many of them."""
CASES = (*PROCESSORS, *PIPELINES)
AS_A_WHOLE = ((pipeline_module, "cut_whole"), (top_p, "mask_tail"), (top_k, "kth_of_row"))
"""What is called for a row whose cut is not settled by its largest tokens."""
ROUNDS, SMALL_ROUNDS, GROWTH_ROUNDS, UPDATE_ROUNDS = 12, 300, 9, 120
SMALL = (1, 8)
GROWING = {"rows": [(rows, VOCAB) for rows in (1, 4, 16, 64)], "vocab": [(ROWS, 1000 * 2**n) for n in range(0, 7, 2)]}
STAGE_NUMBERS = (1, 3, 6, 9, 11)

Follow = Callable[[Update], None]


def subject(case: str, rows: int, vocab: int) -> Any:
    """The processor of one stage, or a pipeline, with a batch of so many rows."""
    stages, every = PIPELINES.get(case, ((case,), 1))
    made = pipeline(vocab, rows) if case in PIPELINES else PROCESSORS[case](host_config(vocab, rows), CPU, False)
    made.update_state(filling(BINDING, requests(BINDING, rows, vocab, stages, every)))
    return made


def measure(benchmark: BenchmarkFixture, case: str, rows: int, vocab: int, kind: str, rounds: int) -> None:
    """`apply`, with the floor and the number of rows that were looked at as a whole."""
    made, given = subject(case, rows, vocab), logits(rows, vocab, kind)
    work = given.clone()
    floors: list[float] = []

    def anew() -> None:
        work.copy_(given)
        floors.append(seconds(lambda: work.mul_(1.0)))

    benchmark.extra_info["whole"] = rows_as_a_whole(lambda: made.apply(work))
    benchmark.pedantic(lambda: made.apply(work), setup=anew, rounds=rounds)
    benchmark.extra_info["floor"] = min(floors)


def rows_as_a_whole(apply: Callable[[], object]) -> int:
    """How many rows are looked at as a whole, because their largest tokens do not settle them."""
    with ExitStack() as stack:
        spies = [
            stack.enter_context(patch.object(where, name, wraps=getattr(where, name))) for where, name in AS_A_WHOLE
        ]
        apply()
        return sum(spy.call_count for spy in spies)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [PEAKED, FLAT])
def test_stage(benchmark: BenchmarkFixture, kind: str, case: str) -> None:
    """The full size."""
    measure(benchmark, case, ROWS, VOCAB, kind, ROUNDS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", SMALL)
def test_small(benchmark: BenchmarkFixture, rows: int, case: str) -> None:
    """Batches so small that the calls take a good part of the time; in turn with one of few tokens, which is all calls.

    The time of one operation of torch's on few tokens is added.
    """
    made, few = subject(case, rows, VOCAB), subject(case, rows, FEW_TOKENS)
    given, given_few = logits(rows, VOCAB, PEAKED), logits(rows, FEW_TOKENS, PEAKED)
    work, work_few = given.clone(), given_few.clone()
    calls: list[float] = []
    operations: list[float] = []

    def in_turn() -> None:
        work_few.copy_(given_few)
        operations.append(seconds(lambda: work_few.mul_(1.0)))
        calls.append(seconds(lambda: few.apply(work_few)))
        work.copy_(given)

    benchmark.pedantic(lambda: made.apply(work), setup=in_turn, rounds=SMALL_ROUNDS, warmup_rounds=3)
    benchmark.extra_info.update(calls=min(calls), operation=min(operations))


@pytest.mark.parametrize("case", ["all", "quarter", "but_the_list"])
@pytest.mark.parametrize(("rows", "vocab"), [*GROWING["rows"], *GROWING["vocab"]])
def test_growth(benchmark: BenchmarkFixture, rows: int, vocab: int, case: str) -> None:
    """Fewer rows, and fewer tokens."""
    measure(benchmark, case, rows, vocab, PEAKED, GROWTH_ROUNDS)


def only_rows(stages: Iterable[str], rows: int) -> Follow:
    """The row table alone: nothing is kept of any request."""
    return Users(lambda params, prompt, output: None).follow


def records(stages: Iterable[str], rows: int) -> Follow:
    """The row table, and the record of each request that is added."""
    return Users(record).follow


def processors(stages: Iterable[str], rows: int) -> Follow:
    """A processor for each stage, each with a row table of its own."""
    made = [PROCESSORS[stage](host_config(VOCAB, rows), CPU, False) for stage in stages]

    def follow(update: Update) -> None:
        for each in made:
            each.update_state(update)

    return follow


def one_pipeline(stages: Iterable[str], rows: int) -> Follow:
    """One pipeline for all stages."""
    return pipeline(VOCAB, rows).update_state


FOLLOWERS: dict[str, Callable[[Iterable[str], int], Follow]] = {
    "rows": only_rows,
    "records": records,
    "processors": processors,
    "pipeline": one_pipeline,
}


def measure_update(benchmark: BenchmarkFixture, follower: str, stages: Iterable[str], rows: int, size: str) -> None:
    """A step of the engine's; between rounds the batch is filled again."""
    batch = requests(BINDING, rows, VOCAB, stages)
    follow = FOLLOWERS[follower](stages, rows)
    step, back = churn(BINDING, batch, *sizes(rows)[size])
    follow(filling(BINDING, batch))
    follow(step)
    benchmark.pedantic(lambda: follow(step), setup=lambda: follow(back), rounds=UPDATE_ROUNDS)


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("size", [LIGHT, HEAVY])
@pytest.mark.parametrize("rows", [4, 16, 64, 256])
def test_update(benchmark: BenchmarkFixture, rows: int, size: str, follower: str) -> None:
    """Nine stages, more and more rows."""
    measure_update(benchmark, follower, NINE, rows, size)


@pytest.mark.parametrize("follower", ["processors", "pipeline"])
@pytest.mark.parametrize("stages", STAGE_NUMBERS)
def test_update_stages(benchmark: BenchmarkFixture, stages: int, follower: str) -> None:
    """More and more stages, the last ones first."""
    measure_update(benchmark, follower, ALL[-stages:], ROWS, LIGHT)


@pytest.mark.parametrize("size", [LIGHT, HEAVY])
def test_first_apply(benchmark: BenchmarkFixture, size: str) -> None:
    """The first `apply` after an update, on few tokens; beside it is one after which nothing has changed."""
    batch, made, given = (
        requests(BINDING, ROWS, FEW_TOKENS, NINE),
        pipeline(FEW_TOKENS, ROWS),
        logits(ROWS, FEW_TOKENS, PEAKED),
    )
    step, back = churn(BINDING, batch, *sizes(ROWS)[size])
    made.update_state(filling(BINDING, batch))
    made.update_state(step)
    left = len(batch) - len(step.moved)
    again: list[float] = []

    def updated() -> tuple[tuple[torch.Tensor], dict[str, Any]]:
        again.append(seconds(partial(made.apply, given[:left].clone())))
        made.update_state(back)
        made.apply(given.clone())
        made.update_state(step)
        return (given[:left].clone(),), {}

    benchmark.pedantic(made.apply, setup=updated, rounds=UPDATE_ROUNDS)
    benchmark.extra_info["again"] = min(again[1:])
