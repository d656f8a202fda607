"""What is shown of vLLM's own code: every small step of its input batch is the reference's, and spoiled ones differ."""

import pytest
from test_input_batch import DoesNotCondense, ForgetsSwaps

from logitsproc.proofs import input_batch
from logitsproc.proofs.exhaustive import judged, looked
from logitsproc.proofs.statement import EXHAUSTIVE, code_with
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL

AT_LEAST = 10_000
AT_LEAST_MOVED = 1_000


def test_every_small_step_of_the_input_batch_is_the_references(capsys: pytest.CaptureFixture[str]) -> None:
    result = judged(input_batch.CHECK)
    moved = [{how for _, _, how in update.moved} if update else set() for update in input_batch.emitted()]
    swaps, one_way = (sum(how in ways for ways in moved) for how in (SWAP, UNIDIRECTIONAL))
    with capsys.disabled():
        print(f"\n{result.count} {result.unit}, {swaps} with a swap, {one_way} with one-way moves: {result.verdict}")
    assert result.troubles == ()
    assert result.verdict == EXHAUSTIVE
    assert result.refuted == result.planted
    assert result.count == len(moved) >= AT_LEAST
    assert min(swaps, one_way) >= AT_LEAST_MOVED


@pytest.mark.parametrize("spoiled", [ForgetsSwaps, DoesNotCondense])
def test_a_spoiled_input_batch_differs(spoiled: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_batch, "InputBatchSwaps", spoiled)
    _, trouble = looked(input_batch.cases(code_with()))
    assert trouble is not None
