"""Temperature: every logit is divided by it."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import scaled
from logitsproc.reference.request import Params

GREEDY_BELOW = 1e-5


def temperature(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """TEMP-DIVIDE, TEMP-NEUTRAL, TEMP-NONFINITE: logit / temperature; 1 and a greedy request leave the row alone.

    >>> temperature({"temperature": 0.0}, [], [], [3.0]).untouched, temperature({}, [], [], [3.0]).untouched
    (True, True)
    >>> row = temperature({"temperature": 0.5}, [], [], [3.0, 0.0])
    >>> row.low[0] < 6.0 < row.high[0], row.low[1]
    (True, 0.0)
    """
    divisor = params.get("temperature", 1.0)
    if divisor == 1.0 or is_greedy(params):
        return untouched(logits)
    low, high = zip(*[scaled(logit / divisor) for logit in logits], strict=True)
    return Expectation(low, high)


def is_greedy(params: Params) -> bool:
    """TEMP-GREEDY, PIPE-GREEDY: a temperature below 1e-5 asks for the largest logit.

    >>> is_greedy({"temperature": 0.0}), is_greedy({})
    (True, False)
    """
    return bool(params.get("temperature", 1.0) < GREEDY_BELOW)
