"""A history as plain data: the requests, and what happens to the batch at each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from logitsproc.reference.batch import Batch, Update, apply_update
from logitsproc.reference.request import Request

SHARED = "shared"
STRIDED = "strided"
WARM_UP = "warm-up"
BFLOAT16 = "bfloat16"
OPTIONS = (SHARED, STRIDED, WARM_UP, BFLOAT16)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request before any step: its params, prompt token ids (or None) and the outputs it starts with."""

    params: dict[str, Any] = field(default_factory=dict)
    prompt: tuple[int, ...] | None = (1, 2)
    output: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Growth:
    """What happens to one live output list in a step.

    The last `dropped` ids go, then `tokens` come; the last `late` of them are -1 until apply.
    """

    request: str
    tokens: tuple[int, ...] = ()
    late: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Added:
    """A request that takes a row; `fresh` hands over a new list object with the same outputs."""

    row: int
    request: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """A logits row that a request is shown in a step, and the row it is to get, or None where nobody says."""

    request: str
    logits: tuple[float, ...]
    expected: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Step:
    """One engine step: tokens land, rows change, update_state, then apply `applies` times.

    `size` overrides batch_size; `drawing` is the batch that the author says comes out.
    """

    growth: tuple[Growth, ...] = ()
    removed: tuple[int, ...] = ()
    added: tuple[Added, ...] = ()
    moved: tuple[tuple[int, int, str], ...] = ()
    size: int | None = None
    applies: int = 1
    drawing: tuple[str | None, ...] | None = None
    sights: tuple[Sight, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether update_state gets None."""
        return not (self.removed or self.added or self.moved) and self.size is None


@dataclass(frozen=True, slots=True)
class History:
    """Requests by name, steps from an empty batch, and where the logits come from.

    `kind` is the SamplingParams field under test. Row r of step s gets the logits `palette[offset + 7s + 5r]`.
    """

    requests: dict[str, Arrival] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    vocab: int = 8
    palette: str = "dense"
    offset: int = 0
    options: frozenset[str] = frozenset()
    kind: str | None = None


def new_request(name: str, arrival: Arrival) -> Request:
    """The model's request for an arrival, with lists of its own."""
    prompt = None if arrival.prompt is None else list(arrival.prompt)
    return Request(name, arrival.params, prompt, list(arrival.output))


def grow(output: list[int], growth: Growth) -> None:
    """Changes the list as the growth says, with every id in place."""
    if growth.dropped:
        del output[-growth.dropped :]
    output.extend(growth.tokens)


def to_update(step: Step, requests: dict[str, Request], batch: Batch) -> Update | None:
    """The step's update on the model, for the batch as it is before it."""
    if step.is_quiet:
        return None
    added = tuple((add.row, requests[add.request]) for add in step.added)
    size = rows_after(batch, step) if step.size is None else step.size
    return Update(size, step.removed, added, step.moved)


def rows_after(batch: Batch, step: Step) -> int:
    """The number of rows after the step: up to the last that holds a request."""
    rows: list[object] = list(batch)
    for row in step.removed:
        if row < len(rows):
            rows[row] = None
    rows.extend([None] * (1 + max((add.row for add in step.added), default=-1) - len(rows)))
    for add in step.added:
        rows[add.row] = add
    for source, destination, direction in step.moved:
        if max(source, destination) < len(rows):
            held = rows[destination] if direction == "SWAP" else None
            rows[destination], rows[source] = rows[source], held
    while rows and rows[-1] is None:
        rows.pop()
    return len(rows)


def batches(history: History) -> Iterator[list[str | None]]:
    """The names in the batch after each step; raises IllFormed where the list law does."""
    batch: Batch = []
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    for step in history.steps:
        apply_update(batch, to_update(step, requests, batch))
        yield [None if request is None else request.name for request in batch]
