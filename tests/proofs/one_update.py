"""One update, in values that a solver chooses: the list and the row table have the same after it.

`python -m logitsproc.proofs.one_update` gives every path of one Hypothesis property to CrossHair. The property has to
hold on all of them, and to fail for each of the errors planted in the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans, builds, integers
from hypothesis_crosshair_provider.crosshair_provider import CrossHairPrimitiveProvider

from logitsproc.proofs.cases import BATCH, OTHER, USES, difference, followers, story, told
from logitsproc.proofs.errors import (
    KeepsTheOverwritten,
    KeepsTheRemoved,
    KeepsTheReplaced,
    LeavesAGhost,
    MovesFirst,
    MovesOneWay,
)
from logitsproc.proofs.exhaustive import UPDATED
from logitsproc.proofs.statement import EXHAUSTIVE, REFUTED, UNKNOWN, Planted, Result, code_with, planted
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, IllFormed, Update
from logitsproc.reference.request import Request

NAME = "one_update"
SENTENCE = "After any one update the row table has the rows and the states that the list has."
BOUND = "three rows, the middle one without a state; up to one removal, one addition and one move"
BEFORE = (BATCH[0], OTHER, BATCH[2])
ROWS = len(BEFORE)
PLANTED = (
    planted(Users=KeepsTheRemoved),
    planted(Users=KeepsTheReplaced),
    planted(Users=KeepsTheOverwritten),
    planted(Users=MovesOneWay),
    planted(Users=MovesFirst),
    planted(RowTable=LeavesAGhost),
)
SETTINGS = settings(
    backend="crosshair",
    max_examples=2_000,
    deadline=timedelta(seconds=10),
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""As many examples as exhaust the property, with room; when CrossHair is done, Hypothesis draws the rest itself."""


class Drawn(NamedTuple):
    """One update in numbers and truth values, symbolic or plain; a row that is one too high stands for no operation.

    uses: whether the request added has a state.
    """

    removed: int
    added: int
    uses: bool
    source: int
    destination: int
    both_ways: bool


DRAWN = integers(0, ROWS), integers(0, ROWS + 1), booleans(), integers(0, ROWS), integers(0, ROWS - 1), booleans()


class Search(NamedTuple):
    """What came of one search: the trouble it found, how many paths it took, and whether there are no others."""

    trouble: str | None
    paths: int
    exhausted: bool


def update_of(drawn: Drawn) -> Update:
    """The update, with each row settled only if it takes part."""
    removed, added, source = settled(drawn.removed), settled(drawn.added), settled(drawn.source)
    new = Request("N", USES if drawn.uses else {}) if added <= ROWS else None
    removals, additions = (removed,) if removed < ROWS else (), ((added, new),) if new else ()
    if source == ROWS:
        return Update(ROWS + 1, removals, additions)
    direction = SWAP if drawn.both_ways else UNIDIRECTIONAL
    return Update(ROWS + 1, removals, additions, ((source, settled(drawn.destination), direction),))


def settled(number: int) -> int:
    """The number as a plain one: each that it can be is a path of its own."""
    return next(plain for plain in range(ROWS + 2) if plain == number)


def trouble_with(code: SimpleNamespace, update: Update) -> str | None:
    """What the table has otherwise than the list after the update; an ill-formed one asks nothing of it."""
    batch, users = list[Request | None](BEFORE), followers(code, BEFORE)
    try:
        code.apply_update(batch, update)
    except IllFormed:
        return None
    users.follow(told(update))
    trouble = difference(batch, users)
    return story(BEFORE, update, trouble) if trouble else None


def property_of(code: SimpleNamespace) -> Callable[[], None]:
    """The property, of this code, which CrossHair draws for."""

    @SETTINGS
    @given(builds(Drawn, *DRAWN))
    def holds(drawn: Drawn) -> None:
        trouble = trouble_with(code, update_of(drawn))
        assert trouble is None, trouble

    return holds


def searched(code: SimpleNamespace) -> Search:
    """What a search finds in this code; what goes wrong otherwise than by the property is raised."""
    trouble = None
    with watched() as providers:
        try:
            property_of(code)()
        except AssertionError as error:
            trouble = str(error).partition("\n")[0]
    (provider,) = providers
    return Search(trouble, provider.iteration_number - provider.exhausted, is_exhausted(provider))


@contextmanager
def watched() -> Iterator[list[Any]]:
    """The providers that Hypothesis makes meanwhile, to be asked how far they came."""
    made: list[Any] = []
    make = CrossHairPrimitiveProvider.__init__

    def noted(provider: Any, *arguments: Any, **named: Any) -> None:
        make(provider, *arguments, **named)
        made.append(provider)

    with patch.object(CrossHairPrimitiveProvider, "__init__", noted):
        yield made


def is_exhausted(provider: Any) -> bool:
    """Whether every path was taken to its end: none is left, and none was given up."""
    return bool(provider.exhausted and provider.covering)


def judged() -> Result:
    """What the search finds in the shipped code, and whether it finds each planted error."""
    started = time.perf_counter()
    search = searched(code_with())
    missed = [error.says for error in PLANTED if not is_found(error)]
    unfinished = None if search.trouble or search.exhausted else "some path was not taken to its end"
    troubles = [search.trouble, unfinished, *(f"not found: {says}" for says in missed)]
    found = tuple(trouble for trouble in troubles if trouble)
    return Result(
        name=NAME,
        sentence=SENTENCE,
        clauses=UPDATED,
        verdict=(UNKNOWN if unfinished else REFUTED) if found else EXHAUSTIVE,
        bound=BOUND,
        count=search.paths,
        unit="paths",
        refuted=len(PLANTED) - len(missed),
        planted=len(PLANTED),
        troubles=found,
        seconds=time.perf_counter() - started,
    )


def is_found(error: Planted) -> bool:
    """Whether the property fails with the error in the code."""
    return searched(code_with(error)).trouble is not None


def told_of(result: Result) -> Iterator[str]:
    """What is printed: one line, and one for each trouble."""
    found = f"{result.refuted} of {result.planted} planted errors found"
    yield f"{result.name}  {result.verdict}  {result.count} {result.unit}, {found}  {result.seconds:.1f} s"
    yield from (f"  {trouble}" for trouble in result.troubles)


def main() -> int:
    """Prints what comes of the search; 0 if the property holds on every path and every planted error is found."""
    result = judged()
    print("\n".join(told_of(result)))
    return int(result.verdict != EXHAUSTIVE)


if __name__ == "__main__":
    sys.exit(main())
