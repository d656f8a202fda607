"""Repetition penalty."""

from __future__ import annotations

import math
import random
from functools import reduce

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, is_rough, only_changed
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import f32
from logitsproc.reference.request import Request
from logitsproc.reference.row.repetition_penalty import penalised, repetition_penalty


def users(chance: random.Random) -> Pool:
    """Above 1 and below, with and without an exact reciprocal."""
    return [
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.8},
        {"repetition_penalty": 2.0},
        {"repetition_penalty": round(chance.uniform(1.05, 1.9), 3)},
    ]


def others(chance: random.Random) -> Pool:
    """No penalty, its neutral value, and other fields."""
    return [{}, {"repetition_penalty": 1.0}, {"frequency_penalty": 0.5}, {"temperature": 0.7}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The repetition clauses that this row shows."""
    if request.params.get("repetition_penalty", 1.0) == 1.0:
        return ("REP-NEUTRAL",)
    seen = tokens_seen(request)
    movable = {token for token in seen if logits[token] and math.isfinite(logits[token])}
    shows = ["REP-OTHERS"]
    if movable:
        shows += ["REP-SCALE", "NUM-SCALE"]
    if movable - set(request.output):
        shows.append("REP-SEEN")
    if any(seen.count(token) > 1 for token in movable):
        shows.append("REP-ONCE")
    if not all(math.isfinite(logits[token]) for token in seen):
        shows.append("REP-NONFINITE")
    return tuple(shows)


def tokens_seen(request: Request) -> list[int]:
    """The tokens of the prompt and of the output, as often as they are there."""
    return [*(request.prompt or ()), *request.output]


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """REP-SCALE, REP-SEEN, REP-ONCE, REP-OTHERS, REP-NEUTRAL, REP-NONFINITE, NUM-SCALE: which the token breaks.

    What a penalty never does to a row is not its clause.
    """
    penalty, seen = request.params.get("repetition_penalty", 1.0), tokens_seen(request)
    if penalty == 1.0:
        return "REP-NEUTRAL" if only_changed(seen, logits, got) else "PROC-UNTOUCHED"
    logit, after, times = logits[token], got[token], seen.count(token)
    if not times:
        return "REP-OTHERS"
    if not math.isfinite(logit):
        return "REP-NONFINITE"
    if after == logit:
        return "REP-SEEN"
    often = reduce(penalised, [penalty] * times, logit)
    if times > 1 and is_about(often, after):
        return "REP-ONCE"
    return "NUM-SCALE" if is_about(penalised(logit, penalty), after) else "REP-SCALE"


def is_about(exact: float, got: float) -> bool:
    """Whether a number is about right, or what float32 makes of one that it does not hold."""
    return got == f32(exact) or is_rough(exact, got, abs(exact))


REPETITION_PENALTY = Kind(
    "repetition_penalty",
    ("repetition-penalty",),
    ("NUM-SCALE",),
    repetition_penalty,
    users,
    others,
    bears,
    blames,
    reads_outputs=True,
    reads_ids=True,
)
