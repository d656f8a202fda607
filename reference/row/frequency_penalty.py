"""Frequency penalty: a token is made less likely by a step for each time that the output has it."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import lowered
from logitsproc.reference.request import Params


def frequency_penalty(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """FREQ-SUBTRACT, FREQ-OUTPUTS, FREQ-OTHERS, FREQ-NEUTRAL, FREQ-NONFINITE:
    logit - penalty * occurrences in the output, the others as they are.

    >>> row = frequency_penalty({"frequency_penalty": 0.5}, [0], [1, 1], [4.0, 4.0])
    >>> row.low[0], round(row.low[1], 5)
    (4.0, 3.0)
    >>> frequency_penalty({"frequency_penalty": 0.0}, [], [1], [4.0]).untouched
    True
    """
    penalty = params.get("frequency_penalty", 0.0)
    if not penalty:
        return untouched(logits)
    low, high = list(logits), list(logits)
    for token in {token for token in output if 0 <= token < len(logits)}:
        low[token], high[token] = lowered(logits[token], penalty, list(output).count(token))
    return Expectation(low, high, signs=False)
