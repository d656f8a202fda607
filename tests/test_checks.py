"""The quick ways to hold a row to what it may be say what the reference says."""

import math
import random
from collections.abc import Callable

from logitsproc.conformance.checks import allows
from logitsproc.reference.expectation import Expectation, admits
from logitsproc.reference.numerics import MASKED

ROWS = 4000
TOKENS = 4
VALUES = (MASKED, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan)


def expectation(chance: random.Random) -> Expectation:
    """Any intervals, with tokens that may be masked, and a number of them that may be kept, now and then."""
    low = [chance.choice(VALUES) for _ in range(TOKENS)]
    high = [chance.choice((value, value + 1.0)) for value in low]
    either = frozenset(token for token in range(TOKENS) if chance.random() < 0.3)
    return Expectation(low, high, either, kept=chance.choice((None, None, (0, 1), (1, 2))))


def row_of(expected: Expectation, chance: random.Random) -> list[float]:
    """A row that is mostly as expected."""
    pick: tuple[Callable[[int], float], ...] = (
        lambda token: expected.low[token],
        lambda token: expected.high[token],
        lambda token: MASKED if token in expected.either else expected.low[token],
        lambda token: chance.choice(VALUES),
    )
    return [chance.choices(pick, (4, 4, 4, 1))[0](token) for token in range(TOKENS)]


def test_what_is_allowed_is_what_the_reference_admits() -> None:
    chance = random.Random(0)
    answers = []
    for _ in range(ROWS):
        expected = expectation(chance)
        got = row_of(expected, chance)
        answers.append(allows(expected, got))
        assert answers[-1] == admits(expected, got), (expected, got)
    assert ROWS / 5 < sum(answers) < 4 * ROWS / 5
