"""Which values a field of the params may have: tests by type first, so that no value makes one of them raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SMALLEST, LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""The smallest and the largest normal float32."""


def require(field: str, value: Any, domain: str, within: bool) -> None:
    """VAL-ERROR: raises ValueError when the value is not within the field's domain. domain: in words.

    >>> require("min_p", "hot", "in [0, 1]", is_number("hot", 0, 1))
    Traceback (most recent call last):
    ValueError: min_p must be in [0, 1], not 'hot'
    """
    if not within:
        raise ValueError(f"{field} must be {domain}, not {value!r}")


def is_number(value: Any, least: float, most: float) -> bool:
    """VAL-DOMAIN: whether it is an int or a float from `least` to `most`.

    >>> [is_number(value, 0, 1) for value in (1, 0.5, "1", float("nan"), 10**400, None)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, int | float) and least <= value <= most


def is_integer(value: Any, least: int) -> bool:
    """VAL-DOMAIN: whether it is an int from `least` on.

    >>> [is_integer(value, 0) for value in (0, -1, 1.0)]
    [True, False, False]
    """
    return isinstance(value, int) and value >= least


def are_tokens(value: Any) -> bool:
    """VAL-DOMAIN: whether it is a list, a tuple or a set of token ids, which are ints from 0 on.

    >>> [are_tokens(value) for value in ([0, 7], (), {1}, [-1], "12", None)]
    [True, True, True, False, False, False]
    """
    return isinstance(value, list | tuple | set) and all(is_integer(token, 0) for token in value)


def are_words(value: Any) -> bool:
    """VAL-DOMAIN: whether it is a list or a tuple of words, each a list or a tuple of at least one token id.

    >>> [are_words(value) for value in ([[1, 2]], [], [[]], [1], [{1}])]
    [True, True, False, False, False]
    """
    return isinstance(value, list | tuple) and all(
        isinstance(word, list | tuple) and bool(word) and are_tokens(word) for word in value
    )


def are_biases(value: Any) -> bool:
    """VAL-DOMAIN, VAL-FLOAT: whether it maps token ids to numbers that are 0 or, in magnitude, normal in float32.

    >>> [are_biases(value) for value in ({3: -1.5}, {3: 0}, {3: 1e39}, {3: 1e-40}, {-1: 1.0}, [3])]
    [True, True, False, False, False, False]
    """
    return isinstance(value, Mapping) and all(
        is_integer(token, 0) and is_number(number, -LARGEST, LARGEST) and (number == 0 or abs(number) >= SMALLEST)
        for token, number in value.items()
    )
