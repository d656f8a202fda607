"""The fast path beside vLLM V1's own code: the same requests, the same logits, one process, one thread, in turn.

pytest-benchmark times V1; in the setup of each of its rounds the fast path and the floor are timed.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

pytest.importorskip("vllm")

from v1_stages import NineProcessors, stages
from workload import (
    ALL,
    BUT_THE_LIST,
    FEW_TOKENS,
    HEAVY,
    LIGHT,
    NINE,
    PEAKED,
    PENALTIES,
    QUARTER,
    ROWS,
    VOCAB,
    churn,
    faults,
    filling,
    logits,
    pipeline,
    requests,
    seconds,
    sizes,
)

from logitsproc.conformance.bindings import vllm_binding

CASES: dict[str, tuple[tuple[str, ...], int]] = {
    **{stage: ((stage,), 1) for stage in ALL if stage not in PENALTIES},
    "penalties": (PENALTIES, 1),
    "all": (ALL, 1),
    "quarter": (ALL, QUARTER),
    "but_the_list": (BUT_THE_LIST, 1),
}
"""What requests ask for, and every how many of them. V1 has one function for all three penalties."""
ROUNDS, FAST_ROUNDS, UPDATE_ROUNDS = 5, 5, 100

Spent = defaultdict[str, list[float]]
"""Seconds of each round."""


@pytest.mark.parametrize("case", CASES)
def test_stage(benchmark: BenchmarkFixture, case: str) -> None:
    """The full size; what is asked of one stage, or of all."""
    asked, every = CASES[case]
    batch = requests(vllm_binding(), ROWS, VOCAB, asked, every)
    v1, fast = stages(vllm_binding(), batch), pipeline(VOCAB, ROWS)
    fast.update_state(filling(vllm_binding(), batch))
    given = logits(ROWS, VOCAB, PEAKED)
    work, spent = given.clone(), Spent(list)

    def in_turn() -> None:
        for _ in range(FAST_ROUNDS):
            work.copy_(given)
            spent["floor"].append(seconds(lambda: work.mul_(1.0)))
            spent["fast"].append(seconds(lambda: fast.apply(work)))
        work.copy_(given)

    kept = fast.apply(work).isfinite()
    alike = (v1.apply(work.copy_(given)).isfinite() == kept).all(1)
    benchmark.pedantic(lambda: v1.apply(work), setup=in_turn, rounds=ROUNDS)
    found = {"alike": int(alike.sum()), "faults": faults(lambda: v1.apply(work.copy_(given)))}
    benchmark.extra_info.update({name: min(times) for name, times in spent.items()} | found)


@pytest.mark.parametrize("size", [LIGHT, HEAVY])
def test_update(benchmark: BenchmarkFixture, size: str) -> None:
    """A step of the engine's told to nine processors of V1's, and to a pipeline whose requests ask nine stages.

    V1's pack what they need when they are told, and the pipeline when it is applied: so its first `apply` after the
    step is timed too, and a second one, on few tokens.
    """
    batch = requests(vllm_binding(), ROWS, FEW_TOKENS, NINE)
    nine, fast, v1 = NineProcessors(ROWS), pipeline(FEW_TOKENS, ROWS), stages(vllm_binding(), batch)
    step, back = churn(vllm_binding(), batch, *sizes(ROWS)[size])
    for each in (nine, fast):
        each.update_state(filling(vllm_binding(), batch))
        each.update_state(step)
    full, spent = logits(ROWS, FEW_TOKENS, PEAKED), Spent(list)
    left = full[: step.batch_size]

    def in_turn() -> None:
        for each in (nine, fast):
            each.update_state(back)
        fast.apply(full.clone())
        spent["fast"].append(seconds(lambda: fast.update_state(step)))
        for which in ("first", "again"):
            work = left.clone()
            spent[which].append(seconds(partial(fast.apply, work)))
        spent["metadata"].append(seconds(v1.rebuild))

    benchmark.pedantic(lambda: nine.update_state(step), setup=in_turn, rounds=UPDATE_ROUNDS)
    benchmark.extra_info.update({name: min(times) for name, times in spent.items()})
