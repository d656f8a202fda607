"""The row table beside a plain list: after the same operations, the same requests stand at the same rows."""

from __future__ import annotations

from copy import deepcopy
from enum import Enum
from itertools import count, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality
from logitsproc.optimized import RowTable, Users

Operation = tuple[str, int, int]


class Pair(NamedTuple):
    """The list that says what is right, the table, and which request was written to which slot."""

    batch: list[str | None]
    table: RowTable
    written: dict[int, str]


def operations(batch: list[str | None]) -> list[Operation]:
    """Every well-formed operation on the batch; a trailing hole may be cut off."""
    rows, live = range(len(batch)), [row for row, request in enumerate(batch) if request is not None]
    removals = [("remove", row, row) for row in live]
    additions = [("add", row, row) for row in range(len(batch) + 1)]
    moves = [("move", source, row) for source in live for row in rows if source != row]
    swaps = [("swap", row, other) for row, other in product(rows, rows)]
    cuts = [("cut", len(batch), len(batch))] if batch and batch[-1] is None else []
    return removals + additions + moves + swaps + cuts


def on_list(batch: list[str | None], operation: Operation, name: str) -> None:
    """The operation, as a list has it. name: the request that an addition brings."""
    kind, row, other = operation
    match kind:
        case "remove":
            batch[row] = None
        case "add":
            batch[row : row + 1] = [name]
        case "move":
            batch[row], batch[other] = None, batch[row]
        case "swap":
            batch[row], batch[other] = batch[other], batch[row]
        case "cut":
            batch.pop()


def on_table(pair: Pair, operation: Operation, name: str) -> None:
    """The operation, as the table has it; the request is written where the table says. Cuts are not told."""
    kind, row, other = operation
    match kind:
        case "remove":
            pair.table.remove(row)
        case "add":
            pair.written[pair.table.add(row)] = name
        case "move":
            pair.table.move(row, other)
        case "swap":
            pair.table.swap(row, other)


def play(pair: Pair, operation: Operation, name: str) -> None:
    """One operation on both, and the comparison."""
    on_list(pair.batch, operation, name)
    on_table(pair, operation, name)
    assert sorted(pair.table.slots) == list(range(len(pair.table.live)))
    assert [pair.written[slot] for _, slot in pair.table.occupied()] == [name for name in pair.batch if name]
    assert [row for row, _ in pair.table.occupied()] == [row for row, name in enumerate(pair.batch) if name]


def play_all(pair: Pair, depth: int, most_rows: int) -> int:
    """Every sequence of `depth` operations from here; returns how many operations were played."""
    if not depth:
        return 0
    played = 0
    for operation in operations(pair.batch):
        if operation[1] < most_rows:
            branch = Pair(list(pair.batch), deepcopy(pair.table), dict(pair.written))
            play(branch, operation, f"new at {depth}")
            played += 1 + play_all(branch, depth - 1, most_rows)
    return played


OCCUPANCIES = [bits for size in range(4) for bits in product((False, True), repeat=size)]


@pytest.mark.parametrize("occupied", OCCUPANCIES)
def test_every_sequence_of_three_operations_on_three_rows(occupied: tuple[bool, ...]) -> None:
    pair = Pair([], RowTable(), {})
    for row in range(len(occupied)):
        play(pair, ("add", row, row), f"old at {row}")
    for row, stays in enumerate(occupied):
        if not stays:
            play(pair, ("remove", row, row), "")
    assert play_all(pair, depth=3, most_rows=3) > 0


@given(st.lists(st.integers(0, 10**6), max_size=40))
@settings(derandomize=True)
def test_long_sequences(choices: list[int]) -> None:
    pair = Pair([], RowTable(), {})
    for step, choice in enumerate(choices):
        possible = operations(pair.batch)
        play(pair, possible[choice % len(possible)], f"request {step}")


def test_a_row_far_beyond_the_table_makes_it_grow_by_holes() -> None:
    table = RowTable()
    assert table.add(2) == 2
    assert (table.slots, table.live) == ([0, 1, 2], [False, False, True])


def test_a_one_way_move_onto_itself_loses_nothing() -> None:
    users: Users[str] = Users(lambda params, prompt, output: params)
    users.add(0, "A", None, [])
    users.move(0, 0, both_ways=False)
    assert users.by_row() == {0: "A"}


def test_a_direction_is_told_by_its_name() -> None:
    directions = Enum("Directions", "UNIDIRECTIONAL SWAP")
    users: Users[str] = Users(lambda params, prompt, output: params)
    users.follow(BatchUpdate(2, [], [(0, "A", None, []), (1, "B", None, [])], [(0, 1, directions["SWAP"])]))
    assert users.by_row() == {0: "B", 1: "A"}
    users.follow(BatchUpdate(2, [], [], [(0, 1, directions["UNIDIRECTIONAL"])]))
    assert users.by_row() == {1: "B"}


def drawn_update(data: st.DataObject, batch: list[str | None], names: count[int]) -> BatchUpdate:
    """An update as the interface defines it, overlap included, and the batch as it is after it."""
    listed: dict[str, list[Any]] = {"remove": [], "add": [], "move": [], "swap": []}
    for kind in (("remove",), ("add",), ("move", "swap")):
        for _ in range(data.draw(st.integers(0, 3))):
            possible = [operation for operation in operations(batch) if operation[0] in kind]
            if possible:
                operation = data.draw(st.sampled_from(possible))
                name = f"{data.draw(st.sampled_from(['user', 'other']))} {next(names)}"
                on_list(batch, operation, name)
                listed["move" if kind[0] == "move" else kind[0]].append((*operation, name))
    return BatchUpdate(
        batch_size=len(batch),
        removed=[row for _, row, _, _ in listed["remove"]],
        added=[(row, name, None, []) for _, row, _, name in listed["add"]],
        moved=[(row, other, direction_of(kind)) for kind, row, other, _ in listed["move"]],
    )


def direction_of(kind: str) -> MoveDirectionality:
    """The interface's direction for "move" and "swap"."""
    return MoveDirectionality.SWAP if kind == "swap" else MoveDirectionality.UNIDIRECTIONAL


@given(st.data())
@settings(derandomize=True)
def test_states_follow_whole_updates_and_leave_with_their_requests(data: st.DataObject) -> None:
    users: Users[str] = Users(lambda params, prompt, output: params if params.startswith("user") else None)
    batch: list[str | None] = []
    names = count()
    for _ in range(data.draw(st.integers(1, 4))):
        users.follow(drawn_update(data, batch, names))
        expected = {row: name for row, name in enumerate(batch) if name and name.startswith("user")}
        assert list(users.by_row().items()) == list(expected.items())
        assert sorted(users.states.values()) == sorted(expected.values())
