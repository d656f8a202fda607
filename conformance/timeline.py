"""What happens to each row, operation by operation: what pictures are drawn from and prose is written of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from logitsproc.conformance.history import History, Step, grow, new_request, rows_after
from logitsproc.reference import batch as law
from logitsproc.reference.batch import SWAP, Batch, IllFormed
from logitsproc.reference.request import Request

REMOVE, ADD, MOVE = "remove", "add", "move"
Names = tuple[str | None, ...]
"""Row -> the name of the request there, None for a hole."""


class Event(NamedTuple):
    """One operation of an update.

    kind: REMOVE, ADD, MOVE or SWAP. row: where, or from where; other: where to, of a move or a swap, else the row
    again. before, after: the batch.
    """

    kind: str
    row: int
    other: int
    before: Names
    after: Names

    @property
    def moves(self) -> list[tuple[str, int, int]]:
        """(request, from, to) of each request that another row has now."""
        ways = {MOVE: [(self.row, self.other)], SWAP: [(self.row, self.other), (self.other, self.row)]}
        names = [(self.before[start], start, end) for start, end in ways.get(self.kind, []) if start != end]
        return [(name, start, end) for name, start, end in names if name is not None]

    @property
    def gone(self) -> str | None:
        """The request that this operation takes out of the batch."""
        return next((name for name in self.before if name is not None and name not in self.after), None)


@dataclass(frozen=True)
class Moment:
    """A step: its number, the batch before it, its operations, and the batch after it."""

    index: int
    step: Step
    before: Names
    events: list[Event]
    names: Names

    @property
    def states(self) -> list[Names]:
        """The batch after each operation, and after the step."""
        return [*(event.after for event in self.events), self.names]


def at(names: Names, row: int) -> str | None:
    """Who stands at a row, also of one beyond the batch."""
    return names[row] if row < len(names) else None


def timeline(history: History) -> list[Moment]:
    """Every step of the history, as far as it is well-formed."""
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    batch: Batch = []
    moments: list[Moment] = []
    try:
        for index, step in enumerate(history.steps):
            size = rows_after(batch, step) if step.size is None else step.size
            before, events = names_of(batch), list(events_of(batch, step, requests))
            if not step.is_quiet:
                law.resize(batch, size)
            moments.append(Moment(index, step, before, events, names_of(batch)))
    except IllFormed:
        pass
    return moments


def events_of(batch: Batch, step: Step, requests: dict[str, Request]) -> Iterator[Event]:
    """UPD-ORDER, UPD-SEQUENCE: the operations, each of which changes the batch when it is asked for."""
    operations: list[tuple[str, int, int, Callable[[Batch], None]]] = [
        *((REMOVE, row, row, partial(law.remove, row=row)) for row in step.removed),
        *((ADD, add.row, add.row, partial(law.add, row=add.row, request=requests[add.request])) for add in step.added),
    ]
    for source, destination, direction in step.moved:
        if direction == SWAP:
            operations.append((SWAP, source, destination, partial(law.swap, row=source, other=destination)))
        else:
            operations.append((MOVE, source, destination, partial(law.move, source=source, destination=destination)))
    for kind, row, other, change in operations:
        before = names_of(batch)
        change(batch)
        yield Event(kind, row, other, before, names_of(batch))


def names_of(batch: Batch) -> Names:
    """Whom each row serves."""
    return tuple(None if request is None else request.name for request in batch)


def requests_at(history: History, index: int) -> dict[str, Request]:
    """Every request as it is when a step is applied, with the outputs that it has then."""
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    for step in history.steps[: index + 1]:
        for growth in step.growth:
            grow(requests[growth.request].output, growth)
    return requests
