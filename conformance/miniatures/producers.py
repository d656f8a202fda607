"""Producers that emit wrong updates: the reference producer, spoiled in one place.

Each takes the batch before the step and the engine's decision, and gives what it emitted.
"""

from __future__ import annotations

from dataclasses import replace

from logitsproc.conformance.wellformed import Decision, Emitted
from logitsproc.reference.batch import UNIDIRECTIONAL, Batch, Row, Update, add, move
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step


def faithful(before: Batch, decision: Decision, dialect: str = ELIDED) -> Emitted:
    """A right producer, in the dialect that vLLM's code speaks."""
    batch = list(before)
    update = engine_step(batch, decision.vacated, decision.arrivals, decision.swaps, dialect)
    lists = tuple(request.output for _, request in update.added) if update else ()
    return Emitted(update, tuple(batch), lists)


def skips_a_row(before: Batch, decision: Decision) -> Emitted:
    """PROD-RANGE: adds every arrival one row too far past the end."""
    emitted = faithful(before, decision)
    if not emitted.update or not emitted.update.added:
        return emitted
    added = tuple((len(before) + 1 + row, request) for row, request in emitted.update.added)
    return replace(emitted, update=replace(emitted.update, added=added))


def lists_the_replaced(before: Batch, decision: Decision) -> Emitted:
    """PROD-DISJOINT: lists every vacated row in removed, also those that were filled again."""
    emitted = faithful(before, decision)
    if not emitted.update:
        return emitted
    return replace(emitted, update=replace(emitted.update, removed=tuple(decision.vacated)))


def leaves_holes(before: Batch, decision: Decision) -> Emitted:
    """PROD-CONTIGUOUS: does not condense."""
    batch = list(before)
    for row in decision.vacated:
        batch[row] = None
    while batch and batch[-1] is None:
        batch.pop()
    return Emitted(Update(len(batch), tuple(decision.vacated)) if decision.vacated else None, tuple(batch))


def says_the_old_size(before: Batch, decision: Decision) -> Emitted:
    """PROD-SIZE: batch_size is the number of rows before the step."""
    emitted = faithful(before, decision)
    return replace(emitted, update=emitted.update and replace(emitted.update, batch_size=len(before)))


def keeps_reorders_quiet(before: Batch, decision: Decision) -> Emitted:
    """PROD-NONE: emits None for a step in which rows were only swapped."""
    emitted = faithful(before, decision)
    quiet = not decision.vacated and not decision.arrivals
    return replace(emitted, update=None) if quiet else emitted


def forgets_a_move(before: Batch, decision: Decision) -> Emitted:
    """PROD-REPLAY: leaves the last move out of the update."""
    emitted = faithful(before, decision, EXPLICIT)
    if not emitted.update or not emitted.update.moved:
        return emitted
    return replace(emitted, update=replace(emitted.update, moved=emitted.update.moved[:-1]))


def copies_the_outputs(before: Batch, decision: Decision) -> Emitted:
    """PROD-LIVE: hands over a copy of the output list."""
    emitted = faithful(before, decision)
    return replace(emitted, lists=tuple(list(output) for output in emitted.lists))


def refills_from_the_top(before: Batch, decision: Decision) -> Emitted:
    """PROD-REFILL: puts arrivals into the highest vacated row first."""
    batch = list(before)
    rows = sorted(decision.vacated, reverse=True) + list(range(len(batch), len(batch) + len(decision.arrivals)))
    added = tuple(zip(rows, decision.arrivals, strict=False))
    for row, request in added:
        add(batch, row, request)
    removed = tuple(row for row in decision.vacated if row not in dict(added))
    moved = close(batch, list(removed), highest_first=True)
    return finished(batch, removed, added, moved)


def condenses_by_shifting(before: Batch, decision: Decision) -> Emitted:
    """PROD-CONDENSE: closes a hole by moving every row above it down by one, where nobody arrives."""
    if decision.arrivals or decision.swaps:
        return faithful(before, decision)
    batch = list(before)
    moved = close(batch, sorted(decision.vacated), highest_first=False)
    return finished(batch, tuple(decision.vacated), (), moved)


def leaves_one_out(before: Batch, decision: Decision) -> Emitted:
    """PROD-ELIDE: leaves a row that nothing filled out of two in removed."""
    emitted = faithful(before, decision)
    if not emitted.update or len(emitted.update.removed) < 2:
        return emitted
    return replace(emitted, update=replace(emitted.update, removed=emitted.update.removed[1:]))


def close(batch: Batch, holes: list[Row], highest_first: bool) -> tuple[tuple[Row, Row, str], ...]:
    """Empties the rows and closes them, by the last row each or by shifting; gives the moves."""
    moved: list[tuple[Row, Row, str]] = []
    for row in holes:
        batch[row] = None
    while None in batch:
        hole = batch.index(None)
        later = [row for row in range(hole + 1, len(batch)) if batch[row] is not None]
        if not later:
            del batch[hole:]
            break
        source = later[-1] if highest_first else later[0]
        move(batch, source, hole)
        moved.append((source, hole, UNIDIRECTIONAL))
    return tuple(moved)


def finished(batch: Batch, removed: tuple[Row, ...], added: tuple, moved: tuple) -> Emitted:  # type: ignore[type-arg]
    """What was emitted, with the lists of the requests."""
    update = Update(len(batch), removed, added, moved) if removed or added or moved else None
    return Emitted(update, tuple(batch), tuple(request.output for _, request in added))
