"""Presence penalty: a token that the output has is made less likely by one step."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import rounded
from logitsproc.reference.request import Params


def presence_penalty(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """PRES-SUBTRACT, PRES-ONCE, PRES-OUTPUTS, PRES-OTHERS, PRES-NEUTRAL, PRES-NONFINITE:
    logit - penalty for each token of the output, however often it is there; the others as they are.

    >>> presence_penalty({"presence_penalty": 0.5}, [0], [1, 1], [4.0, 4.0]).low
    [4.0, 3.5]
    >>> presence_penalty({"presence_penalty": 0.0}, [], [1], [4.0]).untouched
    True
    """
    penalty = params.get("presence_penalty", 0.0)
    if not penalty:
        return untouched(logits)
    low, high = list(logits), list(logits)
    for token in {token for token in output if 0 <= token < len(logits)}:
        low[token], high[token] = rounded(logits[token], -penalty)
    return Expectation(low, high, signs=False)
