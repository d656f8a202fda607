"""min-p: a token stays if its probability is at least min_p times the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import MASKED, band
from logitsproc.reference.request import Params


def min_p(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]) -> Expectation:
    """MINP-NEUTRAL: what is left of the row; 0 leaves it alone.

    >>> min_p({"min_p": 0.5}, [], [], [0.0, 1.0, 2.0]).low
    [-inf, -inf, 2.0]
    >>> min_p({"min_p": 0.0}, [], [], [0.0, 1.0]).untouched
    True
    """
    share = params.get("min_p", 0.0)
    return keep_likely(untouched(logits), share) if share else untouched(logits)


def keep_likely(row: Expectation, share: float) -> Expectation:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES, MINP-NONFINITE:
    p >= share * max(p) is logit >= max(logits) + ln(share); what stays keeps its value.

    A token that earlier stages know to an interval only is kept or masked where the whole interval says so.

    >>> row = keep_likely(Expectation([0.0, 1.0, 2.0], [0.5, 1.5, 2.5]), 0.5)
    >>> row.low, row.high, row.either, row.kept
    ([-inf, 1.0, 2.0], [-inf, 1.5, 2.5], frozenset({1}), (0, 1))
    """
    least = max((low for t, low in enumerate(row.low) if t not in row.either), default=MASKED)
    largest = max(row.high)
    if not math.isfinite(largest) or any(math.isnan(logit) for logit in row.low):
        return without_order(row)
    low_edge, high_edge = least + math.log(share), largest + math.log(share)
    below, above = low_edge - band(math.log(share), low_edge), high_edge + band(math.log(share), high_edge)
    gone = {t for t, high in enumerate(row.high) if high <= below and high < least}
    sure = {t for t, low in enumerate(row.low) if low >= min(above, largest)} - row.either
    return narrowed(row, gone, sure, 1, len(row.low))


def without_order(row: Expectation) -> Expectation:
    """MINP-NONFINITE, TOPP-NONFINITE: a row whose largest logit is not finite comes out as it went in; where it may be
    finite or not, as of intervals that reach the end of float32, every token may be kept or masked.

    >>> without_order(untouched([math.nan, 1.0])).untouched, without_order(untouched([MASKED])).untouched
    (True, True)
    >>> without_order(Expectation([3e38, 1.0], [math.inf, 1.0])).either == {0, 1}
    True
    """
    may_be_finite = max(row.high) == math.inf and max(row.low) < math.inf
    if not may_be_finite or any(math.isnan(logit) for logit in row.low):
        return row
    return narrowed(row, set(), set(), 0, len(row.low))


def narrowed(row: Expectation, gone: set[int], sure: set[int], least: int, most: int) -> Expectation:
    """NUM-BAND: the row with these tokens masked and these kept; of the others at least and at most so many in all.

    >>> narrowed(Expectation([0.0, 1.0], [0.0, 1.0]), {0}, {1}, 1, 1).low
    [-inf, 1.0]
    """
    low = [MASKED if t in gone else value for t, value in enumerate(row.low)]
    high = [MASKED if t in gone else value for t, value in enumerate(row.high)]
    either = frozenset(t for t, value in enumerate(row.high) if value != MASKED) - gone - sure
    counted = len([t for t in sure if row.high[t] != MASKED])
    bounds = (min(max(least - counted, 0), len(either)), min(most - counted, len(either))) if either else None
    return Expectation(low, high, either, kept=bounds, signs=row.signs)
