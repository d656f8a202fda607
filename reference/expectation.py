"""What a row may be: per token a closed interval, or masked, or either."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from logitsproc.reference.numerics import MASKED


@dataclass(frozen=True, slots=True)
class Expectation:
    """Token t is in [low[t], high[t]]; a masked token has both at -inf; a token in `either` may be masked too.

    `kept` bounds how many tokens of `either` are not masked, where that is known.
    `untouched` says more: the row comes out bit for bit as it went in. `signs`: whether a zero keeps its sign.
    """

    low: Sequence[float]
    high: Sequence[float]
    either: frozenset[int] = frozenset()
    untouched: bool = False
    kept: tuple[int, int] | None = None
    signs: bool = True


def untouched(logits: Sequence[float]) -> Expectation:
    """PROC-UNTOUCHED: the row as it went in.

    >>> untouched([0.0, 1.0]).untouched
    True
    """
    return Expectation(logits, logits, untouched=True)


def exact(values: Sequence[float]) -> Expectation:
    """NUM-EDIT: these values and no others.

    >>> admits(exact([0.0, MASKED]), [0.0, MASKED])
    True
    """
    return Expectation(values, values)


def admits(expectation: Expectation, got: Sequence[float]) -> bool:
    """NUM-EDIT, NUM-BAND: whether the row is one that the expectation allows.

    >>> admits(Expectation([0.0, 1.0], [0.0, 1.0], either=frozenset({1})), [0.0, MASKED])
    True
    """
    return not refused(expectation, got)


def refused(expectation: Expectation, got: Sequence[float]) -> list[int]:
    """NUM-EDIT, NUM-BAND: the tokens at which the row is not what it may be.

    >>> refused(exact([0.0, math.nan, 2.0]), [0.0, math.nan, 2.5])
    [2]
    """
    wrong = [token for token, value in enumerate(got) if not admits_token(expectation, token, value)]
    return wrong or miscounted(expectation, got)


def admits_token(expectation: Expectation, token: int, value: float) -> bool:
    """NUM-EDIT, NUM-BAND: inside the interval; or masked where that is allowed; NaN only where NaN is expected.

    >>> admits_token(exact([1.0]), 0, math.nan)
    False
    """
    low, high = expectation.low[token], expectation.high[token]
    if math.isnan(low):
        return math.isnan(value)
    return low <= value <= high or (value == MASKED and token in expectation.either)


def miscounted(expectation: Expectation, got: Sequence[float]) -> list[int]:
    """TOPP-TIES, NUM-MASS: the tokens that may be kept or masked, when too many or too few of them are kept.

    >>> miscounted(Expectation([0.0, 0.0], [0.0, 0.0], frozenset({0, 1}), kept=(1, 1)), [0.0, 0.0])
    [0, 1]
    """
    if expectation.kept is None:
        return []
    least, most = expectation.kept
    kept = [token for token in sorted(expectation.either) if got[token] != MASKED]
    if len(kept) > most:
        return kept
    return sorted(expectation.either - set(kept)) if len(kept) < least else []
