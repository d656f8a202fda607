"""Temperature."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, is_rough
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import is_greedy, temperature


def users(chance: random.Random) -> Pool:
    """Above 1 and below, with and without an exact reciprocal."""
    return [
        {"temperature": 0.7},
        {"temperature": 1.3},
        {"temperature": 2.0},
        {"temperature": round(chance.uniform(0.1, 0.9), 3)},
    ]


def others(chance: random.Random) -> Pool:
    """No temperature, its neutral value, a greedy request, and other fields."""
    return [{}, {"temperature": 1.0}, {"temperature": 0.0}, {"min_p": 0.2}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The temperature clauses that this row shows."""
    if expectation.untouched:
        return ("TEMP-GREEDY",) if is_greedy(request.params) else ("TEMP-NEUTRAL",)
    shows = ["TEMP-DIVIDE", "NUM-SCALE"] if any(math.isfinite(logit) and logit for logit in logits) else []
    if not all(map(math.isfinite, logits)):
        shows.append("TEMP-NONFINITE")
    return tuple(shows)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """TEMP-DIVIDE, TEMP-GREEDY, TEMP-NEUTRAL, TEMP-NONFINITE, NUM-SCALE: which the token breaks.

    What a division never does to a row is not its clause.
    """
    if is_greedy(request.params):
        return "TEMP-GREEDY"
    divisor = request.params.get("temperature", 1.0)
    if divisor == 1.0:
        return "TEMP-NEUTRAL" if keeps_signs(logits, got) else "PROC-UNTOUCHED"
    if not math.isfinite(logits[token]):
        return "TEMP-NONFINITE"
    exact = logits[token] / divisor
    return "NUM-SCALE" if is_rough(exact, got[token], abs(exact)) else "TEMP-DIVIDE"


def keeps_signs(logits: Row, got: Row) -> bool:
    """Whether every logit that was above, at or below 0 is that still; NaN may be anything."""
    pairs = zip(logits, got, strict=True)
    return all((before > 0, before < 0) == (after > 0, after < 0) for before, after in pairs if before == before)


TEMPERATURE = Kind("temperature", ("temperature",), ("NUM-SCALE",), temperature, users, others, bears, blames)
