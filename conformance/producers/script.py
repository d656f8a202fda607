"""What a failing producer was asked and what it emitted: as a history, in words, and as a script that runs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from logitsproc.conformance.bindings import Subject
from logitsproc.conformance.history import Added, History, Step
from logitsproc.conformance.machine import WIDE_ROWS
from logitsproc.conformance.producers.checks import replayed
from logitsproc.conformance.producers.interface import Coming, Schedule
from logitsproc.conformance.producers.player import Played, ProducerPlayer
from logitsproc.conformance.script import PARAMS, arrival_lines, landing_lines, settling_lines


def as_history(header: History, played: Sequence[Played]) -> History:
    """The updates as they were emitted, each with the producer's own rows drawn."""
    return replace(header, steps=tuple(emitted_step(item) for item in played))


def emitted_step(item: Played) -> Step:
    """One step as it was emitted; where nothing was, the tokens that landed."""
    emission = item.emission
    if emission is None or emission.update is None:
        rows = emission.rows if emission else None
        return Step(item.step.growth, drawing=None if rows is None else names(rows))
    update = emission.update
    fresh = {add.request: add.fresh for add in item.step.added}
    added = tuple(Added(row, request.name, fresh.get(request.name, False)) for row, request in update.added)
    after = replayed(emission.before, update)
    told = after is not None and len(after) == update.batch_size and (update.removed or added or update.moved)
    size = None if told else update.batch_size
    return Step(item.step.growth, update.removed, added, update.moved, size, drawing=names(emission.rows))


def names(rows: Iterable[object]) -> tuple[str | None, ...]:
    """The names in the rows."""
    return tuple(None if request is None else str(request) for request in rows)


def asked(item: Played) -> str:
    """What the scheduler asked for: `A leaves, B comes, rows 0 and 1 swap`."""
    leaving = [str(item.before[row]) for row in item.decision.vacated]
    coming = [named(add, come.req_id) for add, come in zip(item.step.added, item.schedule.coming, strict=True)]
    parts = []
    if leaving:
        parts.append(f"{and_(leaving)} {'leaves' if len(leaving) == 1 else 'leave'}")
    if coming:
        parts.append(f"{and_(coming)} {'comes' if len(coming) == 1 else 'come'}")
    parts += [f"rows {row} and {other} swap" for row, other in item.schedule.swaps]
    parts = parts or ["nothing is asked"]
    return ", ".join(parts if item.emission else [*parts, "and nothing is emitted"])


def named(add: Added, req_id: str) -> str:
    """`B`, or `B (id A, another list)`."""
    remarks = [] if req_id == add.request else [f"id {req_id}"]
    remarks += ["another list"] if add.fresh else []
    return f"{add.request} ({', '.join(remarks)})" if remarks else add.request


def and_(items: Sequence[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]


def as_script(subject: Subject, player: ProducerPlayer) -> list[str]:
    """The lines; they print every update when it comes, and the rows after it, and all updates once more at the end."""
    module, _, qualified = subject.target.partition(":")
    lines = [
        PARAMS[subject.binding.name],
        "from logitsproc.conformance.producers import Coming, Schedule",
        f"from {module} import {qualified.partition('.')[0]}",
        "",
        f"producer = {qualified}({WIDE_ROWS}, {player.header.vocab})",
        "updates = []",
    ]
    lines += [line for name, arrival in player.arrivals.items() for line in arrival_lines(name, arrival, subject)]
    lines += show_lines(player.arrivals)
    for number, item in enumerate(player.record):
        lines += ["", f"# step {number}: {asked(item)}", *landing_lines(item.step)]
        lines += [f"updates.append(producer.step({schedule_text(item, player)}))", "show(updates[-1])"]
        lines += settling_lines(item.step)
    return [*lines, "", "print(updates)"]


def show_lines(names: Iterable[str]) -> list[str]:
    """A function that prints an update, and whose lists it and the rows hold, by identity."""
    lives = ", ".join(f"{name!r}: {name}_out" for name in names)
    return [
        "",
        "",
        "def whose(output):",
        f"    return [name for name, live in {{{lives}}}.items() if live is output]",
        "",
        "",
        "def show(update):",
        '    print(update, "adds the lists of", [whose(add[3]) for add in update.added] if update else [])',
        '    print("rows", [(req_id, whose(output)) for req_id, output in producer.rows()])',
        "",
    ]


def schedule_text(item: Played, player: ProducerPlayer) -> str:
    """The schedule as an expression."""
    schedule: Schedule = item.schedule
    coming = [
        coming_text(add.request, come, player) for add, come in zip(item.step.added, schedule.coming, strict=True)
    ]
    parts = {"leaving": tuple_text(map(repr, schedule.leaving)), "coming": tuple_text(coming)}
    parts["swaps"] = tuple_text(map(repr, schedule.swaps))
    return f"Schedule({', '.join(f'{field}={text}' for field, text in parts.items() if text != '()')})"


def coming_text(name: str, coming: Coming, player: ProducerPlayer) -> str:
    """A request that comes, as an expression."""
    return f"Coming({coming.req_id!r}, {name}, {player.requests[name].prompt}, {name}_out)"


def tuple_text(items: Iterable[str]) -> str:
    """A tuple of expressions."""
    listed = list(items)
    return f"({', '.join(listed)},)" if listed else "()"
