"""Exhaustive to a bound: every update, every step of an engine, every state that histories reach, and the logits of
every history of a few steps, the reference against the fast path; and the errors planted in either to see it fail."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from logitsproc.conformance.bindings import one_line, resolve
from logitsproc.conformance.kinds import KINDS, Kind
from logitsproc.conformance.miniatures.canaries import CANARIES
from logitsproc.conformance.miniatures.controls import ForgetsToClear
from logitsproc.optimized.table import Users
from logitsproc.proofs.cases import (
    OTHER,
    USER,
    Length,
    Scope,
    histories,
    reachable,
    states,
    target_of,
    updates,
)
from logitsproc.proofs.errors import (
    KeepsTheOverwritten,
    KeepsTheRemoved,
    KeepsTheReplaced,
    LeavesAGhost,
    MovesBackward,
    MovesBothWays,
    MovesFirst,
    MovesNothing,
    MovesOneWay,
    NumbersByRequests,
    RemovesLate,
    SharesASlot,
    SwapsSlotsOnly,
    cuts_nothing_off,
    lists_what_is_replaced,
    moves_backward,
    names_no_removals,
    sizes_before,
    speaks_one_dialect,
    swaps_in_one_dialect,
    swaps_nothing,
)
from logitsproc.proofs.orders import in_order
from logitsproc.proofs.statement import EXHAUSTIVE, REFUTED, Planted, Result, code_with, planted

UPDATED = (
    "UPD-REMOVE",
    "UPD-ADD",
    "UPD-REPLACE",
    "UPD-EXTEND",
    "UPD-MOVE",
    "UPD-DROP",
    "UPD-SWAP",
    "UPD-ORDER",
    "UPD-OVERLAP",
    "PROC-STATE-DEPARTED",
)
PRODUCED = (
    "PROD-RANGE",
    "PROD-DISJOINT",
    "PROD-CONTIGUOUS",
    "PROD-SIZE",
    "PROD-NONE",
    "PROD-REPLAY",
    "PROD-ROWS",
    "PROD-REFILL",
    "PROD-CONDENSE",
    "PROD-ELIDE",
)
SERVED = ("PROC-FUNCTION", "PROC-INDEPENDENT", "PROC-UNTOUCHED", "PROC-STATE-DEPARTED")
GROWN = ("PROC-LIVE-OUTPUTS", "PROC-QUIET")


@dataclass(frozen=True)
class Exhaustive:
    """What is looked at in every case up to a bound, an English phrase; a case is one of `unit`.

    count: how many cases there are; where a run sees another number, some have been lost.
    cases: gives, for the code in question, one item a case: None, or on one line what differs.
    """

    name: str
    sentence: str
    clauses: tuple[str, ...]
    bound: str
    unit: str
    count: int
    cases: Callable[[SimpleNamespace], Iterator[str | None]]
    planted: tuple[Planted, ...]


def judged(check: Exhaustive) -> Result:
    """Every case of the shipped code, up to the first that differs; and whether each planted error is found."""
    started = time.perf_counter()
    count, trouble = looked(check.cases(code_with()))
    missed = [error.says for error in check.planted if not is_found(check, error)]
    troubles = [trouble or miscounted(check, count), *(f"not found: {says}" for says in missed)]
    shown = tuple(trouble for trouble in troubles if trouble is not None)
    return Result(
        name=check.name,
        sentence=check.sentence,
        clauses=check.clauses,
        verdict=REFUTED if shown else EXHAUSTIVE,
        bound=check.bound,
        count=count,
        unit=check.unit,
        refuted=len(check.planted) - len(missed),
        planted=len(check.planted),
        troubles=shown,
        seconds=time.perf_counter() - started,
    )


def is_found(check: Exhaustive, error: Planted) -> bool:
    """Whether a case differs or raises with the error in the code; what libraries warn of then is no news."""
    with warnings.catch_warnings(action="ignore"):
        return looked(check.cases(code_with(error)))[1] is not None


def looked(cases: Iterable[str | None]) -> tuple[int, str | None]:
    """How many cases there were, up to the first that differs or raises, and what differs there or was raised."""
    count = 0
    try:
        for trouble in cases:
            count += 1
            if trouble is not None:
                return count, trouble
    except Exception as error:
        return count, f"after {count} cases: {one_line(error)}"
    return count, None


def miscounted(check: Exhaustive, count: int) -> str | None:
    """What is wrong with the number of cases, or of planted errors."""
    if not count:
        return "there is no case"
    if not check.planted:
        return "no error is planted"
    return None if count == check.count else f"there are {count} cases, and {check.count} are expected"


def misled(target: str, users: type[Users[Any]]) -> type:
    """The processor, with bookkeeping that is wrong."""
    cls = resolve(target)

    def build(self: Any, *arguments: Any) -> None:
        cls.__init__(self, *arguments)
        self.users = users(self.users.state_of)

    return type(f"{cls.__name__}{users.__name__}", (cls,), {"__init__": build, "__doc__": users.__doc__})


def of_updates(rows: int, moves: int) -> Exhaustive:
    """Every well-formed update of full batches."""
    return Exhaustive(
        name="updates",
        sentence="After any well-formed update the row table has the states of the list's requests, each at its row.",
        clauses=(*UPDATED, "UPD-SEQUENCE"),
        bound=f"full batches of up to {rows} rows, any rows removed, an addition at any row, {moves} moves",
        unit="updates",
        count=78_268,
        cases=partial(updates, rows=rows, scope=Scope(rows, (USER,), moves)),
        planted=(
            planted(Users=MovesFirst),
            planted(Users=RemovesLate),
            planted(Users=MovesBackward),
            planted(Users=MovesNothing),
            planted(Users=MovesOneWay),
            planted(Users=KeepsTheRemoved),
            planted(RowTable=SharesASlot),
            planted(RowTable=LeavesAGhost),
            planted(apply_update=in_order("added", "removed", "moved")),
        ),
    )


def of_engine_steps(rows: int, swapped_rows: int) -> Exhaustive:
    """Every step of an engine from full batches."""
    return Exhaustive(
        name="reachable",
        sentence="What an engine emits, in either dialect, leads the list and the row table to the engine's own rows.",
        clauses=PRODUCED,
        bound=f"full batches of up to {rows} rows, any rows vacated, arrivals up to one more than those, "
        f"a swap up to {swapped_rows} rows",
        unit="decisions",
        count=7_728,
        cases=partial(reachable, rows=rows, swapped_rows=swapped_rows),
        planted=(
            planted(engine_step=names_no_removals),
            planted(engine_step=lists_what_is_replaced),
            planted(engine_step=moves_backward),
            planted(engine_step=sizes_before),
            planted(engine_step=swaps_in_one_dialect),
            planted(engine_step=speaks_one_dialect),
            planted(apply_update=cuts_nothing_off),
            planted(swap=swaps_nothing),
            planted(Users=MovesBothWays),
        ),
    )


HOW_MANY_STATES = 121


def of_states(rows: int) -> Exhaustive:
    """Every update of every state, until there is no other state."""
    return Exhaustive(
        name="states",
        sentence=f"In each of the {HOW_MANY_STATES} states that any history reaches, up to names and slots, any update "
        "leads list and row table to the same requests, and to one of these states.",
        clauses=UPDATED,
        bound=f"all histories of batches of up to {rows} rows, a removal, an addition and a move each update",
        unit="transitions",
        count=70_477,
        cases=partial(states, rows=rows, scope=Scope(1, (USER, OTHER), 1)),
        planted=(
            planted(Users=KeepsTheOverwritten),
            planted(Users=KeepsTheReplaced),
            planted(Users=MovesBothWays),
            planted(RowTable=SwapsSlotsOnly),
            planted(RowTable=NumbersByRequests),
        ),
    )


def of_histories(kind: Kind, length: Length) -> Exhaustive:
    """Every history of a few steps, of one kind."""
    target = target_of(kind)
    return Exhaustive(
        name=f"histories {kind.field}",
        sentence=f"After any history each row of logits is what the reference of {kind.field} says of its request.",
        clauses=(*SERVED, *GROWN) if kind.reads_outputs else SERVED,
        bound=f"up to {length.rows} rows, {length.steps + 1} steps, in the later ones up to {length.most} leave, "
        f"{length.most} come, 2 swap",
        unit="histories",
        count=HOW_MANY[length],
        cases=partial(histories, kind=kind, length=length),
        planted=(
            Planted(inspect.getdoc(ForgetsToClear) or "", {"processor": CANARIES[kind.field]}),
            planted(processor=misled(target, MovesNothing)),
            planted(processor=misled(target, MovesOneWay)),
        ),
    )


SHORT, WIDE, LONG = Length(2, 1, 2), Length(3, 1, 1), Length(2, 2, 1)
LENGTHS = {"frequency_penalty": LONG, "top_k": SHORT, "top_p": SHORT, "pipeline": SHORT}
"""How long the histories of a kind are, where they are not WIDE: a row that is cut takes its time."""
HOW_MANY = {SHORT: 460, WIDE: 1_684, LONG: 3_088}
CHECKS: tuple[Exhaustive, ...] = (
    of_updates(rows=4, moves=2),
    of_engine_steps(rows=8, swapped_rows=6),
    of_states(rows=4),
    *(of_histories(kind, LENGTHS.get(field, WIDE)) for field, kind in KINDS.items()),
)
