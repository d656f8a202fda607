"""Right producers in shapes other than the reference's: orders, dialects and policies that its chapter leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logitsproc.conformance.interface import BatchUpdate
from logitsproc.conformance.producers.interface import Coming, Schedule
from logitsproc.conformance.producers.reference import Elided, Explicit
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Row, Update, swap
from logitsproc.reference.producer import ELIDED, EXPLICIT, extend, refill, trim
from logitsproc.reference.request import Request


class ExplicitHighestFirst(Explicit):
    """Every vacated row that nobody took, the highest first."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        return super().emitted(update and replace(update, removed=tuple(sorted(update.removed, reverse=True))))


class ElidedLowestFirst(Elided):
    """What no move filled, the lowest first."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        return super().emitted(update and replace(update, removed=tuple(sorted(update.removed))))


class TakesTurns(Elided):
    """Speaks the two dialects in turn, from step to step."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        self.DIALECT = EXPLICIT if self.DIALECT == ELIDED else ELIDED
        return super().step(schedule)


class Tuples(Elided):
    """Hands over tuples where the reference hands over lists."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        return given and BatchUpdate(given.batch_size, tuple(given.removed), tuple(given.added), tuple(given.moved))


class Free(Elided):
    """Takes the schedule apart: rows that are vacated, requests that come; a policy then says what is done."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        gone = [row for row, request in enumerate(self.batch) if request and request.name in schedule.leaving]
        for row in gone:
            self.batch[row] = None
        added, moved = self.filled(gone, [asked(coming) for coming in schedule.coming])
        for pair in schedule.swaps:
            swap(self.batch, *pair)
        moved += [(*pair, SWAP) for pair in schedule.swaps]
        taken = [row for row, _ in added]
        removed = tuple(row for row in gone if row not in taken)
        if not (removed or added or moved):
            return None
        return self.emitted(Update(len(self.batch), removed, tuple(added), tuple(moved)))

    def filled(
        self, gone: list[Row], come: Sequence[Request]
    ) -> tuple[list[tuple[Row, Request]], list[tuple[Row, Row, str]]]:
        """Puts those who come into the batch and leaves no hole; gives the adds and the moves."""
        raise NotImplementedError

    def closed(self) -> list[tuple[Row, Row, str]]:
        """Closes the holes by moving every row above one down, so that the rest stay in order."""
        kept = [row for row, request in enumerate(self.batch) if request is not None]
        self.batch[:] = [self.batch[row] for row in kept]
        return [(row, at, UNIDIRECTIONAL) for at, row in enumerate(kept) if row != at]


def asked(coming: Coming) -> Request:
    """The request that comes, with the host's params."""
    return Request(coming.req_id, coming.params, coming.prompt_token_ids, coming.output_token_ids)


class RefillsHighestFirst(Free):
    """Those who come take the vacated rows from the highest down; the rest move down in order."""

    def filled(
        self, gone: list[Row], come: Sequence[Request]
    ) -> tuple[list[tuple[Row, Request]], list[tuple[Row, Row, str]]]:
        added = refill(self.batch, gone[::-1], come)
        added += extend(self.batch, come[len(added) :])
        return added, self.closed()


class AppendsAlways(Free):
    """Those who come go behind the last row, whatever is vacated, and then all move down in order."""

    def filled(
        self, gone: list[Row], come: Sequence[Request]
    ) -> tuple[list[tuple[Row, Request]], list[tuple[Row, Row, str]]]:
        return extend(self.batch, come), self.closed()


class ClosesBySwapping(Free):
    """Closes a hole by swapping it with the last row, and so lists every vacated row that nobody took."""

    def filled(
        self, gone: list[Row], come: Sequence[Request]
    ) -> tuple[list[tuple[Row, Request]], list[tuple[Row, Row, str]]]:
        added = refill(self.batch, gone, come)
        added += extend(self.batch, come[len(added) :])
        moved: list[tuple[Row, Row, str]] = []
        trim(self.batch)
        while None in self.batch:
            moved.append((self.batch.index(None), len(self.batch) - 1, SWAP))
            swap(self.batch, *moved[-1][:2])
            trim(self.batch)
        return added, moved


class KeepsIdsSorted(RefillsHighestFirst):
    """Keeps the rows sorted by id with swaps of its own, and none that it is asked for, as some backends do."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        return super().step(replace(schedule, swaps=()))

    def filled(
        self, gone: list[Row], come: Sequence[Request]
    ) -> tuple[list[tuple[Row, Request]], list[tuple[Row, Row, str]]]:
        added, moved = super().filled(gone, come)
        for row in range(len(self.batch)):
            least = min(range(row, len(self.batch)), key=lambda at: str(self.batch[at]))
            if least != row:
                swap(self.batch, row, least)
                moved.append((row, least, SWAP))
        return added, moved


class AddsAllAgain(Elided):
    """After any change adds every request anew at its row, and removes the rows that are no more."""

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        before, changed = len(self.batch), bool(schedule.leaving or schedule.coming)
        kept = [request for request in self.batch if request and request.name not in schedule.leaving]
        rows = [*kept, *map(asked, schedule.coming)]
        self.batch[:] = rows
        for pair in schedule.swaps:
            swap(self.batch, *pair)
        if not changed and not schedule.swaps:
            return None
        added = tuple(enumerate(rows)) if changed else ()
        moved = tuple((row, other, SWAP) for row, other in schedule.swaps)
        return self.emitted(Update(len(rows), tuple(range(len(rows), before)), added, moved))


PRODUCER_SHAPES: tuple[type[Elided], ...] = (
    ExplicitHighestFirst,
    ElidedLowestFirst,
    TakesTurns,
    Tuples,
    RefillsHighestFirst,
    AppendsAlways,
    ClosesBySwapping,
    KeepsIdsSorted,
    AddsAllAgain,
)
