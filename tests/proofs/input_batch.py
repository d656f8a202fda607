"""vLLM's own batch, taken through every small step: its rows and its updates are the reference's, to the letter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from types import FunctionType, SimpleNamespace
from typing import Any

from vllm import SamplingParams

from logitsproc.conformance.interface import as_update
from logitsproc.conformance.plans import name_of
from logitsproc.conformance.producers.checks import Decision, drawn
from logitsproc.conformance.producers.interface import Coming, Schedule
from logitsproc.conformance.producers.vllm_input_batch import InputBatchSwaps
from logitsproc.optimized.table import BatchUpdate, Users
from logitsproc.proofs import errors, exhaustive
from logitsproc.proofs.cases import story, subsets
from logitsproc.proofs.exhaustive import Exhaustive
from logitsproc.proofs.statement import planted
from logitsproc.reference import producer
from logitsproc.reference.batch import UNIDIRECTIONAL, Batch, Row, Update
from logitsproc.reference.producer import ELIDED
from logitsproc.reference.request import Request

MOST_ROWS = 8
MOST_ARRIVALS = 4
VOCAB = 8
NOBODY = Request("nobody")


class Driven:
    """vLLM's InputBatch, and the requests that stand in it by turns, each with params and lists of its own."""

    def __init__(self) -> None:
        self.producer = InputBatchSwaps(MOST_ROWS + MOST_ARRIVALS, VOCAB)
        self.requests = requests()
        self.owners = {id(request.output): request for request in self.requests}

    def step(self, leaving: Sequence[Request | None], decision: Decision) -> Any:
        """One step in the model runner's order; gives vLLM's update."""
        names = tuple(request.name for request in leaving if request is not None)
        asked = decision.arrivals
        coming = tuple(Coming(request.name, request.params, request.prompt, request.output) for request in asked)
        return self.producer.step(Schedule(names, coming, decision.swaps))

    def rows(self) -> Batch:
        """Its own rows; nobody stands where the id and the output list are not of one request."""
        held = [(name, self.owners.get(id(output), NOBODY)) for name, output in self.producer.rows()]
        return [owner if owner.name == name else NOBODY for name, owner in held]

    def asked(self, given: Sequence[Any]) -> Request:
        """The request whose own params, prompt and output list were handed over, each the very object; else nobody."""
        params, prompt, output = given
        request = self.owners.get(id(output), NOBODY)
        return request if request.params is params and request.prompt is prompt else NOBODY


def requests() -> list[Request]:
    """As many as there may be in a step."""
    return [Request(name_of(number), SamplingParams(), [1]) for number in range(MOST_ROWS + MOST_ARRIVALS)]


def decisions(everybody: Sequence[Request], rows: int) -> Iterator[Decision]:
    """Every set of rows vacated, up to so many arrivals, and then every pair of rows swapped, or none."""
    for vacated in subsets(range(rows)):
        for count in range(MOST_ARRIVALS + 1):
            arrivals = tuple(everybody[rows : rows + count])
            yield Decision(vacated, arrivals)
            for pair in combinations(range(rows - len(vacated) + count), 2):
                yield Decision(vacated, arrivals, (pair,))


def cases(code: SimpleNamespace) -> Iterator[str | None]:
    """What differs between vLLM's batch and the code after every decision about every full batch."""
    driven = Driven()
    for rows in range(MOST_ROWS + 1):
        before = tuple(driven.requests[:rows])
        for decision in decisions(driven.requests, rows):
            driven.step(driven.rows(), Decision(arrivals=before))
            yield difference(code, driven, before, decision)


def difference(code: SimpleNamespace, driven: Driven, before: tuple[Request, ...], decision: Decision) -> str | None:
    """The first of what there is to compare after one step that is not the same."""
    given = driven.step([before[row] for row in decision.vacated], decision)
    update = None if given is None else as_update(given, driven.asked)
    batch: Batch = list(before)
    expected = code.engine_step(batch, decision.vacated, decision.arrivals, decision.swaps, ELIDED)
    rows = driven.rows()
    if rows != batch:
        return story(before, update, f"vLLM has {drawn(rows)}, the reference {drawn(batch)}")
    if update != expected:
        return story(before, update, f"the reference emits {expected}")
    if (listed := by_the_list(code, before, update)) != rows:
        return story(before, update, f"vLLM has {drawn(rows)}, the list {drawn(listed)}")
    if (tabled := by_the_table(code, driven, before, given)) != dict(enumerate(rows)):
        return story(before, update, f"vLLM has {drawn(rows)}, the row table {tabled}")
    return None


def by_the_list(code: SimpleNamespace, before: Sequence[Request], update: Update | None) -> Batch:
    """The rows after the update by the list law."""
    batch: Batch = list(before)
    code.apply_update(batch, update)
    return batch


def by_the_table(
    code: SimpleNamespace, driven: Driven, before: Sequence[Request], given: BatchUpdate | None
) -> dict[int, Request]:
    """The rows after vLLM's own update by the bookkeeping of a processor that every request uses."""
    users: Users[Request] = code.Users(lambda *own: driven.asked(own))
    for row, request in enumerate(before):
        users.add(row, request.params, request.prompt, request.output)
    if given is not None:
        users.follow(given)
    return users.by_row()


def emitted() -> Iterator[Update | None]:
    """What the reference emits in each case, which is what vLLM does where the check finds no difference."""
    everybody = requests()
    for rows in range(MOST_ROWS + 1):
        for decision in decisions(everybody, rows):
            batch: Batch = list(everybody[:rows])
            yield producer.engine_step(batch, decision.vacated, decision.arrivals, decision.swaps, ELIDED)


def fills_the_highest_hole(batch: Batch) -> tuple[Row, Row, str]:
    """The last row moves into the highest hole."""
    source, hole = len(batch) - 1, max(row for row, request in enumerate(batch) if request is None)
    batch[hole], batch[source] = batch[source], None
    return source, hole, UNIDIRECTIONAL


def refills_from_the_top(batch: Batch, holes: Sequence[Row], arrivals: Sequence[Request]) -> list[tuple[Row, Request]]:
    """Arrivals take the highest vacated rows."""
    return producer.refill(batch, holes[::-1], arrivals)


def with_parts(function: Any, **parts: Any) -> Any:
    """The function, calling other parts by the names of its own."""
    return FunctionType(function.__code__, {**function.__globals__, **parts})


CONDENSES_OTHERWISE = with_parts(producer.condense, condense_once=fills_the_highest_hole)
CHECK = Exhaustive(
    name="input_batch",
    sentence="vLLM's InputBatch has the rows of the reference after each step, and emits exactly its elided update, "
    "which leads the list and the row table to those rows.",
    clauses=exhaustive.PRODUCED,
    bound=f"full batches of up to {MOST_ROWS} rows, any rows vacated, up to {MOST_ARRIVALS} arrivals, any swap or none",
    unit="updates",
    count=39_670,
    cases=cases,
    planted=(
        planted(
            "Condensing fills the highest hole.",
            engine_step=with_parts(producer.engine_step, condense=CONDENSES_OTHERWISE),
        ),
        planted(
            "Arrivals take the highest vacated rows.",
            engine_step=with_parts(producer.engine_step, refill=refills_from_the_top),
        ),
        planted(engine_step=errors.names_no_removals),
        planted(engine_step=errors.moves_backward),
        planted(engine_step=errors.sizes_before),
        planted(apply_update=errors.cuts_nothing_off),
        planted(Users=errors.MovesFirst),
        planted(Users=errors.MovesBothWays),
        planted(Users=errors.MovesOneWay),
    ),
)
