"""min-p."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params, Request
from logitsproc.reference.row.min_p import min_p

NEAR = 0.01
"""A logit this close to a threshold is within 1% of its probability."""


def users(chance: random.Random) -> Pool:
    """Shares that fall among dense logits, on the edges of crowded ones, and the largest."""
    return [{"min_p": 0.5}, {"min_p": 0.1}, {"min_p": 1.0}, {"min_p": round(chance.uniform(0.01, 0.9), 3)}]


def others(chance: random.Random) -> Pool:
    """No min_p, its neutral value, and other fields."""
    return [{}, {"min_p": 0.0}, {"temperature": 0.7}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The min-p clauses that this row shows."""
    if not request.params.get("min_p"):
        return ("MINP-NEUTRAL",)
    if expectation.untouched:
        return ("MINP-NONFINITE",)
    shows = ["MINP-KEEP-MAX", "MINP-KEPT-VALUES"]
    if expectation.low.count(MASKED) > logits.count(MASKED):
        shows.append("MINP-THRESHOLD")
    if expectation.either or is_near(request.params, logits):
        shows.append("NUM-BAND")
    return tuple(shows)


def is_near(params: Params, logits: Row) -> bool:
    """Whether a token other than the largest is within 1% of the threshold probability."""
    largest = max(logits)
    edge = largest + math.log(params["min_p"])
    return any([edge - NEAR < logit < edge + NEAR and logit != largest for logit in logits])  # noqa: C419 - faster


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES, MINP-NEUTRAL, MINP-NONFINITE, NUM-BAND: which the token breaks.

    What min-p never does is not its clause.
    """
    if not request.params.get("min_p"):
        return "MINP-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    largest = max(logits)
    if any(math.isnan(logit) for logit in logits) or not math.isfinite(largest):
        return "MINP-NONFINITE"
    if got[token] not in (logits[token], MASKED):
        return "MINP-KEPT-VALUES"
    if logits[token] == largest:
        return "MINP-KEEP-MAX"
    return "NUM-BAND" if only_near(request.params, logits, got) else "MINP-THRESHOLD"


def only_near(params: Params, logits: Row, got: Row) -> bool:
    """Whether every token that is wrong lies within 1% of the threshold probability."""
    edge = max(logits) + math.log(params["min_p"])
    wrong = [x for x, y in zip(logits, got, strict=True) if (y == MASKED) != (x < edge) and abs(x - edge) > 1e-5]
    return all(abs(logit - edge) < NEAR for logit in wrong)


MIN_P = Kind("min_p", ("min-p",), ("NUM-BAND",), min_p, users, others, bears, blames)
