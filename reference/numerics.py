"""Float32 arithmetic on Python floats, and the bands in which a rounding or a threshold may fall either way."""

from __future__ import annotations

import math
from ctypes import c_float

MASKED = -math.inf
EPSILON = 2.0**-23
"""The relative spacing of float32."""
SMALLEST = 2.0**-149
"""The smallest float32 above 0."""


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


def scaled(exact: float) -> tuple[float, float]:
    """NUM-SCALE: what a logit may be whose product or quotient with a parameter is exactly this.

    >>> scaled(0.0), scaled(-math.inf)
    ((0.0, 0.0), (-inf, -inf))
    >>> low, high = scaled(3.0)
    >>> low < 3.0 < high
    True
    """
    return spread(exact, 2 * EPSILON * abs(exact) + SMALLEST if exact else 0.0)


def lowered(logit: float, parameter: float, count: int) -> tuple[float, float]:
    """NUM-PRODUCT: what a logit may be that a parameter is taken from so many times.

    >>> low, high = lowered(1.0, 0.1, 3)
    >>> low < 1.0 - 0.3 < high
    True
    """
    taken = parameter * count
    return spread(logit - taken, EPSILON / 2 * (count + 2) * (abs(logit) + abs(taken)) + count * SMALLEST)


def spread(exact: float, slack: float) -> tuple[float, float]:
    """NUM-SCALE, NUM-PRODUCT: the float32 numbers from exact - slack to exact + slack; what is not finite stays.

    >>> spread(1.0, 0.25), spread(math.inf, math.inf)
    ((0.75, 1.25), (inf, inf))
    """
    if not math.isfinite(exact):
        return exact, exact
    return f32(exact - slack), f32(exact + slack)


def band(log_share: float, edge: float) -> float:
    """NUM-BAND: half the width, in logits, of the zone around a threshold where either answer is right.

    log_share: the natural logarithm of the share of the largest probability. edge: the threshold in logits.

    >>> band(0.0, 0.0) == 4 * EPSILON
    True
    """
    return EPSILON * (4 + abs(log_share) + abs(edge))


def mass_band(tokens: int) -> float:
    """NUM-MASS: half the width, in probability, of the zone around p where either answer is right.

    >>> mass_band(1) == 2.0**-18
    True
    """
    return 2.0**-18 + 2.0**-24 * math.log2(tokens)
