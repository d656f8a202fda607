"""Logit bias: a number is added to the logits of the tokens that the request names."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import rounded
from logitsproc.reference.request import Params


def logit_bias(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """BIAS-ADD, BIAS-OTHERS, BIAS-NEUTRAL, BIAS-NONFINITE: logit + bias for the named tokens, the others as they are.

    >>> logit_bias({"logit_bias": {1: 2.0}}, [], [], [0.0, 1.0]).low
    [0.0, 3.0]
    >>> logit_bias({"logit_bias": {}}, [], [], [0.0]).untouched
    True
    """
    bias = params.get("logit_bias")
    if not bias:
        return untouched(logits)
    low, high = list(logits), list(logits)
    for token, value in bias.items():
        low[token], high[token] = rounded(logits[token], value)
    return Expectation(low, high)
