"""Logit bias."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool, Row, is_rough
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.logit_bias import logit_bias


def users(chance: random.Random) -> Pool:
    """One token, several, a ban, a bias that float32 does not hold exactly, and token 0 alone."""
    token = chance.randrange(1, SMALLEST_VOCAB)
    return [
        {"logit_bias": {0: 5.0}},
        {"logit_bias": {1: -100.0, 3: 2.5}},
        {"logit_bias": {token: 0.1, 0: -0.7}},
    ]


def others(chance: random.Random) -> Pool:
    """No bias, the two neutral values, and other fields."""
    return [{}, {"logit_bias": None}, {"logit_bias": {}}, {"min_p": 0.2}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The bias clauses that this row shows."""
    bias = request.params.get("logit_bias")
    if not bias:
        return ("BIAS-NEUTRAL",)
    finite = all(math.isfinite(logits[token]) for token in bias)
    return ("BIAS-ADD", "NUM-EDIT", "BIAS-OTHERS") if finite else ("BIAS-NONFINITE", "BIAS-OTHERS")


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """BIAS-ADD, BIAS-OTHERS, BIAS-NEUTRAL, BIAS-NONFINITE, NUM-EDIT: which the token breaks."""
    bias = request.params.get("logit_bias")
    if not bias:
        return "PROC-UNTOUCHED" if bias is None else "BIAS-NEUTRAL"
    if token not in bias:
        return "BIAS-OTHERS"
    if not math.isfinite(logits[token]):
        return "BIAS-NONFINITE"
    magnitude = max(abs(logits[token]), abs(bias[token]))
    return "NUM-EDIT" if is_rough(logits[token] + bias[token], got[token], magnitude) else "BIAS-ADD"


LOGIT_BIAS = Kind("logit_bias", ("logit-bias",), ("NUM-EDIT",), logit_bias, users, others, bears, blames)
