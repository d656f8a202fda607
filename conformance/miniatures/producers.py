"""Producers that emit wrong updates: the reference producer, spoiled in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality
from logitsproc.conformance.producers.interface import Schedule
from logitsproc.conformance.producers.reference import Elided, Explicit
from logitsproc.reference.batch import UNIDIRECTIONAL, Row, Update, move
from logitsproc.reference.request import Request

ONE_WAY, SWAP = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP


def rows_of(producer: Elided, names: Iterable[str]) -> list[Row]:
    """The rows of these requests."""
    return [row for name in names for row, request in enumerate(producer.batch) if request and request.name == name]


class SkipsARow(Elided):
    """PROD-RANGE: adds every request that comes one row too far past the end."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and replace(given, added=[(len(self.batch) + 1 + row, *rest) for row, *rest in given.added])


class ListsTheReplaced(Elided):
    """PROD-DISJOINT: lists every vacated row in removed, also those that were filled again."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        vacated = rows_of(self, schedule.leaving)
        given = super().step(schedule)
        return given and replace(given, removed=vacated)


class LeavesHoles(Elided):
    """PROD-CONTIGUOUS: does not condense."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        if schedule.coming or schedule.swaps or not schedule.leaving:
            return super().step(schedule)
        vacated = rows_of(self, schedule.leaving)
        for row in vacated:
            self.batch[row] = None
        while self.batch and self.batch[-1] is None:
            self.batch.pop()
        return BatchUpdate(len(self.batch), vacated, [], [])


class SaysTheOldSize(Elided):
    """PROD-SIZE: batch_size is the number of rows before the step."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        before = len(self.batch)
        given = super().step(schedule)
        return given and replace(given, batch_size=before)


class KeepsReordersQuiet(Elided):
    """PROD-NONE: emits None for a step in which rows were only swapped."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        given = super().step(schedule)
        return given if schedule.leaving or schedule.coming else None


class KeepsTheDeparted(Elided):
    """PROD-ROWS: the first of those that leave stays in the batch."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        back = {coming.req_id for coming in schedule.coming}
        first = [name for name in schedule.leaving if name not in back][:1]
        return super().step(replace(schedule, leaving=tuple(name for name in schedule.leaving if name not in first)))


class KnowsIdsOnly(Elided):
    """PROD-ROWS: takes a request that comes under the id of another, which leaves, for that one, and keeps it."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        held = {request.name: request.params for request in self.batch if request}
        both = {come.req_id for come in schedule.coming if held.get(come.req_id, come.params) is not come.params}
        leaving = tuple(name for name in schedule.leaving if name not in both)
        coming = tuple(request for request in schedule.coming if request.req_id not in both)
        return super().step(replace(schedule, leaving=leaving, coming=coming))


class ForgetsAMove(Explicit):
    """PROD-REPLAY: leaves the last move of condensing out of the update."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        last = [place for place, item in enumerate(update.moved if update else ()) if item[2] == UNIDIRECTIONAL][-1:]
        kept = [item for place, item in enumerate(update.moved if update else ()) if place not in last]
        return super().emitted(update and replace(update, moved=tuple(kept)))


class ReversesSwaps(Elided):
    """PROD-REPLAY: lists a chain of swaps from its end."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        one_way = [item for item in given.moved if item[2] is ONE_WAY] if given else []
        return given and replace(given, moved=one_way + [item for item in given.moved[::-1] if item[2] is SWAP])


class TurnsMovesRound(Elided):
    """PROD-REPLAY: lists the destination of a one-way move first."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        turned = [(to, at, how) if how is ONE_WAY else (at, to, how) for at, to, how in given.moved] if given else []
        return given and replace(given, moved=turned)


class AddsWhereItEnds(Elided):
    """PROD-REPLAY: the row of an add is the one that the request has after the swaps."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        before = len(self.batch)
        given = super().step(schedule)
        if given is None or not schedule.swaps or [row for row, *_ in given.added if row >= before]:
            return given
        rows = {id(request.output): row for row, request in enumerate(self.batch) if request}
        return replace(given, added=[(rows[id(item[3])], *item[1:]) for item in given.added])


class RemovesALiveRow(Elided):
    """PROD-REPLAY: lists row 0 in removed as well, although its request stays."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        if given is None or given.added or given.moved or 0 in given.removed:
            return given
        return replace(given, removed=[*given.removed, 0])


class CopiesTheOutputs(Elided):
    """PROD-LIVE: hands over a copy of the output list."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and replace(given, added=[(*rest, list(output)) for *rest, output in given.added])


class KeepsTheOldList(Elided):
    """PROD-LIVE: does not add a request again that comes back at its own row with another list."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        if given is None or given.removed or given.moved:
            return given
        new = [(row, *rest) for row, *rest in given.added if self.params_before.get(row) is not rest[0]]
        return replace(given, added=new) if new else None

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        self.params_before = {row: request.params for row, request in enumerate(self.batch) if request}
        return super().step(schedule)


class FoldsOutputsIntoThePrompt(Elided):
    """PROD-PARAMS: a request that comes back has its outputs in its prompt too."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and replace(
            given, added=[(row, params, [*(ids or ()), *out], out) for row, params, ids, out in given.added]
        )


class OneParamsForAll(Elided):
    """PROD-PARAMS: hands over the params and the prompt of the first request that comes with every add."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        if given is None or not given.added:
            return given
        _, params, prompt, _ = given.added[0]
        return replace(given, added=[(row, params, prompt, output) for row, _, _, output in given.added])


class ReusesItsLists(Elided):
    """PROD-UNCHANGED: clears the lists of the last update and hands them over again."""

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        super().__init__(max_num_seqs, vocab_size)
        self.lists: tuple[list[Any], ...] = ([], [], [])

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        if given is None:
            return None
        for kept, items in zip(self.lists, (given.removed, given.added, given.moved), strict=True):
            kept[:] = items
        removed, added, moved = self.lists
        return BatchUpdate(given.batch_size, removed, added, moved)


class StumblesWhenEmpty(Elided):
    """PROD-EXCEPTION: raises when the last request leaves."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        given = super().step(schedule)
        if given is not None and not self.batch:
            raise IndexError("no row")
        return given


class RefillsFromTheTop(Elided):
    """PROD-REFILL: puts those who come into the highest vacated row first."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        vacated = sorted(rows_of(self, schedule.leaving), reverse=True)
        if len(schedule.coming) != 1 or len(vacated) != 2 or schedule.swaps:
            return super().step(schedule)
        row, hole = vacated
        (come,) = schedule.coming
        request = Request(come.req_id, come.params, come.prompt_token_ids, come.output_token_ids)
        self.batch[row], self.batch[hole] = request, None
        move(self.batch, len(self.batch) - 1, hole)
        self.batch.pop()
        return self.emitted(Update(len(self.batch), (), ((row, request),), ((len(self.batch), hole, UNIDIRECTIONAL),)))


class CondensesByShifting(Elided):
    """PROD-CONDENSE: closes a hole by moving every row above it down by one."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        if schedule.coming or schedule.swaps or len(schedule.leaving) != 1:
            return super().step(schedule)
        (hole,) = rows_of(self, schedule.leaving)
        del self.batch[hole]
        moved = tuple((row + 1, row, UNIDIRECTIONAL) for row in range(hole, len(self.batch)))
        return self.emitted(Update(len(self.batch), (hole,), (), moved))


class LeavesOneOut(Elided):
    """PROD-ELIDE: leaves a row that nothing filled out of two in removed."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and replace(given, removed=given.removed[1:] if len(given.removed) > 1 else given.removed)


class LeavesListsBehind(Elided):
    """PROD-ROWS: swaps the ids of two rows, and not their output lists."""

    swaps: tuple[tuple[Row, Row], ...] = ()

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        self.swaps = schedule.swaps
        return super().step(schedule)

    def rows(self) -> Sequence[tuple[str | None, list[int] | None]]:
        names, lists = [name for name, _ in super().rows()], [output for _, output in super().rows()]
        for row, other in reversed(self.swaps):
            lists[row], lists[other] = lists[other], lists[row]
        return list(zip(names, lists, strict=True))


class KeepsTheIdleQuiet(Elided):
    """PROD-NONE: says nothing of a step in which rows only leave, or move, while nobody has asked for anything."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        params: list[Any] = [request.params for request in self.batch if request]
        idle = all(asked == type(asked)() for asked in params)
        given = super().step(schedule)
        return None if idle and given and not given.added else given


class HandsOverNoList(Elided):
    """PROD-LIVE: hands over an empty list for the outputs."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and replace(given, added=[(*rest, []) for *rest, _ in given.added])


class LeavesPlaceholders(Elided):
    """PROD-LIVE: puts -1 for the newest id of every output list, and never the id."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        given = super().step(schedule)
        for request in self.batch:
            if request and request.output:
                request.output[-1] = -1
        return given


MINIATURES: tuple[type[Elided], ...] = (
    SkipsARow,
    ListsTheReplaced,
    LeavesHoles,
    SaysTheOldSize,
    KeepsReordersQuiet,
    KeepsTheDeparted,
    KnowsIdsOnly,
    ForgetsAMove,
    ReversesSwaps,
    TurnsMovesRound,
    AddsWhereItEnds,
    RemovesALiveRow,
    CopiesTheOutputs,
    KeepsTheOldList,
    FoldsOutputsIntoThePrompt,
    OneParamsForAll,
    ReusesItsLists,
    StumblesWhenEmpty,
    RefillsFromTheTop,
    CondensesByShifting,
    LeavesOneOut,
    LeavesListsBehind,
    KeepsTheIdleQuiet,
    HandsOverNoList,
    LeavesPlaceholders,
)
