"""Bookkeeping: which slot each row of the batch owns, and the states of the requests that use a processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, Generic, Protocol, TypeVar

State = TypeVar("State")


class BatchUpdate(Protocol):
    """What this module reads of an update; vLLM's BatchUpdate is one, and so is any equal of it."""

    @property
    def removed(self) -> Sequence[int]:
        """Rows."""

    @property
    def added(self) -> Sequence[tuple[int, Any, list[int] | None, list[int]]]:
        """(row, sampling params, prompt token ids or None, live output token ids)."""

    @property
    def moved(self) -> Sequence[tuple[int, int, Any]]:
        """(source, destination, direction), a direction being an enum member named UNIDIRECTIONAL or SWAP."""


class RowTable:
    """A permutation from rows to slots, and a bit per row that says whether a request stands there.

    Every row owns a slot at all times, a hole too. So slots can neither leak nor run out, a move exchanges
    two integers, and what is kept in a slot stays where it is while its request wanders.

    slots: row -> slot, a permutation of 0..len-1. live: row -> whether it holds a request.
    All operations but `add` raise IndexError for a row beyond the table, which no well-formed update names.

    >>> table = RowTable()
    >>> table.add(0), table.add(1)
    (0, 1)
    >>> table.move(1, 0)
    >>> table.slots, table.live
    ([1, 0], [True, False])
    """

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.live: list[bool] = []

    def remove(self, row: int) -> None:
        """UPD-REMOVE: the row is a hole, and keeps its slot."""
        self.live[row] = False

    def add(self, row: int) -> int:
        """UPD-ADD, UPD-REPLACE, UPD-EXTEND: a request stands at the row; returns its slot."""
        while row >= len(self.slots):
            self.extend()
        self.live[row] = True
        return self.slots[row]

    def extend(self) -> None:
        """UPD-EXTEND: one row more, a hole, which owns the slot of its own number."""
        self.slots.append(len(self.slots))
        self.live.append(False)

    def move(self, source: int, destination: int) -> None:
        """UPD-MOVE, UPD-DROP: the destination has the source's slot, and the hole has the destination's."""
        occupied = self.live[source]
        self.swap(source, destination)
        self.live[source] = False
        self.live[destination] = occupied

    def swap(self, row: int, other: int) -> None:
        """UPD-SWAP: the two rows exchange slots and bits."""
        self.slots[row], self.slots[other] = self.slots[other], self.slots[row]
        self.live[row], self.live[other] = self.live[other], self.live[row]

    def occupied(self) -> Iterator[tuple[int, int]]:
        """(row, slot) of every row that holds a request, in ascending order of rows."""
        return compress(enumerate(self.slots), self.live)


class Users(Generic[State]):
    """The states of the requests that use a processor, one a slot; the other requests have none.

    state_of: (sampling params, prompt token ids or None, live output token ids) -> the state, or None for a request
    that is no user.

    >>> users = Users(lambda params, prompt, output: params)
    >>> for row, params in enumerate(["A", None, "C"]):
    ...     users.add(row, params, None, [])
    >>> users.move(2, 0, both_ways=False)
    >>> users.by_row()
    {0: 'C'}
    """

    def __init__(self, state_of: Callable[[Any, list[int] | None, list[int]], State | None]) -> None:
        self.table = RowTable()
        self.states: dict[int, State] = {}
        self.state_of = state_of

    def follow(self, update: BatchUpdate) -> None:
        """UPD-ORDER, UPD-SEQUENCE, UPD-OVERLAP: removed, then added, then moved, each in the order listed."""
        for row in update.removed:
            self.remove(row)
        for row, params, prompt, output in update.added:
            self.add(row, params, prompt, output)
        for source, destination, direction in update.moved:
            self.move(source, destination, direction.name == "SWAP")

    def by_row(self) -> dict[int, State]:
        """row -> state of every request that uses the processor, in ascending order of rows."""
        if not self.states:
            return {}
        return {row: self.states[slot] for row, slot in self.table.occupied() if slot in self.states}

    def remove(self, row: int) -> None:
        """UPD-REMOVE: the row's request is gone, with its state."""
        self.table.remove(row)
        self.forget(row)

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        """UPD-ADD, UPD-REPLACE, UPD-EXTEND: the request's state, or none, replaces what the slot held."""
        slot = self.table.add(row)
        self.states.pop(slot, None)
        state = self.state_of(params, prompt, output)
        if state is not None:
            self.states[slot] = state

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        """UPD-MOVE, UPD-DROP, UPD-SWAP: one way, what stood at the destination is gone, with its state."""
        if both_ways:
            self.table.swap(source, destination)
        else:
            self.table.move(source, destination)
            self.forget(source)

    def forget(self, row: int) -> None:
        """PROC-STATE-DEPARTED: nothing is kept in the slot of a hole."""
        if not self.table.live[row]:
            self.states.pop(self.table.slots[row], None)
