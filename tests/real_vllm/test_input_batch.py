"""vLLM's InputBatch with its BatchUpdateBuilder as a producer, as it is and spoiled."""

from typing import Any

import pytest
from vllm.v1.worker.gpu_input_batch import InputBatch

from logitsproc.conformance import NotConformant, check_producer
from logitsproc.conformance.bindings import MAX_NUM_SEQS
from logitsproc.conformance.interface import SamplingParams
from logitsproc.conformance.producers import Coming, Schedule
from logitsproc.conformance.producers.reference import Elided
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.producers.vllm_input_batch import InputBatchSplits, InputBatchSwaps
from logitsproc.conformance.suite import CONFORMANT, TIERS, Settings, Tier

HISTORIES = 1000
SECONDS = 300
"""More than they take, so that time decides nothing."""
DESIGN_PAGE = (("A", "B", "C", "D"), ("E",))


class Indexed:
    """The batch's index of ids has to be its order at every step."""

    batch: InputBatch

    def rows(self) -> Any:
        order = {req_id: row for row, req_id in enumerate(self.batch.req_ids)}
        assert order == self.batch.req_id_to_index
        return super().rows()  # type: ignore[misc]


class Swaps(Indexed, InputBatchSwaps):
    """With the swaps that are asked for."""


class Splits(Indexed, InputBatchSplits):
    """With the swaps of the attention backends."""


@pytest.mark.parametrize("producer", [Swaps, Splits])
def test_it_keeps_every_clause(producer: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIERS, "quick", Tier(HISTORIES, 0, SECONDS))
    report = run_producer(Settings(load_producer(producer)))
    assert report.verdict == CONFORMANT
    assert {result.status for result in report.results} == {"held"}
    assert report.evidence.histories == HISTORIES
    assert report.note == "speaks the elided dialect"


def test_it_emits_the_worked_example_as_the_reference_producer_does() -> None:
    producers = InputBatchSwaps(MAX_NUM_SEQS, 8), Elided(MAX_NUM_SEQS, 8)
    binding = load_producer(InputBatchSwaps).binding
    emitted = []
    for producer in producers:
        make = binding.make_params if producer is producers[0] else lambda fields: SamplingParams(**fields)
        first, then = ([Coming(name, make({}), [1], []) for name in names] for names in DESIGN_PAGE)
        producer.step(Schedule(coming=tuple(first)))
        update = producer.step(Schedule(("A", "C"), tuple(then), ((0, 1),)))
        moved = [(source, to, direction.name) for source, to, direction in update.moved]
        emitted.append((update.batch_size, update.removed, [row for row, *_ in update.added], moved))
        assert [req_id for req_id, _ in producer.rows()] == ["B", "E", "D"]
    assert emitted[0] == emitted[1] == (3, [], [0], [(3, 2, "UNIDIRECTIONAL"), (0, 1, "SWAP")])


class ForgetsSwaps(InputBatchSwaps):
    """PROD-NONE, PROD-REPLAY: the builder is not told of the swaps; in a step that only reorders nothing is emitted."""

    def reorder(self, schedule: Schedule) -> None:
        told = list(self.batch.batch_update_builder.moved)
        super().reorder(schedule)
        self.batch.batch_update_builder.moved[:] = told


class ResetsInPlace(InputBatchSwaps):
    """PROD-UNCHANGED: the builder clears the lists that it handed over."""

    def step(self, schedule: Schedule) -> Any:
        if self.listener.last is not None:
            self.listener.last.added.clear()
        return super().step(schedule)


class DoesNotCondense(InputBatchSwaps):
    """PROD-CONTIGUOUS: holes stay."""

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        super().__init__(max_num_seqs, vocab_size)
        self.batch.condense = lambda: None

    def rows(self) -> Any:
        return list(zip(self.batch.req_ids, self.batch.req_output_token_ids, strict=True))


@pytest.mark.parametrize(
    ("producer", "clause"),
    [
        (ForgetsSwaps, "PROD-(NONE|REPLAY)"),
        (ResetsInPlace, "PROD-UNCHANGED"),
        (DoesNotCondense, "PROD-CONTIGUOUS"),
    ],
)
def test_a_spoiled_one_is_caught(producer: type, clause: str) -> None:
    with pytest.raises(NotConformant, match=f"breaks {clause}"):
        check_producer(producer)


def test_it_is_vllms_own() -> None:
    assert type(InputBatchSwaps(MAX_NUM_SEQS, 8).batch) is InputBatch
