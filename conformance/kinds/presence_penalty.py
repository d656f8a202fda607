"""Presence penalty."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, is_rough, only_changed
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.presence_penalty import presence_penalty


def users(chance: random.Random) -> Pool:
    """Both signs, an end of the domain, and numbers that float32 does not hold exactly."""
    return [
        {"presence_penalty": 0.5},
        {"presence_penalty": -0.7},
        {"presence_penalty": 2.0},
        {"presence_penalty": round(chance.uniform(0.1, 0.4), 3)},
    ]


def others(chance: random.Random) -> Pool:
    """No penalty, its neutral value, and other fields."""
    return [{}, {"presence_penalty": 0.0}, {"frequency_penalty": 0.5}, {"repetition_penalty": 1.3}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The presence clauses that this row shows."""
    if not request.params.get("presence_penalty"):
        return ("PRES-NEUTRAL",)
    shows = ["PRES-OTHERS"]
    if set(request.prompt or ()) - set(request.output):
        shows.append("PRES-OUTPUTS")
    finite = [token for token in request.output if math.isfinite(logits[token])]
    if finite:
        shows += ["PRES-SUBTRACT", "NUM-EDIT"]
    if len(set(finite)) < len(finite):
        shows.append("PRES-ONCE")
    if len(finite) < len(request.output):
        shows.append("PRES-NONFINITE")
    return tuple(shows)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """PRES-SUBTRACT, PRES-ONCE, PRES-OUTPUTS, PRES-OTHERS, PRES-NEUTRAL, PRES-NONFINITE, NUM-EDIT: which the token
    breaks.

    What a penalty never does to a row is not its clause.
    """
    penalty, prompt = request.params.get("presence_penalty"), request.prompt or ()
    if not penalty:
        seen = {*prompt, *request.output}
        return "PRES-NEUTRAL" if only_changed(seen, logits, got) else "PROC-UNTOUCHED"
    count, logit, after = request.output.count(token), logits[token], got[token]
    if not count:
        return "PRES-OUTPUTS" if token in prompt else "PRES-OTHERS"
    if not math.isfinite(logit):
        return "PRES-NONFINITE"
    times = (logit - after) / penalty
    if abs(times - 1) < 0.5 and is_rough(logit - penalty, after, max(abs(logit), abs(penalty))):
        return "NUM-EDIT"
    if count > 1 and abs(times - count) < 0.5:
        return "PRES-ONCE"
    return "PRES-OUTPUTS" if token in prompt and times > 1.5 else "PRES-SUBTRACT"


PRESENCE_PENALTY = Kind(
    "presence_penalty",
    ("presence-penalty",),
    ("NUM-EDIT",),
    presence_penalty,
    users,
    others,
    bears,
    blames,
    reads_outputs=True,
    reads_ids=True,
)
