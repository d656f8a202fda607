"""The reference producer as a subject, in its two dialects."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality
from logitsproc.conformance.producers.interface import Schedule
from logitsproc.reference.batch import Batch, Update
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step
from logitsproc.reference.request import Request


class Elided:
    """logitsproc.reference.producer; a hole that a move filled is not listed, as vLLM's code does."""

    DIALECT = ELIDED
    ALGORITHM = staticmethod(engine_step)

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        self.batch: Batch = []

    def step(self, schedule: Schedule) -> BatchUpdate | None:
        """One step of the engine's algorithm."""
        held = {request.name: row for row, request in enumerate(self.batch) if request is not None}
        arrivals = [
            Request(coming.req_id, coming.params, coming.prompt_token_ids, coming.output_token_ids)
            for coming in schedule.coming
        ]
        vacated = [held[name] for name in schedule.leaving]
        return self.emitted(self.ALGORITHM(self.batch, vacated, arrivals, schedule.swaps, self.DIALECT))

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        """The update as the host's."""
        if update is None:
            return None
        added = [(row, request.params, request.prompt, request.output) for row, request in update.added]
        moved = [(source, to, MoveDirectionality[direction]) for source, to, direction in update.moved]
        return BatchUpdate(update.batch_size, list(update.removed), added, moved)

    def rows(self) -> Sequence[tuple[str | None, list[int] | None]]:
        """The list."""
        return [(None, None) if request is None else (request.name, request.output) for request in self.batch]


class Explicit(Elided):
    """logitsproc.reference.producer; every vacated row that nobody took is listed, as vLLM's design page prints it."""

    DIALECT = EXPLICIT
