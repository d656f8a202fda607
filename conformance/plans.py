"""What an engine decides at a step, by request; the reference producer turns it into rows and an update.

Leaving anything out of a plan leaves a plan, and every plan is a reachable history. That is what makes them shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from logitsproc.conformance.history import Added, Growth, History, Step, new_request, to_update
from logitsproc.reference.batch import SWAP, Batch, IllFormed, apply_update
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step
from logitsproc.reference.request import Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan:
    """One step of an engine: whose tokens land, who leaves, who comes (True: with a new list), which rows swap."""

    growth: tuple[Growth, ...] = ()
    leave: tuple[str, ...] = ()
    come: tuple[tuple[str, bool], ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()
    applies: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """A history as the machine made it: plans (reachable) or steps (literal), and the producer's dialect."""

    header: History
    items: tuple[Plan | Step, ...] = ()
    dialect: str = ELIDED


@dataclass
class Lowering:
    """The batch by name while plans become steps."""

    dialect: str
    batch: Batch = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)

    def lower(self, item: Plan | Step) -> Step | None:
        """The step for a plan or a literal step, less what is impossible in this batch; None if nothing is left."""
        if isinstance(item, Plan):
            return self.lower_plan(item)
        return self.lower_step(item)

    def lower_plan(self, plan: Plan) -> Step:
        """The step that the engine's algorithm makes of a plan."""
        rows = {request.name: row for row, request in enumerate(self.batch) if request is not None}
        leave = [rows[name] for name in dict.fromkeys(plan.leave) if name in rows]
        staying = set(rows) - set(plan.leave)
        fresh = {name: new for name, new in plan.come if name in self.requests and name not in staying}
        size = len(staying) + len(fresh)
        swaps = [pair for pair in plan.swaps if max(pair) < size]
        update = engine_step(self.batch, leave, [self.requests[name] for name in fresh], swaps, self.dialect)
        growth = tuple(growth for growth in plan.growth if growth.request in self.requests)
        if update is None:
            return Step(growth=growth, applies=plan.applies)
        added = tuple(Added(row, request.name, fresh[request.name]) for row, request in update.added)
        return Step(growth, update.removed, added, update.moved, applies=plan.applies)

    def lower_step(self, step: Step) -> Step | None:
        """The literal step as it is, or None where the list law has no meaning for it."""
        known = all(add.request in self.requests for add in step.added)
        if not known:
            return None
        step = replace(step, growth=tuple(growth for growth in step.growth if growth.request in self.requests))
        batch = list(self.batch)
        try:
            apply_update(batch, to_update(step, self.requests, self.batch))
        except IllFormed:
            return None
        rows = [request for request in batch if request is not None]
        if len(set(rows)) < len(rows):
            return None
        self.batch = batch
        return step


def lower(case: Case) -> History:
    """The history of a case."""
    lowering = Lowering(case.dialect)
    for name, arrival in case.header.requests.items():
        lowering.requests[name] = new_request(name, arrival)
    steps = [step for item in case.items if (step := lowering.lower(item)) is not None]
    return replace(case.header, steps=tuple(steps))


def name_of(number: int) -> str:
    """A, B, ..., Z, A1, B1, ...: requests by order of arrival.

    >>> name_of(0), name_of(27)
    ('A', 'B1')
    """
    letter, lap = chr(ord("A") + number % 26), number // 26
    return f"{letter}{lap}" if lap else letter


def renamed(case: Case) -> Case:
    """The case with its requests named by order of arrival, and without those that never arrive."""
    order: list[str] = []
    for step in lower(case).steps:
        order += [add.request for add in step.added if add.request not in order]
    names = {old: name_of(number) for number, old in enumerate(order)}
    requests = {names[old]: case.header.requests[old] for old in order}
    items = tuple(rename_item(item, names) for item in case.items)
    return replace(case, header=replace(case.header, requests=requests), items=items)


def rename_item(item: Plan | Step, names: dict[str, str]) -> Plan | Step:
    """The item with new names; what is said of other requests is dropped."""
    growth = tuple(replace(g, request=names[g.request]) for g in item.growth if g.request in names)
    if isinstance(item, Plan):
        leave = tuple(names[name] for name in item.leave if name in names)
        come = tuple((names[name], fresh) for name, fresh in item.come if name in names)
        return replace(item, growth=growth, leave=leave, come=come)
    added = tuple(replace(add, request=names[add.request]) for add in item.added if add.request in names)
    return replace(item, growth=growth, added=added)


def without(items: Sequence[T], index: int) -> tuple[T, ...]:
    """The items less one."""
    return (*items[:index], *items[index + 1 :])


def with_other(items: Sequence[T], index: int, other: T) -> tuple[T, ...]:
    """The items with another in the place of one."""
    return (*items[:index], other, *items[index + 1 :])


def lifted(history: History) -> Case:
    """The history as a case: a plan for each step that the engine's algorithm makes of one, else the step itself.

    In the dialect in which most are plans.
    """
    cases = [lifted_as(history, dialect) for dialect in (ELIDED, EXPLICIT)]
    return max(cases, key=lambda case: sum(isinstance(item, Plan) for item in case.items))


def lifted_as(history: History, dialect: str) -> Case:
    """The case in one dialect."""
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    lowering = Lowering(dialect, requests=requests)
    return Case(replace(history, steps=()), tuple(lift(lowering, step) for step in history.steps), dialect)


def lift(lowering: Lowering, step: Step) -> Plan | Step:
    """The plan of which the lowering makes this step, or the step; the lowering's batch goes one step on."""
    plan, planned = plan_of(step, lowering.batch), replace(lowering, batch=list(lowering.batch))
    lowered = planned.lower_plan(plan)
    sized = step.size in (None, len(planned.batch)) and lowered.is_quiet == step.is_quiet
    if sized and lowered == replace(step, size=None, drawing=None):
        lowering.batch = planned.batch
        return plan
    lowering.lower_step(step)
    return step


def plan_of(step: Step, batch: Batch) -> Plan:
    """Who leaves, who comes and which rows swap, if an engine made this step of this batch."""
    leave = [request.name for row in vacated(step, batch) if (request := batch[row])]
    come = tuple((add.request, add.fresh) for add in step.added)
    swaps = tuple((source, destination) for source, destination, direction in step.moved if direction == SWAP)
    return Plan(step.growth, tuple(leave), come, swaps, step.applies)


def vacated(step: Step, batch: Sequence[Request | None]) -> list[int]:
    """The rows of this batch whose occupant ends: removed, added at, or filled by a one-way move; each once."""
    filled = [destination for _, destination, direction in step.moved if direction != SWAP]
    rows = [*step.removed, *(add.row for add in step.added), *filled]
    return [row for row in dict.fromkeys(rows) if 0 <= row < len(batch)]


def lifts(history: History) -> int:
    """How many updates of the history are those of the engine's own algorithm."""
    bare = replace(history, steps=tuple(replace(step, sights=()) for step in history.steps))
    items = zip(lifted(bare).items, history.steps, strict=True)
    return sum(isinstance(item, Plan) and not step.is_quiet for item, step in items)
