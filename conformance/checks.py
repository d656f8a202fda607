"""The checks: each says no to a step by raising Violation, and its docstring opens with the clauses it checks."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from operator import le

from logitsproc.conformance.bindings import one_line
from logitsproc.conformance.oracles import Oracle, SoloFailure
from logitsproc.conformance.player import Outcome, Player, Violation
from logitsproc.reference.expectation import Expectation, admits_token, miscounted, untouched
from logitsproc.reference.processor import is_idle, keeps_argmax
from logitsproc.reference.request import Request


def judge(player: Player, outcome: Outcome, oracle: Oracle) -> list[Expectation]:
    """Holds one step to every check and returns what its rows were to be; raises Violation."""
    if outcome.values is None:
        return []
    expectations = expected(outcome, oracle)
    wrong = [row for row, expectation in enumerate(expectations) if not row_is_right(outcome, row, expectation)]
    check_rows(outcome, expectations, [row for row in wrong if expectations[row].untouched])
    if player.invariant:
        check_argmax(outcome)
    check_rows(outcome, expectations, wrong)
    if outcome.again is not None:
        check_again(outcome)
    return expectations


def expected(outcome: Outcome, oracle: Oracle) -> list[Expectation]:
    """PROC-EXCEPTION: what every row may be; the solo oracle's own failure is the subject's."""
    try:
        return [expected_at(outcome, oracle, row, request) for row, request in enumerate(outcome.batch)]
    except SoloFailure as failure:
        message = f"a fresh processor with {failure.request.name} alone raised {one_line(failure.error)}"
        hangs = isinstance(failure.error, TimeoutError)
        raise Violation("PROC-EXCEPTION", message, outcome.index, request=failure.request, hangs=hangs) from failure


def expected_at(outcome: Outcome, oracle: Oracle, row: int, request: Request | None) -> Expectation:
    """PROC-FUNCTION: the oracle's row for the request, or the row as it went in for a hole."""
    pick = outcome.picks[row]
    if request is None:
        return untouched(outcome.rows.values[pick])
    return oracle.expect(request, outcome.rows, pick, outcome.skipped)


def check_rows(outcome: Outcome, expectations: list[Expectation], wrong: list[int]) -> None:
    """PROC-UNTOUCHED, PROC-FUNCTION, PROC-PROMPT-NONE: every row is what the list law and the oracle say.

    The clauses of bookkeeping are checked here too; diagnosis finds out which of them the first wrong row breaks.
    """
    assert outcome.values is not None
    for row in wrong[:1]:
        raise Violation(
            None,
            f"row {row} is wrong",
            outcome.index,
            row,
            outcome.batch[row],
            outcome.rows,
            outcome.picks[row],
            expectations[row],
            outcome.values[row],
        )


def row_is_right(outcome: Outcome, row: int, expectation: Expectation) -> bool:
    """PROC-UNTOUCHED: untouched rows bit for bit, others as is admitted."""
    assert outcome.values is not None
    assert outcome.bits is not None
    if expectation.untouched:
        return outcome.bits[row] == outcome.rows.bits[outcome.picks[row]]
    return is_admitted(expectation, outcome.values[row])


def is_admitted(expectation: Expectation, got: list[float]) -> bool:
    """MINP-KEPT-VALUES, NUM-EDIT, NUM-BAND: every token is what it may be, every zero of the right sign."""
    return allows(expectation, got) and not wrong_signs(expectation, got)


def allows(expectation: Expectation, got: Sequence[float]) -> bool:
    """NUM-EDIT, NUM-BAND: what the reference's `admits` says, which looks at every token where one may tell."""
    if is_within(expectation, got):
        return True
    if any(not admits_token(expectation, token, value) for token, value in enumerate(got)):
        return False
    return not miscounted(expectation, got)


def wrong_signs(expectation: Expectation, got: list[float]) -> list[int]:
    """TOPK-KEPT-VALUES, ALLOW-KEPT: the tokens that are a zero of the other sign, where that matters."""
    if not expectation.signs or 0.0 not in got:
        return []
    pairs = enumerate(zip(expectation.low, got, strict=True))
    return [token for token, (low, value) in pairs if low == 0 == value and copysign(1, low) != copysign(1, value)]


def is_within(expectation: Expectation, got: Sequence[float]) -> bool:
    """NUM-EDIT: whether every token is in its interval; quicker to say than `admits`, which knows more."""
    if expectation.kept is not None:
        return False
    low, high = expectation.low, expectation.high
    return got == low or (all(map(le, low, got)) and all(map(le, got, high)))


def check_argmax(outcome: Outcome) -> None:
    """PROC-ARGMAX: a processor that claims invariance keeps a largest token of every row largest."""
    assert outcome.values is not None
    for row, got in enumerate(outcome.values):
        before = outcome.rows.values[outcome.picks[row]]
        if got != before and got[before.index(max(before))] != max(got) and not keeps_argmax(before, got):
            message = f"is_argmax_invariant() is True, and row {row} lost its largest token"
            pick = outcome.picks[row]
            raise Violation(
                "PROC-ARGMAX", message, outcome.index, row, outcome.batch[row], outcome.rows, pick, None, got
            )


def check_again(outcome: Outcome) -> None:
    """PROC-APPLY-STATELESS: a second apply on the same logits gives the same bits."""
    if outcome.again != outcome.bits:
        raise Violation("PROC-APPLY-STATELESS", "apply twice on the same logits gave two answers", outcome.index)


def is_idle_copy(outcome: Outcome, expectations: list[Expectation]) -> bool:
    """PROC-IDLE: whether nobody used the processor and it returned another object than it was given."""
    return outcome.values is not None and is_idle(expectations) and outcome.copied
