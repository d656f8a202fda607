"""Frequency penalty."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, is_rough, only_changed
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.frequency_penalty import frequency_penalty


def users(chance: random.Random) -> Pool:
    """Both signs, an end of the domain, and numbers that float32 does not hold exactly."""
    return [
        {"frequency_penalty": 0.5},
        {"frequency_penalty": -0.7},
        {"frequency_penalty": 2.0},
        {"frequency_penalty": round(chance.uniform(0.1, 0.4), 3)},
    ]


def others(chance: random.Random) -> Pool:
    """No penalty, its neutral value, and other fields."""
    return [{}, {"frequency_penalty": 0.0}, {"presence_penalty": 0.5}, {"repetition_penalty": 1.3}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The frequency clauses that this row shows."""
    if not request.params.get("frequency_penalty"):
        return ("FREQ-NEUTRAL",)
    shows = ["FREQ-OTHERS"]
    if set(request.prompt or ()) - set(request.output):
        shows.append("FREQ-OUTPUTS")
    if any(math.isfinite(logits[token]) for token in request.output):
        shows += ["FREQ-SUBTRACT", "NUM-PRODUCT"]
    if not all(math.isfinite(logits[token]) for token in request.output):
        shows.append("FREQ-NONFINITE")
    return tuple(shows)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """FREQ-SUBTRACT, FREQ-OUTPUTS, FREQ-OTHERS, FREQ-NEUTRAL, FREQ-NONFINITE, NUM-PRODUCT: which the token breaks.

    What a penalty never does to a row is not its clause.
    """
    penalty, prompt = request.params.get("frequency_penalty"), request.prompt or ()
    if not penalty:
        seen = {*prompt, *request.output}
        return "FREQ-NEUTRAL" if only_changed(seen, logits, got) else "PROC-UNTOUCHED"
    count, logit, after = request.output.count(token), logits[token], got[token]
    if not count:
        return "FREQ-OUTPUTS" if token in prompt else "FREQ-OTHERS"
    if not math.isfinite(logit):
        return "FREQ-NONFINITE"
    times = (logit - after) / penalty
    if abs(times - count) < 0.5 and is_rough(logit - penalty * count, after, max(abs(logit), abs(penalty * count))):
        return "NUM-PRODUCT"
    counted_too = token in prompt and abs(times - count - prompt.count(token)) < 0.5
    return "FREQ-OUTPUTS" if counted_too else "FREQ-SUBTRACT"


FREQUENCY_PENALTY = Kind(
    "frequency_penalty",
    ("frequency-penalty",),
    ("NUM-PRODUCT",),
    frequency_penalty,
    users,
    others,
    bears,
    blames,
    reads_outputs=True,
    reads_ids=True,
)
