"""Diagnosis: faults are told apart by a trial, which ends as soon as more of it would change nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.diagnosis import AMONG_KIN, LEAST_HISTORIES, MARGIN, RIGHT, Score, Trial
from logitsproc.conformance.faults import Belief, CopiesMoves, IgnoresMoves, IgnoresSwaps
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.miniatures.consumers import MovesFirst
from logitsproc.conformance.miniatures.edits import AddsInHalf
from logitsproc.conformance.oracles import ReferenceOracle
from logitsproc.conformance.suite import TRIAL_HISTORIES, Report, Settings, run


def trial(scores: dict[type[Belief], Score]) -> Trial:
    """A trial in which enough histories have been played to end with these scores."""
    oracle = ReferenceOracle(KINDS["min_p"])
    return Trial(lambda header: pytest.fail("played"), oracle, lambda request: True, scores, LEAST_HISTORIES)


def test_one_fault_that_was_right_often_enough_is_named() -> None:
    short = trial({IgnoresMoves: Score(MARGIN - 1, 0)})
    assert not short.is_settled()
    enough = trial({IgnoresMoves: Score(MARGIN, 0)})
    assert enough.is_settled()
    assert enough.winners() == [IgnoresMoves]


def test_few_histories_settle_nothing() -> None:
    young = trial({IgnoresMoves: Score(MARGIN, 0)})
    young.histories = 0
    assert not young.is_settled()


def test_a_fault_that_is_wrong_as_often_as_right_is_not_named() -> None:
    assert trial({IgnoresMoves: Score(RIGHT * 100 - 1, 100)}).winners() == []
    assert trial({IgnoresMoves: Score(RIGHT * 100, 100)}).winners() == [IgnoresMoves]
    assert not trial({IgnoresMoves: Score(RIGHT * 100, 100)}).is_settled()
    hopeless = trial({IgnoresMoves: Score(1, 2 + MARGIN)})
    assert hopeless.is_settled()
    assert hopeless.winners() == []


def test_a_fault_that_is_far_behind_is_left_out_for_good() -> None:
    apart = trial({IgnoresMoves: Score(MARGIN, 0), IgnoresSwaps: Score(MARGIN, MARGIN)})
    assert apart.is_settled()
    assert list(apart.scores) == [IgnoresMoves]
    close = trial({IgnoresMoves: Score(AMONG_KIN, 0), IgnoresSwaps: Score(AMONG_KIN, MARGIN - 1)})
    assert not close.is_settled()
    assert close.winners() == [IgnoresMoves]


def test_faults_of_one_clause_are_told_apart_as_far_as_that_is_cheap() -> None:
    assert not trial({IgnoresMoves: Score(AMONG_KIN - 1, 0), CopiesMoves: Score(MARGIN, 1)}).is_settled()
    kin = trial({IgnoresMoves: Score(AMONG_KIN, 0), CopiesMoves: Score(AMONG_KIN, 0)})
    assert kin.is_settled()
    assert kin.winners() == [IgnoresMoves, CopiesMoves]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """One item for every history that a trial plays."""
    histories: list[None] = []
    begin = Trial.begin
    monkeypatch.setattr(Trial, "begin", lambda trial, header: histories.append(None) or begin(trial, header))
    yield histories


def judged() -> Report:
    """A run of a miniature that several faults explain."""
    return run(Settings(load_subject(MovesFirst), KINDS["min_p"]))


def test_a_run_plays_no_more_histories_than_it_needs_and_the_same_ones_each_time(played: list[None]) -> None:
    first, so_many = judged(), len(played)
    second = judged()
    assert first.failure is not None and second.failure is not None
    assert first.failure.clause.id == "UPD-ORDER"
    assert first.failure.fault == second.failure.fault == "moves come before removals and additions."
    assert len(played) == 2 * so_many
    assert so_many < TRIAL_HISTORIES / 2


class AlsoRaises(AddsInHalf):
    """Rounds every row, and raises where the last token has the largest logit."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if logits.argmax() == len(logits) - 1:
            raise ValueError("the last token")
        super().transform(logits, params, prompt, output)


def test_the_clause_is_that_of_the_row_shown_whatever_is_raised_for_others() -> None:
    failure = run(Settings(load_subject(AlsoRaises), KINDS["logit_bias"])).failure
    assert failure is not None
    assert (failure.clause.id, failure.violation.message) == ("NUM-EDIT", "row 0 is wrong")
