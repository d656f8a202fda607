"""Cause and effect of a failure in words: who stood at the row, who came there and how, and what the row carries."""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign

from logitsproc.conformance.history import Growth, History
from logitsproc.conformance.notation import format_arrival
from logitsproc.conformance.player import Violation
from logitsproc.conformance.timeline import ADD, REMOVE, Event, Moment, at, timeline
from logitsproc.reference.batch import SWAP
from logitsproc.reference.expectation import refused

TOLD = 8
"""Of so many steps it is told what happened; of more, of the last ones."""


def story(history: History, violation: Violation, carries: tuple[str, ...]) -> str:
    """What led to the violation, and what the row is; where it is of no row, what happened in its step.

    carries: the requests whose params give what the row got.
    """
    moments = timeline(history)
    if violation.row is None:
        last = [moment for moment in moments if moment.index == violation.step]
        return " ".join(sentences(last, set(history.requests)))
    served = None if violation.request is None else violation.request.name
    about = {name for name in (served, *carries, *held(moments, violation.row)) if name is not None}
    told = sentences(moments, about)
    left_out = ["Before that, more happened to them."] if len(told) > TOLD else []
    return " ".join([*left_out, *told[-TOLD:], effect(history, violation, served, carries)])


def sentences(moments: list[Moment], about: set[str]) -> list[str]:
    """What happens to these requests, a sentence for each step in which something does."""
    steps = [(moment.index, list(told_of(moment, about))) for moment in moments]
    return [f"In step {index} {'; '.join(events)}." for index, events in steps if events]


def held(moments: list[Moment], row: int) -> set[str | None]:
    """Who stands at the row in the last step, and who stood there last before them."""
    states = [names for moment in moments for names in moment.states]
    standing = [name for names in states if (name := at(names, row)) is not None]
    last = standing[-1:]
    return {*last, *[name for name in standing if name not in last][-1:]}


def told_of(moment: Moment, about: set[str]) -> Iterator[str]:
    """In words, what lands in the outputs of these requests, and the operations of a step that are about them."""
    for growth in moment.step.growth:
        if growth.request in about:
            yield told_growth(growth)
    for event in moment.events:
        if about & {name for name in (*whom(event), event.gone) if name is not None}:
            yield told_event(event)


def told_growth(growth: Growth) -> str:
    """What happens to an output list in words."""
    lost = f"loses its last {growth.dropped} output tokens" if growth.dropped else ""
    late = f", the last {growth.late} of them late" if growth.late else ""
    got = f"gets output tokens {list(growth.tokens)}{late}" if growth.tokens else ""
    return f"{growth.request} {' and '.join(part for part in (lost, got) if part)}"


def whom(event: Event) -> list[str]:
    """Whom an operation puts at a row."""
    if event.kind == ADD:
        return [str(event.after[event.row])]
    return [name for name, _, _ in event.moves]


def told_event(event: Event) -> str:
    """An operation in words."""
    name, there = at(event.before, event.row), at(event.before, event.other)
    if event.kind == REMOVE:
        return f"{name} is removed from row {event.row}"
    if event.kind == ADD:
        new = event.after[event.row]
        return f"{new} is added at row {event.row}" + (f", in the place of {name}" if name else "")
    if event.kind == SWAP:
        both = " and ".join(f"{who} goes from row {start} to row {end}" for who, start, end in event.moves)
        return f"rows {event.row} and {event.other} are swapped" + (f", so that {both}" if both else "")
    return f"{name} moves from row {event.row} to row {event.other}" + (f", and {there} is gone" if there else "")


def effect(history: History, violation: Violation, served: str | None, carries: tuple[str, ...]) -> str:
    """What the row serves, and what it carries instead."""
    row = f"Row {violation.row}"
    serves = f"{row} serves nobody" if served is None else f"{row} serves {served}, which {asks(history, served)}"
    expectation, got = violation.expectation, violation.got
    if expectation is None or got is None:
        return f"{serves}."
    if carries:
        whose = " or ".join(f"{name}'s ({format_arrival(history.requests[name])})" for name in carries)
        return f"{serves}, but it came out as one of {whose}."
    if not expectation.untouched and same_values(got, violation.logits):
        return f"{serves}, but it came out as it went in."
    if expectation.untouched:
        changed = sum(not same_values([one], [other]) for one, other in zip(got, violation.logits, strict=True))
        return f"{serves}; nothing is to change there now, and {changed} of {len(got)} tokens did."
    wrong = len(refused(expectation, got)) or 1
    return f"{serves}, and {wrong} of its {len(got)} tokens are not what that gives."


def asks(history: History, name: str) -> str:
    """What a request asks for."""
    params = format_arrival(history.requests[name])
    return f"asks for {params}" if params else "asks for nothing"


def same_values(one: list[float], other: list[float]) -> bool:
    """Whether all are equal, to the sign of zero, or both NaN."""
    pairs = zip(one, other, strict=True)
    return all((x == y and copysign(1, x) == copysign(1, y)) or x != x != y for x, y in pairs)
