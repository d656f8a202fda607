"""Holds a producer's update to what producers owe. Each check's docstring opens with the clauses it checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logitsproc.reference.batch import UNIDIRECTIONAL, Batch, IllFormed, Update, apply_update
from logitsproc.reference.producer import engine_step
from logitsproc.reference.request import Request


@dataclass(frozen=True)
class Decision:
    """What an engine decided at a step: rows that are vacated, requests that arrive, rows that swap."""

    vacated: tuple[int, ...] = ()
    arrivals: tuple[Request, ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Emitted:
    """What a producer emitted: the update, its own rows after it, and the output list handed over with each add."""

    update: Update | None
    rows: tuple[Request | None, ...]
    lists: tuple[list[int], ...] = ()


def broken_clauses(before: Batch, decision: Decision, emitted: Emitted) -> list[str]:
    """The producer's clauses that one step breaks, the most telling first."""
    checks = (range_is_kept, is_disjoint, is_contiguous, size_is_right, none_is_right, elides_rightly, replays, is_live)
    broken = [clause for check in checks if (clause := check(before, decision, emitted))]
    return broken + ([] if broken else style(before, decision, emitted))


def range_is_kept(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-RANGE: every row that is named is one that may be."""
    try:
        apply_update(list(before), without_size(emitted.update))
    except IllFormed:
        return None if is_disjoint(before, decision, emitted) else "PROD-RANGE"
    return None


def without_size(update: Update | None) -> Update | None:
    """The update with a batch_size that cuts nothing off."""
    if update is None:
        return None
    return Update(1 << 30, update.removed, update.added, update.moved)


def is_disjoint(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-DISJOINT: no row is both removed and added, and no request comes and goes in one update."""
    update = emitted.update
    if update is None:
        return None
    removed, added = set(update.removed), [row for row, _ in update.added]
    gone = {before[row] for row in removed if row < len(before)}
    twice = removed & set(added) or len(set(added)) < len(added) or gone & {request for _, request in update.added}
    return "PROD-DISJOINT" if twice else None


def is_contiguous(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-CONTIGUOUS: after the step no row is a hole."""
    return "PROD-CONTIGUOUS" if None in emitted.rows else None


def size_is_right(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-SIZE: batch_size is the number of rows after the step."""
    wrong = emitted.update is not None and emitted.update.batch_size != len(emitted.rows)
    return "PROD-SIZE" if wrong else None


def none_is_right(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-NONE: None exactly when nothing was removed, added or moved."""
    update = emitted.update
    changed = tuple(before) != emitted.rows
    empty = update is not None and not (update.removed or update.added or update.moved)
    return "PROD-NONE" if empty or (update is None and changed) else None


def elides_rightly(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-ELIDE: a vacated row is left out of removed only where an add or a one-way move fills it."""
    if emitted.update is None:
        return None
    filled = {row for row, _ in emitted.update.added} | {to for _, to, _ in one_way(emitted.update)}
    left_out = set(decision.vacated) - set(emitted.update.removed) - filled
    return "PROD-ELIDE" if left_out else None


def replays(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-REPLAY: the list law gives the producer's own rows."""
    if emitted.update is None:
        return None
    batch = list(before)
    try:
        apply_update(batch, without_size(emitted.update))
    except IllFormed:
        return None
    while batch and batch[-1] is None:
        batch.pop()
    return "PROD-REPLAY" if tuple(batch) != emitted.rows else None


def is_live(before: Batch, decision: Decision, emitted: Emitted) -> str | None:
    """PROD-LIVE: the list handed over with an add is the request's own."""
    added = emitted.update.added if emitted.update is not None else ()
    lists = zip(emitted.lists, added, strict=False)
    return "PROD-LIVE" if any(given is not request.output for given, (_, request) in lists) else None


def style(before: Batch, decision: Decision, emitted: Emitted) -> list[str]:
    """PROD-REFILL, PROD-CONDENSE: arrivals and one-way moves are those of the engine's own algorithm."""
    update = emitted.update
    if update is None:
        return []
    engine = engine_step(list(before), decision.vacated, decision.arrivals, decision.swaps)
    expected = engine if engine is not None else Update(len(before))
    broken = []
    if update.added != expected.added:
        broken.append("PROD-REFILL")
    if one_way(update) != one_way(expected):
        broken.append("PROD-CONDENSE")
    return broken


def one_way(update: Update) -> Sequence[tuple[int, int, str]]:
    """The one-way moves."""
    return [move for move in update.moved if move[2] == UNIDIRECTIONAL]
