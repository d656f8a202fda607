"""top-p."""

from __future__ import annotations

import math
import random
from collections import Counter

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, is_same, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Request
from logitsproc.reference.row.top_p import top_p

NEAR = 0.004
"""A mass this close to p is what a narrower dtype may take for p: twice the spacing of bfloat16 below 1."""


def users(chance: random.Random) -> Pool:
    """Masses of many tokens, of a few, and of less than any one."""
    return [{"top_p": 0.9}, {"top_p": 0.5}, {"top_p": 1e-9}, {"top_p": round(chance.uniform(0.1, 0.8), 3)}]


def others(chance: random.Random) -> Pool:
    """No p, its neutral value, and other fields."""
    return [{}, {"top_p": 1.0}, {"top_k": 3}, {"min_p": 0.2}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The top-p clauses that this row shows."""
    p = request.params.get("top_p", 1.0)
    if p == 1.0:
        return ("TOPP-NEUTRAL",)
    if expectation.untouched:
        return ("TOPP-NONFINITE",)
    masses, shows = masses_before(logits), ["TOPP-KEPT-VALUES"]
    kept = len(logits) - expectation.low.count(MASKED)
    if kept < len(logits) - logits.count(MASKED):
        shows.append("TOPP-PREFIX")
    if kept == 1:
        shows.append("TOPP-ONE")
    if is_tied(logits, expectation):
        shows.append("TOPP-TIES")
    if any(0 < abs(mass - p) < NEAR for mass in masses.values()):
        shows.append("NUM-MASS")
    return tuple(shows)


def masses_before(logits: Row) -> dict[float, float]:
    """By logit, the share of the mass that the larger ones have."""
    largest, total = max(logits), 0.0
    masses: dict[float, float] = {}
    for logit in sorted(logits, reverse=True):
        masses.setdefault(logit, total)
        total += math.exp(logit - largest)
    return {logit: mass / total for logit, mass in masses.items()}


def is_tied(logits: Row, expectation: Expectation) -> bool:
    """Whether some of several equal tokens are to be kept, and others not."""
    equals = Counter(logits[token] for token in expectation.either)
    return max(equals.values(), default=0) > 1


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """TOPP-PREFIX, TOPP-TIES, TOPP-ONE, TOPP-KEPT-VALUES, TOPP-NEUTRAL, TOPP-NONFINITE, NUM-MASS: which the token
    breaks.

    What top-p never does is not its clause.
    """
    p, logit = request.params.get("top_p", 1.0), logits[token]
    if p == 1.0:
        return "TOPP-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    expectation = top_p(request.params, (), (), logits)
    if expectation.untouched or logit == MASKED:
        return "TOPP-NONFINITE"
    if got[token] != MASKED and not is_same(logit, got[token]):
        return "TOPP-KEPT-VALUES"
    if all(after == MASKED for after in got):
        return "TOPP-ONE"
    if is_about_right(logits, got, logit, p):
        return "NUM-MASS"
    is_one_of_equals = token in expectation.either and is_tied(logits, expectation)
    return "TOPP-TIES" if is_one_of_equals and got[token] != MASKED else "TOPP-PREFIX"


def is_about_right(logits: Row, got: Row, logit: float, p: float) -> bool:
    """Whether as many of the tokens with this logit are kept as would be right for a p nearly as large."""
    each = math.exp(logit - max(logits)) / math.fsum(math.exp(other - max(logits)) for other in logits)
    mass = masses_before(logits)[logit] + each * sum(after == logit for after in got)
    return mass - each < p + NEAR and mass > p - NEAR


TOP_P = Kind("top_p", ("top-p",), ("NUM-MASS",), top_p, users, others, bears, blames)
