"""Allowed token ids: every token that the request does not list is masked."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, exact, untouched
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params


def allowed_token_ids(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """ALLOW-MASK, ALLOW-KEPT, ALLOW-FILL, ALLOW-NEUTRAL: what is not listed is masked, whatever it was; what is
    listed stays, listed once or more often.

    >>> allowed_token_ids({"allowed_token_ids": [2, 0]}, [], [], [0.0, 1.0, 2.0]).low
    [0.0, -inf, 2.0]
    >>> allowed_token_ids({"allowed_token_ids": None}, [], [], [0.0]).untouched
    True
    """
    allowed = params.get("allowed_token_ids")
    if allowed is None:
        return untouched(logits)
    return exact([logit if token in allowed else MASKED for token, logit in enumerate(logits)])
