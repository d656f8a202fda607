"""top-k: the k largest logits stay, and every logit equal to the least of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params
from logitsproc.reference.row.min_p import narrowed


def top_k(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]) -> Expectation:
    """TOPK-NEUTRAL: what is left of the row; 0, -1 and a k as large as the vocabulary leave it alone.

    >>> top_k({"top_k": 2}, [], [], [0.0, 3.0, 1.0, 1.0]).low
    [-inf, 3.0, 1.0, 1.0]
    >>> top_k({"top_k": 0}, [], [], [0.0]).untouched
    True
    """
    k = params.get("top_k", 0)
    return keep_largest(untouched(logits), k) if 0 < k < len(logits) else untouched(logits)


def keep_largest(row: Expectation, k: int) -> Expectation:
    """TOPK-MASK, TOPK-TIES, TOPK-KEPT-VALUES: a token stays if fewer than k are larger; what stays keeps its value.

    A token that earlier stages know to an interval only is kept or masked where the whole interval says so.

    >>> keep_largest(Expectation([0.0, 0.25, 2.0], [0.5, 0.75, 2.0]), 2).either == {0, 1}
    True
    """
    if any(math.isnan(logit) for logit in row.low):
        return unordered(row)
    lows = sorted(low for t, low in enumerate(row.low) if t not in row.either)
    highs = sorted(row.high)
    gone, sure = set(), set()
    for token, (low, high) in enumerate(zip(row.low, row.high, strict=True)):
        larger = len(lows) - bisect_right(lows, high)
        rivals = len(highs) - bisect_right(highs, low) - (high > low)
        if larger >= k:
            gone.add(token)
        elif rivals < k and token not in row.either:
            sure.add(token)
    solid = sum(low != MASKED for t, low in enumerate(row.low) if t not in row.either)
    return narrowed(row, gone, sure, min(k, solid), len(row.low))


def unordered(row: Expectation) -> Expectation:
    """TOPK-NONFINITE: NaN stays, and beside it every other token may be kept or masked.

    >>> unordered(untouched([math.nan, 1.0])).either
    frozenset({1})
    """
    return narrowed(row, set(), {t for t, logit in enumerate(row.low) if math.isnan(logit)}, 0, len(row.low))
