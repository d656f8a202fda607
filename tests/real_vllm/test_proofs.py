"""What is shown of vLLM's own code: every small step of its input batch is the reference's, and spoiled ones differ."""

import pytest
from test_input_batch import DoesNotCondense, ForgetsSwaps

from logitsproc.proofs import input_batch, with_vllm
from logitsproc.proofs.exhaustive import judged, looked
from logitsproc.proofs.lemmas import LEMMAS
from logitsproc.proofs.prove import proved, refutes, statements
from logitsproc.proofs.statement import EXHAUSTIVE, PROVED, code_with
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL

AT_LEAST = 10_000
AT_LEAST_MOVED = 1_000


LEMMA = LEMMAS[with_vllm.vllm_dictionary.__name__]


def test_the_helper_keeps_the_states_of_disjoint_updates(capsys: pytest.CaptureFixture[str]) -> None:
    result = proved(LEMMA)
    with capsys.disabled():
        print(f"\n{result.name}: {result.verdict}, {result.count} {result.unit}")
    assert result.troubles == ()
    assert (result.verdict, result.refuted) == (PROVED, result.planted)


def test_the_helper_loses_a_request_whose_row_is_removed_and_added_in_one_update() -> None:
    story = refutes(LEMMA, LEMMA.planted[0]).refuted
    assert story.startswith("the state of a row is that of its request: ")
    assert "rows 1, " in story
    assert ", removed 0, added 0, " in story


def test_the_command_has_both_where_vllm_is() -> None:
    assert {LEMMA.name, input_batch.CHECK.name} <= set(statements())


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
