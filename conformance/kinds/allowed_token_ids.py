"""Allowed token ids."""

from __future__ import annotations

import math
import random

from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool, Row, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Request
from logitsproc.reference.row.allowed_token_ids import allowed_token_ids


def users(chance: random.Random) -> Pool:
    """Lists out of order, with an id twice, of one id, and of all but one."""
    return [
        {"allowed_token_ids": [3, 1]},
        {"allowed_token_ids": [6, 2, 6, 0]},
        {"allowed_token_ids": [chance.randrange(SMALLEST_VOCAB)]},
        {"allowed_token_ids": [1, 2, 3, 4, 5, 6, 7]},
    ]


def others(chance: random.Random) -> Pool:
    """No list, and other fields."""
    return [{}, {"allowed_token_ids": None}, {"bad_words_token_ids": [[6]]}, {"temperature": 0.7}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The allowed-ids clauses that this row shows."""
    allowed = request.params.get("allowed_token_ids")
    if allowed is None:
        return ("ALLOW-NEUTRAL",)
    unlisted = [logit for token, logit in enumerate(logits) if token not in allowed]
    shows = ["ALLOW-KEPT"]
    if any(map(math.isfinite, unlisted)):
        shows.append("ALLOW-MASK")
    if any(math.isnan(logit) or logit == math.inf for logit in unlisted):
        shows.append("ALLOW-FILL")
    return tuple(shows)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """ALLOW-MASK, ALLOW-FILL, ALLOW-KEPT, ALLOW-NEUTRAL: which the row breaks, whatever the token.

    A row that lets other tokens through is a wrong mask, also where it masks what is listed. What the mask never does
    to a row without a list is not its clause.
    """
    allowed = request.params.get("allowed_token_ids")
    if allowed is None:
        return "ALLOW-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    passed = [logits[token] for token, after in enumerate(got) if token not in allowed and after != MASKED]
    if not passed:
        return "ALLOW-KEPT"
    return "ALLOW-MASK" if any(map(math.isfinite, passed)) else "ALLOW-FILL"


ALLOWED_TOKEN_IDS = Kind(
    "allowed_token_ids", ("allowed-token-ids",), (), allowed_token_ids, users, others, bears, blames
)
