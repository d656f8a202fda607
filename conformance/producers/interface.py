"""What the suite asks of a producer: two methods, which an adapter of a few lines gives to any engine's batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Coming:
    """A request that takes a row: a new one, or one that was here before and brings its outputs.

    params: the host's SamplingParams. output_token_ids: the live list; the suite goes on appending to it.
    """

    req_id: str
    params: Any
    prompt_token_ids: list[int] | None
    output_token_ids: list[int]


@dataclass(frozen=True)
class Schedule:
    """What a scheduler decided for one step.

    leaving: ids of requests that were in the batch and finished, were aborted, were preempted or are not scheduled.
    coming: those that are in the batch after the step and were not before, and those that left and come back in one
    step; one of them may have the id of another that is leaving. swaps: pairs of rows that an attention backend
    exchanges, one after the other, when the batch is condensed.
    """

    leaving: tuple[str, ...] = ()
    coming: tuple[Coming, ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()


class Producer(Protocol):
    """An engine's batch, built as (max_num_seqs, vocab_size) and empty at first."""

    def step(self, schedule: Schedule) -> Any:
        """Changes the batch; gives the BatchUpdate that a processor would be handed, the same object, or None."""

    def rows(self) -> Sequence[tuple[str | None, list[int] | None]]:
        """The producer's own order: for each row the id of its request and the output list it holds.

        A hole is (None, None); those after the last request are no rows.
        """
