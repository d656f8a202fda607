"""What the exhaustive checks look at: every update, every step of an engine, every state, every history, to a bound.

Each function that gives cases takes the code in question and gives one item a case: None, or on one line what differs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import combinations, permutations, product
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from logitsproc.conformance.bindings import Subject, load_subject
from logitsproc.conformance.checks import judge
from logitsproc.conformance.history import Added, Arrival, Growth, History, Step
from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.machine import TOKENS
from logitsproc.conformance.notation import format_history, format_step
from logitsproc.conformance.oracles import ReferenceOracle
from logitsproc.conformance.plans import Lowering, Plan, name_of
from logitsproc.conformance.player import Player, Violation
from logitsproc.conformance.producers.checks import Decision, Emission, drawn, troubles
from logitsproc.optimized.table import Users
from logitsproc.proofs.orders import ADMITTED, PARTS, apply_in_order
from logitsproc.reference import batch as law
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch, Update
from logitsproc.reference.producer import ELIDED, EXPLICIT
from logitsproc.reference.request import Request

Moves = tuple[tuple[int, int, str], ...]
USES: dict[str, Any] = {"uses": True}
"""Params of a request that uses the processor; one without params does not."""
BATCH = tuple(Request(name_of(number), USES) for number in range(8))
ARRIVALS = tuple(Request(f"N{number}", USES) for number in range(10))
USER, OTHER = Request("U", USES), Request("V")


def state_of(request: Request, prompt: list[int] | None, output: list[int]) -> Request | None:
    """The request itself, if it uses the processor: the host hands it over in the place of its params."""
    return request if request.params else None


def followers(code: SimpleNamespace, batch: Sequence[Request]) -> Users[Request]:
    """The bookkeeping of a processor whose batch is this one."""
    users: Users[Request] = code.Users(state_of)
    users.table = code.RowTable()
    for row, request in enumerate(batch):
        users.add(row, request, request.prompt, request.output)
    return users


def told(update: Update) -> BatchUpdate:
    """The update in the host's types."""
    added = [(row, request, request.prompt, request.output) for row, request in update.added]
    moved = [(source, to, MoveDirectionality[direction]) for source, to, direction in update.moved]
    return BatchUpdate(update.batch_size, update.removed, added, moved)


def difference(batch: Batch, users: Users[Request]) -> str | None:
    """What the table has otherwise than the list: rows, states, slots that are a permutation, holes without a state."""
    users_by_law = {row: request for row, request in enumerate(batch) if request is not None and request.params}
    if list(users.by_row().items()) != list(users_by_law.items()):
        return f"the list has the states {users_by_law}, the table {users.by_row()}"
    if len(users.states) != len(users_by_law):
        return f"the states {users.states} are kept, and {users_by_law} are in use"
    if sorted(users.table.slots) != list(range(len(users.table.live))):
        return f"slots {users.table.slots} of {len(users.table.live)} rows are no permutation"
    live = [row for row, request in enumerate(batch) if request is not None]
    occupied = [row for row, _ in users.table.occupied()]
    return None if occupied == live else f"rows {live} hold a request, by the table {occupied}"


def story(before: Sequence[Request | None], update: Update | None, trouble: str) -> str:
    """`[A, B]; remove 0; move 1->0: what differs`."""
    given = update or Update(len(before))
    added = tuple(Added(row, request.name) for row, request in given.added)
    return f"{drawn(before)}; {format_step(Step((), given.removed, added, given.moved))}: {trouble}"


def subsets(items: Sequence[int], most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every set of the items, or of at most so many of them, the smallest first."""
    for size in range(1 + (len(items) if most is None else min(most, len(items)))):
        yield from combinations(items, size)


class Scope(NamedTuple):
    """Updates: up to so many rows are removed, at one row or none one of these requests is added, and there are up to
    so many moves."""

    removed: int
    newcomers: tuple[Request, ...]
    moves: int


def well_formed(batch: Batch, rows: int, scope: Scope) -> Iterator[Update]:
    """Every well-formed update of the scope that leaves the batch up to so many rows, with the smallest batch_size."""
    live = [row for row, request in enumerate(batch) if request is not None]
    additions = product(range(min(len(batch) + 1, rows)), scope.newcomers)
    for removed, added in product(subsets(live, scope.removed), [(), *((addition,) for addition in additions)]):
        after = list(batch)
        law.apply_update(after, Update(rows, removed, added))
        for size, moved in chains(after, scope.moves):
            yield Update(size, removed, added, moved)


def chains(batch: Batch, moves: int) -> Iterator[tuple[int, Moves]]:
    """Every well-formed sequence of up to so many moves, with the number of rows up to the last that is occupied."""
    yield 1 + max((row for row, request in enumerate(batch) if request is not None), default=-1), ()
    pairs = product(range(len(batch)), repeat=2) if moves else ()
    for (source, to), direction in product(pairs, (UNIDIRECTIONAL, SWAP)):
        if direction == SWAP or (source != to and batch[source] is not None):
            after = list(batch)
            (law.swap if direction == SWAP else law.move)(after, source, to)
            for size, rest in chains(after, moves - 1):
                yield size, ((source, to, direction), *rest)


def updates(code: SimpleNamespace, rows: int, scope: Scope) -> Iterator[str | None]:
    """Every well-formed update of the scope to every full batch of up to so many rows, by the list and by the table."""
    for size in range(rows + 1):
        before = BATCH[:size]
        for update in well_formed(list(before), size + 1, scope):
            batch, users = list[Request | None](before), followers(code, before)
            code.apply_update(batch, update)
            users.follow(told(update))
            trouble = difference(batch, users)
            yield story(before, update, trouble) if trouble else None


def reachable(code: SimpleNamespace, rows: int, swapped_rows: int) -> Iterator[str | None]:
    """Every step of an engine from every full batch of up to so many rows, in both dialects; a case is a decision."""
    for size in range(rows + 1):
        for decision in decisions(size, swaps=size <= swapped_rows):
            yield engine_trouble(code, BATCH[:size], decision)


def decisions(size: int, swaps: bool) -> Iterator[Decision]:
    """Every set of rows vacated, up to one arrival more than that, and one swap or none."""
    for vacated in subsets(range(size)):
        for count in range(len(vacated) + 2):
            yield Decision(vacated, ARRIVALS[:count])
            for pair in combinations(range(size - len(vacated) + count), 2) if swaps else ():
                yield Decision(vacated, ARRIVALS[:count], (pair,))


def engine_trouble(code: SimpleNamespace, before: tuple[Request, ...], decision: Decision) -> str | None:
    """What is wrong with what an engine emits in one of the dialects, or that they do not mean the same."""
    meant: list[Batch] = []
    for dialect in (ELIDED, EXPLICIT):
        batch: Batch = list(before)
        update = code.engine_step(batch, decision.vacated, decision.arrivals, decision.swaps, dialect)
        meant.append(batch)
        trouble = emission_trouble(code, Emission(before, decision, update, tuple(batch)), dialect)
        if trouble is not None:
            return story(before, update, f"{dialect}: {trouble}")
    return None if meant[0] == meant[1] else f"{drawn(before)}: the dialects mean {drawn(meant[0])}, {drawn(meant[1])}"


def emission_trouble(code: SimpleNamespace, emission: Emission, dialect: str) -> str | None:
    """What breaks a clause of producers, else what the list or the table has otherwise, or what the dialect lists."""
    if broken := troubles(emission):
        return " ".join(broken[0])
    update, rows = emission.update, list(emission.rows)
    batch, users = list(emission.before), followers(code, [request for request in emission.before if request])
    code.apply_update(batch, update)
    if batch != rows:
        return f"the producer has {drawn(rows)}, the list {drawn(batch)}"
    if update is None:
        return None
    unreplaced = emission.decision.vacated[len(emission.decision.arrivals) :]
    if dialect == EXPLICIT and set(update.removed) != set(unreplaced):
        return f"no arrival takes rows {list(unreplaced)}, and rows {list(update.removed)} are listed as removed"
    users.follow(told(update))
    any_order = dialect == ELIDED and not emission.decision.swaps
    for order in permutations(PARTS) if any_order else ADMITTED:
        other = list(emission.before)
        apply_in_order(code, other, update, order)
        if other != rows:
            return f"{', '.join(order)} gives {drawn(other)}"
    return difference(batch, users)


class State(NamedTuple):
    """What a history has led to: the batch by the list, and the bookkeeping of a processor."""

    batch: Batch
    users: Users[Request]


Form = tuple[tuple[bool | None, ...], int]


def form(state: State) -> Form:
    """The state up to the names of requests and slots: for each row None, or whether its request uses the processor,
    and how many rows the table has.

    Nothing else can tell two states apart that have come this far. No difference was found between list and table, so
    the table's bits, and which slots hold a state, are what the list says. Names of requests are never looked at. Slots
    are a permutation, and are only ever exchanged, but for a new row's, which is the number of rows in either.
    """
    roles = tuple(None if request is None else bool(request.params) for request in state.batch)
    return roles, len(state.users.table.live)


def followed(code: SimpleNamespace, state: State, update: Update) -> State:
    """The state after an update; the one before it stays as it is."""
    batch, users = list(state.batch), copy(state.users)
    users.states, users.table = dict(users.states), copy(users.table)
    users.table.slots, users.table.live = list(users.table.slots), list(users.table.live)
    code.apply_update(batch, update)
    users.follow(told(update))
    return State(batch, users)


def transitions(code: SimpleNamespace, rows: int, scope: Scope) -> Iterator[tuple[Form, str | None]]:
    """From the empty batch, every update of the scope to every state that is reached, until none leads to a new one.

    Gives the form that each update leads to, and what differs there.
    """
    empty = State([], followers(code, ()))
    known, waiting = {form(empty)}, [empty]
    for state in waiting:
        for update in well_formed(state.batch, rows, scope):
            after = followed(code, state, update)
            trouble = difference(*after)
            yield form(after), story(state.batch, update, trouble) if trouble else None
            if form(after) not in known:
                known.add(form(after))
                waiting.append(after)


def states(code: SimpleNamespace, rows: int, scope: Scope) -> Iterator[str | None]:
    """What differs after every update of every state."""
    return (trouble for _, trouble in transitions(code, rows, scope))


class Length(NamedTuple):
    """Histories: the first requests come together, up to so many rows of them; then so many steps, in each of which up
    to `most` requests leave, up to `most` come, and two rows may swap."""

    rows: int
    steps: int
    most: int


def target_of(kind: Kind) -> str:
    """Where the fast path has a kind.

    >>> from logitsproc.conformance.kinds import KINDS
    >>> target_of(KINDS["min_p"])
    'logitsproc.optimized:MinPLogitsProcessor'
    """
    name = "".join(part.capitalize() for part in kind.field.split("_"))
    return f"logitsproc.optimized:{name}" + ("" if kind.field == "pipeline" else "LogitsProcessor")


def ready(kind: Kind, target: str | type) -> Subject:
    """The subject, of which one processor is built and every other is a copy: a pipeline reads files to be built."""
    subject = kind.prepare(load_subject(target))
    built = subject.build(History().vocab)
    return replace(subject, factory=lambda *_: deepcopy(built), mixin=None)


def asked(kind: Kind) -> list[Arrival]:
    """Requests of a kind: one that asks for the most, one that asks for something else, and one that asks nothing."""
    chance = random.Random(0)
    users, others = kind.users(chance), kind.others(chance)
    return [Arrival(params, output=(1,)) for params in (max(users, key=len), users[-1], others[0])]


def plans(length: Length, grows: bool, live: tuple[str, ...], arrived: int) -> Iterator[Plan]:
    """Every step of an engine from this batch; every request that stays gets a token if it grows, its id late."""
    most = length.most if arrived else length.rows
    for numbers in subsets(range(len(live)), most):
        leave = tuple(live[number] for number in numbers)
        staying = [name for name in live if name not in leave]
        growth = tuple(Growth(name, (TOKENS[arrived + place],), 1) for place, name in enumerate(staying) if grows)
        for count in range(1 + min(most, length.rows - len(staying))):
            come = tuple((name_of(arrived + number), False) for number in range(count))
            for pair in combinations(range(len(staying) + count), 2) if arrived else ():
                yield Plan(growth, leave, come, (pair,))
            yield Plan(growth, leave, come)


def sequences(
    length: Length, steps: int, grows: bool, live: tuple[str, ...] = (), arrived: int = 0
) -> Iterator[tuple[Plan, ...]]:
    """Every sequence of so many plans from this batch, when so many requests have arrived."""
    if not steps:
        yield ()
        return
    for plan in plans(length, grows, live, arrived):
        after = (*(name for name in live if name not in plan.leave), *(name for name, _ in plan.come))
        for rest in sequences(length, steps - 1, grows, after, arrived + len(plan.come)):
            yield plan, *rest


def written(sequence: Sequence[Plan], dialect: str) -> tuple[Step, ...]:
    """The steps that an engine of this dialect makes of the plans."""
    names = [name for plan in sequence for name, _ in plan.come]
    lowering = Lowering(dialect, requests={name: Request(name) for name in names})
    return tuple(lowering.lower_plan(plan) for plan in sequence)


def histories_of(kind: Kind, length: Length) -> Iterator[History]:
    """Every history of the length, in both dialects where they differ, with requests of every sort in every place."""
    for sequence in sequences(length, 1 + length.steps, kind.reads_outputs):
        names = [name for plan in sequence for name, _ in plan.come]
        for steps in dict.fromkeys(written(sequence, dialect) for dialect in (ELIDED, EXPLICIT)):
            for sorts in product(asked(kind), repeat=len(names)):
                yield History(dict(zip(names, sorts, strict=True)), steps, kind=kind.field)


@torch.inference_mode()
def violation(subject: Subject, oracle: ReferenceOracle, history: History) -> Violation | None:
    """What a history shows, as the suite sees it."""
    try:
        player = Player(subject, replace(history, steps=()))
        for step in history.steps:
            judge(player, player.play(step), oracle)
    except Violation as found:
        return found
    return None


def histories(code: SimpleNamespace, kind: Kind, length: Length) -> Iterator[str | None]:
    """Every history of the length, played to the reference and to the processor, every row of logits compared."""
    subject, oracle = ready(kind, getattr(code, "processor", target_of(kind))), ReferenceOracle(kind)
    for history in histories_of(kind, length):
        found = violation(subject, oracle, history)
        yield f"{'; '.join(filter(None, format_history(history).splitlines()))}: {found.message}" if found else None
