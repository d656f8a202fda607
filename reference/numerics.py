"""Float32 arithmetic on Python floats, and the band in which a threshold may fall either way."""

from __future__ import annotations

import math
from ctypes import c_float

MASKED = -math.inf
EPSILON = 2.0**-23
"""The relative spacing of float32."""


def f32(value: float) -> float:
    """NUM-EDIT: the float32 nearest to the value; beyond the largest, infinity.

    >>> f32(0.1), f32(1e39)
    (0.10000000149011612, inf)
    """
    return c_float(value).value


def rounded(value: float, parameter: float) -> tuple[float, float]:
    """NUM-EDIT: logit + parameter, rounded once; the parameter as given or as its float32, in ascending order.

    >>> rounded(1.0, 0.5)
    (1.5, 1.5)
    >>> low, high = rounded(1.0, 0.1)
    >>> high - low <= EPSILON
    True
    """
    one, other = f32(value + parameter), f32(value + f32(parameter))
    return (other, one) if other < one else (one, other)


def band(log_share: float, edge: float) -> float:
    """NUM-BAND: half the width, in logits, of the zone around a threshold where either answer is right.

    log_share: the natural logarithm of the share of the largest probability. edge: the threshold in logits.

    >>> band(0.0, 0.0) == 4 * EPSILON
    True
    """
    return EPSILON * (4 + abs(log_share) + abs(edge))
