"""top-p: of the tokens in descending order, the fewest whose probabilities sum up to p."""

from __future__ import annotations

import math
from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import mass_band
from logitsproc.reference.request import Params
from logitsproc.reference.row.min_p import narrowed, without_order


def top_p(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]) -> Expectation:
    """TOPP-NEUTRAL: what is left of the row; 1 leaves it alone.

    >>> top_p({"top_p": 0.7}, [], [], [0.0, 1.0, 2.0]).low
    [-inf, 1.0, 2.0]
    >>> top_p({"top_p": 1.0}, [], [], [0.0]).untouched
    True
    """
    p = params.get("top_p", 1.0)
    return keep_mass(untouched(logits), p) if p < 1.0 else untouched(logits)


def keep_mass(row: Expectation, p: float) -> Expectation:
    """TOPP-PREFIX, TOPP-TIES, TOPP-ONE, TOPP-KEPT-VALUES, TOPP-NONFINITE:
    a token stays if those before it do not reach p; equals are in any order, and what stays keeps its value.

    A token that earlier stages know to an interval only is kept or masked where the whole interval says so.

    >>> keep_mass(untouched([0.0, 0.0, 0.0, 0.0]), 0.4).kept
    (2, 2)
    """
    largest = max(row.high)
    if not math.isfinite(largest) or any(math.isnan(logit) for logit in row.low):
        return without_order(row)
    least = [0.0 if t in row.either else math.exp(low - largest) for t, low in enumerate(row.low)]
    most = [math.exp(high - largest) for high in row.high]
    enough, surely = p - mass_band(len(most)), p + mass_band(len(most))
    before, rivals = larger_masses(row, least, most), rival_masses(row, least, most)
    gone = {t for t, mass in enumerate(before) if mass >= surely}
    sure = {t for t, mass in enumerate(rivals) if mass < enough} - row.either
    return narrowed(row, gone, sure, fewest(most, least, enough), fewest(least, most, surely))


def larger_masses(row: Expectation, least: Sequence[float], most: Sequence[float]) -> list[float]:
    """TOPP-PREFIX: for each token, the least share of the mass that the tokens surely larger than it have.

    >>> larger_masses(untouched([0.0, 0.0, 1.0]), [1.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    [0.5, 0.5, 0.0]
    """
    order = sorted(range(len(least)), key=lambda t: row.low[t], reverse=True)
    light, heavy, at, found = 0.0, 0.0, 0, [0.0] * len(least)
    total = math.fsum(most)
    for token in sorted(range(len(least)), key=lambda t: row.high[t], reverse=True):
        while row.low[order[at]] > row.high[token]:
            light, heavy = light + least[order[at]], heavy + most[order[at]]
            at += 1
        found[token] = share(light, total - heavy)
    return found


def rival_masses(row: Expectation, least: Sequence[float], most: Sequence[float]) -> list[float]:
    """TOPP-TIES: for each token, the largest share of the mass that may come before it, its equals included.

    >>> rival_masses(untouched([0.0, 0.0, 1.0]), [1.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    [0.75, 0.75, 0.0]
    """
    order = sorted(range(len(least)), key=lambda t: row.high[t], reverse=True)
    light, heavy, at, found = 0.0, 0.0, 0, [0.0] * len(least)
    total = math.fsum(least)
    for token in sorted(range(len(least)), key=lambda t: row.low[t], reverse=True):
        while at < len(order) and row.high[order[at]] >= row.low[token]:
            light, heavy = light + least[order[at]], heavy + most[order[at]]
            at += 1
        found[token] = share(heavy - most[token], total - light + least[token])
    return found


def fewest(part: Sequence[float], rest: Sequence[float], wanted: float) -> int:
    """TOPP-ONE, NUM-MASS: how many tokens it takes to reach the mass, when these have `part` and the others `rest`.

    Each is worth what it adds to the part, and what it takes from the rest, in proportion to what is wanted.

    >>> fewest([1.0, 1.0, 2.0], [1.0, 1.0, 2.0], 0.6), fewest([2.0], [2.0], 0.0)
    (2, 1)
    """
    order = sorted(range(len(part)), key=lambda t: (1 - wanted) * part[t] + wanted * rest[t], reverse=True)
    taken, left = 0.0, math.fsum(rest)
    for count, token in enumerate(order, start=1):
        taken, left = taken + part[token], left - rest[token]
        if share(taken, left) >= wanted:
            return count
    return len(part)


def share(part: float, rest: float) -> float:
    """TOPP-PREFIX: the share of a part in the whole; nothing has none.

    >>> share(1.0, 3.0), share(0.0, 0.0)
    (0.25, 0.0)
    """
    return part / (part + max(rest, 0.0)) if part > 0 else 0.0
