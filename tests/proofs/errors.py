"""Errors to plant in the code under proof: each a class or a function that stands in place of the shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from logitsproc.conformance import interface
from logitsproc.optimized.table import BatchUpdate, RowTable, Users
from logitsproc.reference import batch as reference
from logitsproc.reference import producer
from logitsproc.reference.batch import UNIDIRECTIONAL, Batch, Row, Update, apply_update
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step

# The row table


class SharesASlot(RowTable):
    """After a one-way move both rows own the slot that moved."""

    def move(self, source: int, destination: int) -> None:
        super().move(source, destination)
        self.slots[source] = self.slots[destination]


class LeavesAGhost(RowTable):
    """After a one-way move the source still counts as occupied."""

    def move(self, source: int, destination: int) -> None:
        super().move(source, destination)
        self.live[source] = self.live[destination]


class SwapsSlotsOnly(RowTable):
    """A swap leaves the rows' bits where they were, which shows where one of the two is a hole."""

    def swap(self, row: int, other: int) -> None:
        self.slots[row], self.slots[other] = self.slots[other], self.slots[row]


class NumbersByRequests(RowTable):
    """A new row gets the slot of the number of requests, which is another row's where the table has a hole."""

    def extend(self) -> None:
        self.slots.append(sum(self.live))
        self.live.append(False)


class StartsWithRow(RowTable):
    """A new table has a row already, which is said to hold a request."""

    def __init__(self) -> None:
        super().__init__()
        self.slots, self.live = [0], [True]


class KeepsBit(RowTable):
    """A removed row keeps its bit."""

    def remove(self, row: int) -> None:
        self.live[row] = self.live[row]


class LeavesHole(RowTable):
    """An added row stays a hole."""

    def add(self, row: int) -> int:
        while row >= len(self.slots):
            self.extend()
        return self.slots[row]


class ExtendsWithATakenSlot(RowTable):
    """A new row owns the slot below its own number."""

    def extend(self) -> None:
        self.slots.append(len(self.slots) - 1)
        self.live.append(False)


class NeverExtends(RowTable):
    """A row one past the end is no row."""

    def add(self, row: int) -> int:
        self.live[row] = True
        return self.slots[row]


class SwapsOneWay(RowTable):
    """A swap gives one row the slot of the other."""

    def swap(self, row: int, other: int) -> None:
        self.slots[row] = self.slots[other]
        self.live[row], self.live[other] = self.live[other], self.live[row]


# The users of a processor


class MovesFirst(Users[Any]):
    """The moves are followed before the additions."""

    def follow(self, update: BatchUpdate) -> None:
        super().follow(interface.BatchUpdate(0, update.removed, (), update.moved))
        super().follow(interface.BatchUpdate(0, (), update.added, ()))


class RemovesLate(Users[Any]):
    """What is removed is removed after the additions, with the request that was added in its place."""

    def follow(self, update: BatchUpdate) -> None:
        super().follow(interface.BatchUpdate(0, (), update.added, ()))
        super().follow(interface.BatchUpdate(0, update.removed, (), update.moved))


class MovesBackward(Users[Any]):
    """The moves are followed from the last to the first."""

    def follow(self, update: BatchUpdate) -> None:
        backward = update.moved[::-1]
        super().follow(interface.BatchUpdate(0, update.removed, update.added, backward))


class MovesNothing(Users[Any]):
    """A one-way move is not followed."""

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        if both_ways:
            super().move(source, destination, both_ways)


class MovesBothWays(Users[Any]):
    """A one-way move takes what stood at the destination to the source."""

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        super().move(source, destination, both_ways=True)


class MovesOneWay(Users[Any]):
    """A swap loses what one of the rows holds."""

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        super().move(source, destination, both_ways=False)


class KeepsTheOverwritten(Users[Any]):
    """The state of a request that a one-way move overwrites is kept, in the slot of a hole."""

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        (self.table.swap if both_ways else self.table.move)(source, destination)


class KeepsTheRemoved(Users[Any]):
    """The state of a request that is removed is kept, in the slot of a hole."""

    def remove(self, row: int) -> None:
        self.table.remove(row)


class KeepsTheReplaced(Users[Any]):
    """The state of a request stays where one is added in its place that does not use the processor."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        slot = self.table.add(row)
        if (state := self.state_of(params, prompt, output)) is not None:
            self.states[slot] = state


class StartsUsed(Users[Any]):
    """A new processor has the state of somebody already."""

    def __init__(self, state_of: Any) -> None:
        super().__init__(state_of)
        self.states = {0: 1}


class ForgetsTooMuch(Users[Any]):
    """A removed row takes the state of the row above it along."""

    def remove(self, row: int) -> None:
        super().remove(row)
        if row + 1 < len(self.table.slots):
            self.states.pop(self.table.slots[row + 1], None)


class SwapsStatesToo(Users[Any]):
    """A swap exchanges the states of two slots as well, and so undoes itself."""

    def move(self, source: int, destination: int, both_ways: bool) -> None:
        super().move(source, destination, both_ways)
        if both_ways:
            slots = self.table.slots
            one, other = self.states.pop(slots[source], None), self.states.pop(slots[destination], None)
            for slot, state in ((slots[source], other), (slots[destination], one)):
                if state is not None:
                    self.states[slot] = state


# The list


def cuts_a_request(batch: Any, batch_size: int) -> None:
    """The rows from batch_size on are gone, also where one of them holds a request."""
    del batch[batch_size:]


def follows_none(batch: Any, update: Update | None) -> None:
    """No update is taken for one without rows."""
    reference.apply_update(batch, update or Update(batch_size=0))


def removes_next(batch: Any, row: int) -> None:
    """The row below the one that is named becomes a hole."""
    if row:
        batch[row - 1] = None
    else:
        batch[row] = None


def moves_and_keeps(batch: Any, source: int, destination: int) -> None:
    """What moves stands at the source as well."""
    batch[destination] = batch[source]


def exchanges(batch: Any, row: int, other: int) -> None:
    """Two rows exchange what they hold, holes too, and are counted from behind where they are negative."""
    batch[row], batch[other] = batch[other], batch[row]


def swaps_one_way(batch: Any, row: int, other: int) -> None:
    """A swap leaves one of the two rows as it was."""
    batch[row] = batch[other]


def resizes_not(batch: Any, batch_size: int) -> None:
    """The list keeps its rows."""


def adds_before(batch: Any, row: int, request: Any) -> None:
    """At the end an added request is lost."""
    if row < len(batch):
        batch[row] = request


def removes_holes(batch: Any, row: int) -> None:
    """A hole is removed as well."""
    batch[row] = None


def adds_anywhere(batch: Any, row: int, request: Any) -> None:
    """A request is added at the end, however far beyond it the row is."""
    if row < len(batch):
        batch[row] = request
    else:
        batch.append(request)


def moves_holes(batch: Any, source: int, destination: int) -> None:
    """A hole is moved as well."""
    reference.require(source != destination, "move", "")
    reference.require(0 <= source < len(batch) and 0 <= destination < len(batch), "move", "")
    batch[destination], batch[source] = batch[source], None


def cuts_nothing_off(batch: Batch, update: Update | None) -> None:
    """Rows from batch_size on stay, as holes."""
    apply_update(batch, update and replace(update, batch_size=update.batch_size + len(batch)))


def swaps_nothing(batch: Batch, row: Row, other: Row) -> None:
    """The two rows keep what they hold."""


# The engine's algorithm


def trims_anything(batch: Any) -> bool:
    """The last row is taken off whether it holds a request or not."""
    if not batch:
        return False
    batch.pop()
    return True


def trims_nothing(batch: Any) -> bool:
    """Holes at the end stay."""
    return False


def condenses_from_below(batch: Any) -> Any:
    """The move comes from the row below the last one."""
    source, hole = len(batch) - 2, batch.index(None)
    batch[hole], batch[source] = batch[source], None
    return source, hole, UNIDIRECTIONAL


def condenses_and_keeps(batch: Any) -> Any:
    """What moves stays at its row as well."""
    source, hole = len(batch) - 1, batch.index(None)
    batch[hole] = batch[source]
    return source, hole, UNIDIRECTIONAL


def condenses_above(batch: Any) -> Any:
    """The move goes to the row above the lowest hole."""
    source, hole = len(batch) - 1, batch.index(None) + 1
    if source != hole:
        batch[hole], batch[source] = batch[source], None
    return source, hole, UNIDIRECTIONAL


def condenses_one_hole(batch: Any) -> Any:
    """Only one hole is filled."""
    producer.trim(batch)
    return [producer.condense_once(batch)] if None in batch else []


def names_no_removals(*decision: Any) -> Update | None:
    """No row is listed as removed, also where nothing fills it."""
    update = engine_step(*decision)
    return update and replace(update, removed=())


def lists_what_is_replaced(batch: Batch, vacated: Sequence[Row], *decision: Any) -> Update | None:
    """Every vacated row is listed as removed, also where an arrival takes it."""
    update = engine_step(batch, vacated, *decision)
    return update and replace(update, removed=tuple(vacated))


def moves_backward(*decision: Any) -> Update | None:
    """The moves are listed from the last to the first."""
    update = engine_step(*decision)
    return update and replace(update, moved=update.moved[::-1])


def sizes_before(batch: Batch, *decision: Any) -> Update | None:
    """batch_size is the number of rows before the update."""
    size = len(batch)
    update = engine_step(batch, *decision)
    return update and replace(update, batch_size=size)


def swaps_in_one_dialect(batch: Batch, vacated: Any, arrivals: Any, swaps: Any, dialect: str) -> Update | None:
    """In the explicit dialect no rows swap, so that the dialects do not mean the same."""
    return engine_step(batch, vacated, arrivals, () if dialect == EXPLICIT else swaps, dialect)


def speaks_one_dialect(batch: Batch, vacated: Any, arrivals: Any, swaps: Any, dialect: str) -> Update | None:
    """The explicit dialect leaves out the rows that a move fills, as the other does."""
    return engine_step(batch, vacated, arrivals, swaps, ELIDED)
