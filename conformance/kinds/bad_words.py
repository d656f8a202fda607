"""Bad words."""

from __future__ import annotations

import random

from logitsproc.conformance.kinds.kind import SMALLEST_VOCAB, Kind, Pool, Row, only_masked
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.bad_words import bad_words, completing_tokens, ends_with


def users(chance: random.Random) -> Pool:
    """Words of one to three tokens; words that begin where a prompt ends, or lie in it but for their last token."""
    return [
        {"bad_words_token_ids": [[1, 2]]},
        {"bad_words_token_ids": [[6]]},
        {"bad_words_token_ids": [[2, 1, 3], [3, 1, 4], [1, 5]]},
        {"bad_words_token_ids": [[chance.randrange(SMALLEST_VOCAB)], [3, 6], [0, 4, 7]]},
    ]


def others(chance: random.Random) -> Pool:
    """No words, the two neutral values, and other fields."""
    return [{}, {"bad_words_token_ids": None}, {"bad_words_token_ids": []}, {"allowed_token_ids": [1, 6]}]


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The bad-words clauses that this row shows."""
    words = request.params.get("bad_words_token_ids")
    if not words:
        return ("BAD-NEUTRAL",)
    shows = ["BAD-OUTPUTS"] if through_prompt(request) else []
    if expectation.untouched:
        return tuple(shows)
    if any(len(word) == 1 for word in words):
        shows.append("BAD-SINGLE")
    if any(len(word) > 1 and ends_with(request.output, word[:-1]) for word in words):
        shows.append("BAD-COMPLETE")
    return (*shows, "BAD-OTHERS")


def through_prompt(request: Request) -> set[int]:
    """The tokens that complete a word of which the prompt has a part."""
    whole = [*(request.prompt or ()), *request.output]
    return completing_tokens(request.params, whole) - completing_tokens(request.params, request.output)


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """BAD-COMPLETE, BAD-SINGLE, BAD-OUTPUTS, BAD-OTHERS, BAD-NEUTRAL: which the token breaks.

    What bad words never do to a row is not their clause.
    """
    words = request.params.get("bad_words_token_ids")
    if not words:
        return "BAD-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    if [token] in words:
        return "BAD-SINGLE"
    if token in through_prompt(request):
        return "BAD-OUTPUTS"
    return "BAD-COMPLETE" if any(word[-1] == token for word in words) else "BAD-OTHERS"


BAD_WORDS = Kind(
    "bad_words", ("bad-words",), (), bad_words, users, others, bears, blames, reads_outputs=True, reads_ids=True
)
