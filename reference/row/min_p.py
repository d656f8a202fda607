"""min-p: a token stays if its probability is at least min_p times the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import MASKED, band
from logitsproc.reference.request import Params


def min_p(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]) -> Expectation:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES, MINP-NEUTRAL, MINP-NONFINITE:
    p >= min_p * max(p) is logit >= max(logits) + ln(min_p); what stays keeps its value.

    >>> row = min_p({"min_p": 0.5}, [], [], [0.0, 1.0, 2.0])
    >>> row.low
    [-inf, -inf, 2.0]
    >>> min_p({"min_p": 0.0}, [], [], [0.0, 1.0]).untouched
    True
    """
    share = params.get("min_p", 0.0)
    largest = max(logits)
    if not share or not math.isfinite(largest) or any(math.isnan(logit) for logit in logits):
        return untouched(logits)
    edge = largest + math.log(share)
    below, above = edge - band(math.log(share), edge), edge + band(math.log(share), edge)
    kept = [logit if logit > below or logit == largest else MASKED for logit in logits]
    either = frozenset(t for t, logit in enumerate(logits) if below < logit < above and logit != largest)
    return Expectation(kept, kept, either)
