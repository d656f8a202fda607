"""Which params a transformation takes: the domain of every field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from logitsproc.reference.request import Params

LEAST, MOST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""The smallest and the largest normal float32."""

Test = Callable[[Any], bool]


def validate(params: Params) -> None:
    """VAL-ERROR, VAL-PURE, VAL-ACCEPT, VAL-LATER: raises ValueError for a field outside its domain, and does no more.

    >>> validate({"top_p": 0.0})
    Traceback (most recent call last):
    ValueError: top_p must be a number above 0 and up to 1, not 0.0
    """
    for field, value in params.items():
        if field in DOMAINS and not DOMAINS[field].has(value):
            raise ValueError(f"{field} must be {DOMAINS[field].says}, not {value!r}")


def is_number(value: Any) -> bool:
    """VAL-DOMAIN: an int or a float that is finite.

    >>> is_number(1), is_number("1"), is_number(math.inf)
    (True, False, False)
    """
    return is_real(value) and -math.inf < value < math.inf


def is_real(value: Any) -> bool:
    """VAL-DOMAIN: an int or a float.

    >>> is_real(math.nan), is_real("1")
    (True, False)
    """
    return isinstance(value, int | float)


def is_count(value: Any) -> bool:
    """VAL-DOMAIN: an int that is not negative.

    >>> is_count(0), is_count(-1), is_count(1.0)
    (True, False, False)
    """
    return isinstance(value, int) and value >= 0


def between(least: float, most: float) -> Test:
    """VAL-DOMAIN: a number from least to most.

    >>> between(0, 1)(1.0), between(0, 1)(1.5)
    (True, False)
    """
    return lambda value: is_number(value) and least <= value <= most


def are_tokens(value: Any) -> bool:
    """VAL-DOMAIN: token ids, at least one.

    >>> are_tokens([0]), are_tokens([]), are_tokens([-1])
    (True, False, False)
    """
    return isinstance(value, list | tuple | set) and bool(value) and all(map(is_count, value))


def are_words(value: Any) -> bool:
    """VAL-DOMAIN: bad words, each of at least one token id.

    >>> are_words([[1, 2]]), are_words([]), are_words([[]])
    (True, True, False)
    """
    words = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(word, list | tuple) and are_tokens(word) for word in words)


def is_bias(value: Any) -> bool:
    """VAL-DOMAIN: numbers by token id.

    >>> is_bias({0: 1.5}), is_bias({-1: 1.5})
    (True, False)
    """
    return isinstance(value, Mapping) and all(map(is_count, value)) and all(map(is_real, value.values()))


def or_none(test: Test) -> Test:
    """VAL-DOMAIN: None, or what passes the test.

    >>> or_none(is_count)(None)
    True
    """
    return lambda value: value is None or test(value)


class Domain(NamedTuple):
    """What a field may be: in words, and as a test."""

    says: str
    has: Test


DOMAINS: dict[str, Domain] = {
    "allowed_token_ids": Domain("None or a list of at least one token id", or_none(are_tokens)),
    "bad_words_token_ids": Domain("None or a list of lists of at least one token id", or_none(are_words)),
    "min_tokens": Domain("a number of tokens", is_count),
    "stop_token_ids": Domain("None or a list of token ids", or_none(lambda value: value == [] or are_tokens(value))),
    "logit_bias": Domain("None or numbers by token id", or_none(is_bias)),
    "repetition_penalty": Domain("a number above 0", lambda value: is_number(value) and value > 0),
    "frequency_penalty": Domain("a number from -2 to 2", between(-2, 2)),
    "presence_penalty": Domain("a number from -2 to 2", between(-2, 2)),
    "temperature": Domain("a number from 0 to 2", between(0, 2)),
    "min_p": Domain("a number from 0 to 1", between(0, 1)),
    "top_k": Domain("-1, 0 or a number of tokens", lambda value: is_count(value) or is_minus_one(value)),
    "top_p": Domain("a number above 0 and up to 1", lambda value: is_number(value) and 0 < value <= 1),
}


def is_minus_one(value: Any) -> bool:
    """VAL-DOMAIN: the int -1, which says 'none' for top_k.

    >>> is_minus_one(-1), is_minus_one(-1.0)
    (True, False)
    """
    return isinstance(value, int) and value == -1


def has_floats(params: Params) -> bool:
    """VAL-FLOAT: whether every number that is calculated with is a normal float32, or 0, and so is its reciprocal
    where one divides.

    >>> has_floats({"logit_bias": {0: 1e39}}), has_floats({"repetition_penalty": 1e-40}), has_floats({"min_p": 0.0})
    (False, False, True)
    """
    biases = (params.get("logit_bias") or {}).values()
    divisors = [params[field] for field in ("repetition_penalty", "temperature") if params.get(field)]
    return all(not bias or LEAST <= abs(bias) <= MOST for bias in biases) and all(
        LEAST <= divisor <= 1 / LEAST for divisor in divisors
    )


def named_tokens(params: Params) -> Iterable[int]:
    """VAL-VOCABULARY: every token id that the params name.

    >>> sorted(named_tokens({"stop_token_ids": [3], "bad_words_token_ids": [[1, 2]]}))
    [1, 2, 3]
    """
    for field in ("allowed_token_ids", "stop_token_ids", "logit_bias"):
        yield from params.get(field) or ()
    for word in params.get("bad_words_token_ids") or ():
        yield from word


def in_vocabulary(params: Params, vocab: int) -> bool:
    """VAL-VOCABULARY: whether every token id that the params name is one of the vocabulary's.

    >>> in_vocabulary({"logit_bias": {8: 1.0}}, 8)
    False
    """
    return all(0 <= token < vocab for token in named_tokens(params))
