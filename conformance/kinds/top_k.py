"""top-k."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool, Row, is_same, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Request
from logitsproc.reference.row.top_k import top_k


def users(chance: random.Random) -> Pool:
    """The largest token alone, a few, and all but the least of the smallest vocabulary."""
    return [{"top_k": 1}, {"top_k": 3}, {"top_k": SMALLEST_VOCAB - 1}, {"top_k": chance.randrange(2, 6)}]


def others(chance: random.Random) -> Pool:
    """No k, its neutral values, the larger vocabulary and more, and other fields."""
    return [{}, {"top_k": 0}, {"top_k": -1}, {"top_k": 64}, {"top_k": 1000}, {"top_p": 0.9}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The top-k clauses that this row shows."""
    if expectation.untouched:
        return ("TOPK-NEUTRAL",)
    if any(math.isnan(logit) for logit in logits):
        return ("TOPK-NONFINITE",)
    k, ranks = request.params["top_k"], sorted(logits, reverse=True)
    shows = ["TOPK-KEPT-VALUES"]
    if expectation.low.count(MASKED) > logits.count(MASKED):
        shows.append("TOPK-MASK")
    if ranks[k] == ranks[k - 1] > MASKED:
        shows.append("TOPK-TIES")
    if MASKED in logits:
        shows.append("TOPK-NONFINITE")
    return tuple(shows)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """TOPK-MASK, TOPK-TIES, TOPK-KEPT-VALUES, TOPK-NEUTRAL, TOPK-NONFINITE: which the token breaks.

    What top-k never does is not its clause.
    """
    k = request.params.get("top_k", 0)
    if not 0 < k < len(logits):
        if all(math.isnan(logit) for logit, after in zip(logits, got, strict=True) if not is_same(logit, after)):
            return "TOPK-NONFINITE"
        return "TOPK-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    if any(math.isnan(logit) for logit in logits) or logits[token] == MASKED or len(logits) - logits.count(MASKED) <= k:
        return "TOPK-NONFINITE"
    if got[token] not in (logits[token], MASKED):
        return "TOPK-KEPT-VALUES"
    least = sorted(logits, reverse=True)[k - 1]
    equals = [is_same(logit, after) for logit, after in zip(logits, got, strict=True) if logit == least]
    return "TOPK-TIES" if logits[token] == least and any(equals) else "TOPK-MASK"


TOP_K = Kind("top_k", ("top-k",), (), top_k, users, others, bears, blames)
