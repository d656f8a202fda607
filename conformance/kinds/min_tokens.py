"""min-tokens."""

from __future__ import annotations

import random

from logitsproc.conformance.kinds.kind import Kind, Pool, Row, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.min_tokens import min_tokens, stop_tokens


def users(chance: random.Random) -> Pool:
    """Stop ids, the end-of-sequence id, and both; boundaries that short histories reach."""
    return [
        {"min_tokens": 3, "stop_token_ids": [2]},
        {"min_tokens": 2, "stop_token_ids": [1, 4], "eos_token_id": 0},
        {"min_tokens": 9, "stop_token_ids": [6]},
        {"min_tokens": chance.randrange(1, 5), "eos_token_id": 5},
    ]


def others(chance: random.Random) -> Pool:
    """Nothing asked, the neutral value, and nothing to stop at."""
    return [{}, {"min_tokens": 0, "stop_token_ids": [3]}, {"min_tokens": 4}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The min-tokens clauses that this row shows."""
    params = request.params
    if not params.get("min_tokens") or not stop_tokens(params):
        return ("MINTOK-NEUTRAL",)
    if expectation.untouched:
        return ("MINTOK-RELEASE",)
    ends = ("MINTOK-EOS",) if params.get("eos_token_id") is not None else ()
    stops = ("MINTOK-BLOCK",) if params.get("stop_token_ids") else ()
    return (*ends, *stops, "MINTOK-OTHERS")


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """MINTOK-BLOCK, MINTOK-EOS, MINTOK-RELEASE, MINTOK-OTHERS, MINTOK-NEUTRAL: which the token breaks."""
    params = request.params
    if not params.get("min_tokens") or not stop_tokens(params):
        return "MINTOK-NEUTRAL" if params and only_masked(logits, got) else "PROC-UNTOUCHED"
    if token == params.get("eos_token_id") and got[token] == logits[token]:
        return "MINTOK-EOS"
    if token in (params.get("stop_token_ids") or ()) and got[token] == logits[token]:
        return "MINTOK-BLOCK"
    is_stop = token in (params.get("stop_token_ids") or ()) or token == params.get("eos_token_id")
    return "MINTOK-RELEASE" if is_stop else "MINTOK-OTHERS"


MIN_TOKENS = Kind("min_tokens", ("min-tokens",), (), min_tokens, users, others, bears, blames, reads_outputs=True)
