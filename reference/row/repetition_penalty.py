"""Repetition penalty: tokens that the prompt or the output has already are made less likely by a factor."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import scaled
from logitsproc.reference.request import Params


def repetition_penalty(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """REP-SEEN, REP-ONCE, REP-OTHERS, REP-NEUTRAL: each token of prompt or output once, the others as they are.

    >>> repetition_penalty({"repetition_penalty": 2.0}, [0], [1, 1], [4.0, -4.0, 4.0]).low[2]
    4.0
    >>> repetition_penalty({"repetition_penalty": 1.0}, [0], [], [4.0]).untouched
    True
    """
    penalty = params.get("repetition_penalty", 1.0)
    seen = {token for token in [*(prompt or ()), *output] if 0 <= token < len(logits)}
    if penalty == 1.0 or not seen:
        return untouched(logits)
    low, high = list(logits), list(logits)
    for token in seen:
        low[token], high[token] = scaled(penalised(logits[token], penalty))
    return Expectation(low, high)


def penalised(logit: float, penalty: float) -> float:
    """REP-SCALE, REP-NONFINITE: a logit above 0 is divided by the penalty, any other is multiplied with it.

    >>> penalised(4.0, 2.0), penalised(-4.0, 2.0)
    (2.0, -8.0)
    """
    return logit / penalty if logit > 0 else logit * penalty
