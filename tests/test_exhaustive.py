"""The exhaustive checks: what they count, what they call a trouble, and that what they are made of can tell errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations, product
from types import SimpleNamespace

import pytest
from test_spec import OPTIMIZED

from logitsproc.conformance.history import History, new_request
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.logits import palette
from logitsproc.conformance.oracles import reference_row
from logitsproc.proofs.cases import OTHER, USER, Length, Scope, asked, histories_of, target_of, transitions
from logitsproc.proofs.exhaustive import CHECKS, HOW_MANY_STATES, Exhaustive, Planted, judged, looked
from logitsproc.proofs.statement import EXHAUSTIVE, REFUTED, code_with, planted
from logitsproc.reference.batch import UNIDIRECTIONAL, Batch, Row, remove
from logitsproc.reference.expectation import admits
from logitsproc.reference.request import Request
from logitsproc.spec import clauses


def keeps(batch: Batch, row: Row) -> None:
    """Nothing is removed."""


def raises(batch: Batch, row: Row) -> None:
    """Nothing can be removed."""
    raise KeyError(row)


def removals(code: SimpleNamespace) -> Iterator[str | None]:
    """Three batches, of which every row is removed."""
    for size in range(1, 4):
        batch: Batch = [Request("A")] * size
        code.remove(batch, 0)
        yield None if batch[0] is None else f"{size} rows: the first is not removed"


def check(**parts: object) -> Exhaustive:
    """A check of removals, otherwise in these parts."""
    usual = {
        "name": "removals",
        "sentence": "What is removed is gone.",
        "clauses": ("UPD-REMOVE",),
        "bound": "batches of up to 3 rows",
        "unit": "batches",
        "count": 3,
        "cases": removals,
        "planted": (planted(remove=keeps), planted(remove=raises)),
    }
    return Exhaustive(**usual | parts)  # type: ignore[arg-type]


def test_a_check_without_a_difference_is_exhaustive() -> None:
    result = judged(check())
    assert (result.verdict, result.count, result.refuted, result.planted) == (EXHAUSTIVE, 3, 2, 2)
    assert result.troubles == ()
    assert result.seconds > 0


def test_a_check_without_cases_fails() -> None:
    result = judged(check(cases=lambda code: iter(())))
    assert (result.verdict, result.count, result.refuted) == (REFUTED, 0, 0)
    assert result.troubles == (
        "there is no case",
        "not found: Nothing is removed.",
        "not found: Nothing can be removed.",
    )


def test_another_number_of_cases_fails() -> None:
    result = judged(check(count=4))
    assert (result.verdict, result.troubles) == (REFUTED, ("there are 3 cases, and 4 are expected",))


def test_an_error_that_is_not_found_fails() -> None:
    missed = Planted("Nothing is wrong.", {"remove": remove})
    result = judged(check(planted=(planted(remove=keeps), missed)))
    assert (result.verdict, result.refuted, result.planted) == (REFUTED, 1, 2)
    assert result.troubles == ("not found: Nothing is wrong.",)


def test_a_check_without_planted_errors_fails() -> None:
    assert judged(check(planted=())).troubles == ("no error is planted",)


def test_the_first_difference_is_told_and_no_case_after_it_is_looked_at() -> None:
    result = judged(check(cases=lambda code: iter([None, "[A]; remove 0", "[A, B]; remove 0"])))
    assert (result.verdict, result.count, result.troubles) == (REFUTED, 2, ("[A]; remove 0",))


def test_what_the_code_raises_is_told() -> None:
    broken = code_with(planted(remove=raises))
    assert looked(removals(broken)) == (0, "after 0 cases: KeyError: 0")


def test_the_checks_are_of_every_kind() -> None:
    names = [check.name for check in CHECKS]
    assert names == ["updates", "reachable", "states", *(f"histories {kind}" for kind in KINDS)]
    assert all(check.planted and set(check.clauses) <= set(clauses()) for check in CHECKS)


@pytest.mark.parametrize("error", [error for check in CHECKS for error in check.planted])
def test_a_planted_error_says_what_is_wrong_in_a_sentence(error: Planted) -> None:
    assert error.says.endswith(".")
    assert "\n" not in error.says


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_first_cases_show_no_difference(check: Exhaustive) -> None:
    assert looked(islice(check.cases(code_with()), 40)) == (40, None)


def test_the_fast_path_has_each_kind_where_the_checks_look_for_it() -> None:
    assert {field: target_of(kind) for field, kind in KINDS.items()} == {
        field: f"logitsproc.optimized:{name}" for field, name in OPTIMIZED.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_requests_of_a_kind_are_told_apart_by_their_rows(kind: str) -> None:
    rows = palette("dense", History().vocab).values
    requests = [new_request("A", arrival) for arrival in asked(KINDS[kind])]
    for one, other in permutations(requests, 2):
        pairs = [[reference_row(KINDS[kind], request, row, False) for request in (one, other)] for row in rows[:2]]
        assert not all(admits(first, second.low) for first, second in pairs)


def test_the_states_are_all_there_are() -> None:
    found = {reached for reached, _ in transitions(code_with(), 4, Scope(1, (USER, OTHER), 1))}
    batches = [roles for size in range(5) for roles in product((None, False, True), repeat=size)]
    ends = [roles for roles in batches if not roles or roles[-1] is not None]
    assert found | {((), 0)} == {(roles, rows) for roles in ends for rows in range(len(roles), 5)}
    assert len(found | {((), 0)}) == HOW_MANY_STATES


def test_the_histories_are_all_different_and_of_both_dialects() -> None:
    histories = list(histories_of(KINDS["min_p"], Length(2, 1, 1)))
    assert len({repr(history) for history in histories}) == len(histories)
    last = [history.steps[-1] for history in histories]
    assert {step.removed for step in last if (1, 0, UNIDIRECTIONAL) in step.moved} == {(), (0,)}
    assert any(step.is_quiet for step in last)
