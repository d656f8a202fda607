"""Failing cases become as small as they can be, whatever way they lead to the failure."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from logitsproc.conformance.history import Added, Arrival, Growth, History, Step
from logitsproc.conformance.mutants.shortest import events
from logitsproc.conformance.plans import Case, Plan, lower, name_of
from logitsproc.conformance.shrinking import ATTEMPTS, shrink
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL
from logitsproc.reference.producer import ELIDED, EXPLICIT

USER = {"min_p": 0.5}
LONG = {"min_tokens": 9}
MANY = 12
ALL = "".join(name_of(number) for number in range(MANY))
SMALL_VOCAB = 8


def case_of(*items: Plan | Step, users: str = "B", params: dict[str, object] = USER, dialect: str = ELIDED) -> Case:
    """A case of many requests, some of which use the processor, and all of which have a long prompt."""
    requests = {name: Arrival(params if name in users else {}, prompt=(5, 1, 3) * 3) for name in ALL}
    return Case(History(requests, vocab=64, palette="ties", offset=3, kind="min_p"), items, dialect)


def come(names: str, swaps: tuple[tuple[int, int], ...] = ()) -> Plan:
    return Plan(come=tuple((name, False) for name in names), swaps=swaps)


def replaces(history: History) -> bool:
    """Whether a user comes where another request stands."""
    stands: set[int] = set()
    for step in history.steps:
        goes = {source: destination for source, destination, _ in step.moved}
        came = {goes.get(add.row, add.row): history.requests[add.request] for add in step.added}
        if any(row in stands and arrival.params for row, arrival in came.items()):
            return True
        stands |= set(came)
    return False


def swaps_a_user_below(history: History) -> bool:
    """Whether a swap takes a user to row 0 and another request to a higher row."""
    rows = {add.row: bool(history.requests[add.request].params) for add in history.steps[0].added}
    for source, destination, direction in history.steps[0].moved:
        if direction == SWAP and (rows[source], rows[destination]) != (None, None):
            rows[source], rows[destination] = rows[destination], rows[source]
            if rows[0] and False in rows.values():
                return True
    return False


def has_a_user_below(history: History) -> bool:
    """Whether a user stands in row 0 and another request above it."""
    rows = {add.row: bool(history.requests[add.request].params) for add in history.steps[0].added}
    for source, destination, _ in history.steps[0].moved:
        rows[source], rows[destination] = rows[destination], rows[source]
    return rows.get(0) is True and False in rows.values()


def moves_onto_a_user(history: History) -> bool:
    """Whether a one-way move takes another request onto a user, and leaves a hole that is a row."""
    rows: dict[int, bool | None] = {}
    for step in history.steps:
        rows |= {add.row: bool(history.requests[add.request].params) for add in step.added}
        for source, destination, direction in step.moved:
            moved, stood = rows.get(source), rows.get(destination)
            if (moved, stood, direction) == (False, True, UNIDIRECTIONAL) and source < max(rows):
                return True
            rows |= {destination: moved, source: stood if direction == SWAP else None}
    return False


def drops_a_user_above_a_hole(history: History) -> bool:
    """Whether a one-way move onto a user leaves a hole that is a row in the end, wherever it is swapped to."""
    rows: dict[int, bool] = {}
    holes: set[int] = set()
    for step in history.steps:
        rows |= {add.row: bool(history.requests[add.request].params) for add in step.added}
        for source, destination, direction in step.moved:
            if direction == SWAP:
                turned = {source: destination, destination: source}
                rows = {turned.get(row, row): uses for row, uses in rows.items()}
                holes = {turned.get(row, row) for row in holes}
            else:
                holes |= {source} if (rows.get(source), rows.get(destination)) == (False, True) else set()
                rows[destination] = rows.pop(source, False)
    return any(hole < max(rows) for hole in holes)


def users(history: History) -> list[Arrival]:
    """The requests that arrive and use the processor."""
    arrived = {add.request for step in history.steps for add in step.added}
    return [arrival for name, arrival in history.requests.items() if name in arrived and arrival.params]


def moves(history: History) -> bool:
    """Whether a row moves in a history with a user."""
    return any(step.moved for step in history.steps) and bool(users(history))


def overlaps(history: History) -> bool:
    """Whether a user is added at a row that is removed in the same step."""
    found = [(add, step) for step in history.steps for add in step.added if add.row in step.removed]
    return any(history.requests[add.request].params for add, _ in found)


def is_nearly_there(history: History) -> bool:
    """Whether two outputs less have landed than the user asks for."""
    landed = sum(len(growth.tokens) for step in history.steps for growth in step.growth)
    return any(landed + 2 == user.params["min_tokens"] for user in users(history))


def counts_applies(history: History) -> bool:
    """Whether as many applies as the user asks for come before the last step, which applies once."""
    before = sum(step.applies for step in history.steps[:-1])
    return history.steps[-1].applies == 1 and any(before == user.params["min_tokens"] for user in users(history))


GROWN = Plan(growth=tuple(Growth(name, (1, 2, 3)) for name in ALL))
TWICE = Plan(applies=2)
QUIET = (Plan(), TWICE, TWICE, TWICE, Plan())
LITERAL = (
    Step(added=tuple(Added(row, name) for row, name in enumerate("ACDE"))),
    Step(removed=(3,), added=(Added(3, "B"),)),
)

SWAPPED = (
    Step(added=(Added(0, "A"), Added(1, "B"), Added(2, "C"))),
    Step(moved=((0, 2, SWAP), (0, 1, SWAP))),
    Step(moved=((1, 2, SWAP), (1, 0, UNIDIRECTIONAL))),
)
SWAPPED_BACK = (
    Step(added=(Added(0, "A"), Added(1, "B"))),
    Step(added=(Added(2, "C"),)),
    Step(moved=((2, 1, UNIDIRECTIONAL), (0, 2, SWAP))),
)
MOVED = (
    Step(added=(Added(0, "A"), Added(1, "C"))),
    Step(added=(Added(2, "B"),), moved=((2, 0, UNIDIRECTIONAL),)),
)


@pytest.mark.parametrize(
    ("case", "fails", "least"),
    [
        (case_of(come("AB"), Plan(leave=("A", "B"), come=come("BA").come)), replaces, 2),
        (case_of(come("AB", ((0, 1),))), has_a_user_below, 2),
        (case_of(come("AB", ((0, 1), (1, 0), (0, 1)))), swaps_a_user_below, 3),
        (case_of(come("ACDEFGHIJB", ((0, 9),))), swaps_a_user_below, 3),
        (case_of(come(ALL), GROWN, GROWN, GROWN, Plan(leave=("C", "F"))), moves, 3),
        (
            case_of(come("ABC"), Plan(leave=("A",), come=come("D").come), Plan(leave=("D",)), dialect=EXPLICIT),
            moves,
            3,
        ),
        (case_of(*LITERAL), overlaps, 3),
        (case_of(*MOVED), replaces, 2),
        (case_of(*SWAPPED), moves_onto_a_user, 3),
        (case_of(*SWAPPED_BACK), drops_a_user_above_a_hole, 3),
        (case_of(Plan(growth=(Growth("B", (1,) * 7),), come=come("B").come), params=LONG), is_nearly_there, 1),
        (case_of(replace(come("B"), applies=2), *QUIET, params=LONG), counts_applies, 2),
    ],
    ids=[
        "comes back",
        "swap",
        "swaps",
        "far swap",
        "many",
        "stays",
        "rows",
        "moved",
        "swapped",
        "swapped back",
        "number",
        "applies",
    ],
)
def test_what_is_not_needed_is_left_out(case: Case, fails: Callable[[History], bool], least: int) -> None:
    tried: list[Case] = []

    def still_fails(smaller: Case) -> bool:
        tried.append(smaller)
        history = lower(smaller)
        return bool(history.steps) and fails(history)

    assert still_fails(case)
    smallest = shrink(case, still_fails, SMALL_VOCAB, {})
    history = lower(smallest)
    assert fails(history)
    assert events(history.steps) == least
    assert (history.vocab, history.palette, history.offset, smallest.dialect) == (SMALL_VOCAB, "dense", 0, ELIDED)
    assert {arrival.prompt for arrival in history.requests.values()} == {Arrival().prompt}
    assert len(tried) < ATTEMPTS / 3
