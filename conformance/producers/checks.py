"""Holds one step of a producer to what producers owe. Each check's docstring opens with the clause it checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from logitsproc.conformance.notation import format_drawing
from logitsproc.reference.batch import UNIDIRECTIONAL, IllFormed, Update, add, apply_update
from logitsproc.reference.producer import condense
from logitsproc.reference.request import Request

NO_LIMIT = 1 << 30
Rows = Sequence[Request | None]


@dataclass(frozen=True)
class Decision:
    """What an engine decided at a step: rows that are vacated, requests that come, rows that swap."""

    vacated: tuple[int, ...] = ()
    arrivals: tuple[Request, ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Handed:
    """What came with an add: whose it is, and whether the output list, and params and prompt, are the request's own."""

    request: Request
    own_list: bool = True
    own_params: bool = True


@dataclass(frozen=True)
class Held:
    """A row of the producer's own: its request by id, whether it holds that request's list, or else whose."""

    request: Request | None
    own_list: bool = True
    owner: Request | None = None


@dataclass(frozen=True)
class Emission:
    """One step of a producer: its rows before, what was decided, what it emitted, its rows after.

    `handed` goes with the update's adds, `held` with the rows. `changed`: which earlier update is not as it was.
    `stale`: requests whose list is another object than processors have; `rewritten`: those whose list has other ids
    than landed.
    """

    before: tuple[Request | None, ...]
    decision: Decision
    update: Update | None
    rows: tuple[Request | None, ...]
    handed: tuple[Handed, ...] = ()
    held: tuple[Held, ...] = ()
    changed: int | None = None
    stale: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()


def troubles(emission: Emission) -> list[tuple[str, str]]:
    """The clauses that a step breaks, the most telling first, each with what is wrong; SHOULD only where no MUST is."""
    found = [(clause, trouble) for clause, check in CHECKS.items() if (trouble := check(emission))]
    return found or [(clause, trouble) for clause, check in STYLE.items() if (trouble := check(emission))]


def breaks(emission: Emission, clause: str) -> str | None:
    """What is wrong with a step, if it is this clause that it breaks first, or one that says SHOULD."""
    found = troubles(emission)
    counting = found if clause in STYLE else found[:1]
    return dict(counting).get(clause)


def told(emission: Emission) -> tuple[str, str] | None:
    """What a step breaks that shows without the decision, as in a recording: the clause, and what is wrong."""
    found = ((clause, check(emission)) for clause, check in TOLD.items())
    return next(((clause, trouble) for clause, trouble in found if trouble), None)


def unchanged(emission: Emission) -> str | None:
    """PROD-UNCHANGED: no update that was handed over earlier has been changed since."""
    if emission.changed is None:
        return None
    return f"update {emission.changed} (counted from 0) is not as it was when it was handed over"


def range_is_kept(emission: Emission) -> str | None:
    """PROD-RANGE: every row that is named is one that may be."""
    try:
        apply_update(list(emission.before), without_size(emission.update))
    except IllFormed as error:
        return str(error)
    return None


def without_size(update: Update | None) -> Update | None:
    """The update with a batch_size that cuts nothing off."""
    return None if update is None else replace(update, batch_size=NO_LIMIT)


def is_disjoint(emission: Emission) -> str | None:
    """PROD-DISJOINT: no row is both removed and added, nor added twice."""
    update = emission.update
    added = [row for row, _ in update.added] if update else []
    twice = [row for row in added if added.count(row) > 1 or (update and row in update.removed)]
    return f"row {twice[0]} is taken twice, or removed and taken" if twice else None


def is_contiguous(emission: Emission) -> str | None:
    """PROD-CONTIGUOUS: after the step no row is a hole."""
    return f"row {emission.rows.index(None)} holds no request" if None in emission.rows else None


def size_is_right(emission: Emission) -> str | None:
    """PROD-SIZE: batch_size is the number of rows after the step."""
    if emission.update is None or emission.update.batch_size == len(emission.rows):
        return None
    return f"batch_size is {emission.update.batch_size}, and there are {len(emission.rows)} rows"


def none_is_right(emission: Emission) -> str | None:
    """PROD-NONE: None exactly when nothing was removed, added or moved."""
    update = emission.update
    if update is None:
        return "the update is None, and the rows have changed" if emission.before != emission.rows else None
    empty = not (update.removed or update.added or update.moved)
    return "the update is not None, and says nothing" if empty else None


def rows_are_right(emission: Emission) -> str | None:
    """PROD-ROWS: the rows hold the requests of the step, each once, under its own id and with its own list."""
    for row, held in enumerate(emission.held):
        if not held.own_list and held.request is not None:
            whose = "another" if held.owner is None else f"{held.owner}'s"
            return f"row {row} has the id of {held.request} and {whose} output list"
    staying = [request for row, request in enumerate(emission.before) if row not in emission.decision.vacated]
    expected = [request.name for request in (*staying, *emission.decision.arrivals) if request is not None]
    there = [request.name for request in emission.rows if request is not None]
    return None if sorted(there) == sorted(expected) else f"the rows hold {listed(there)}, and not {listed(expected)}"


def stand_once(emission: Emission) -> str | None:
    """PROD-ROWS: no request stands in two rows."""
    there = [request for request in emission.rows if request is not None]
    twice = [request.name for request in there if there.count(request) > 1]
    return f"{twice[0]} stands in two rows" if twice else None


def params_are_own(emission: Emission) -> str | None:
    """PROD-PARAMS: the params and the prompt handed over with an add are the request's own, as it asked."""
    wrong = [handed.request.name for handed in emission.handed if not handed.own_params]
    return f"the params or the prompt added for {wrong[0]} are not what it asked for" if wrong else None


def is_live(emission: Emission) -> str | None:
    """PROD-LIVE: the list handed over with an add is the request's own, unchanged, and handed over anew if another."""
    wrong = [handed.request.name for handed in emission.handed if not handed.own_list]
    if wrong:
        return f"the output list added for {wrong[0]} is not its own"
    if emission.rewritten:
        return f"the ids in the output list of {emission.rewritten[0]} were changed"
    return f"{emission.stale[0]} has another output list now, and was not added again" if emission.stale else None


def elides_rightly(emission: Emission) -> str | None:
    """PROD-ELIDE: a vacated row is left out of removed only where an add or a one-way move fills it."""
    update = emission.update
    if update is None or replayed(emission.before, update) == emission.rows:
        return None
    filled = {row for row, _ in update.added} | {to for _, to, _ in one_way(update)}
    left_out = tuple(sorted(set(emission.decision.vacated) - set(update.removed) - filled))
    listed_too = replace(update, removed=(*update.removed, *left_out))
    if not left_out or replayed(emission.before, listed_too) != emission.rows:
        return None
    return f"row {left_out[0]} was vacated, nothing filled it, and removed does not list it"


def replays(emission: Emission) -> str | None:
    """PROD-REPLAY: the list law gives the producer's own rows."""
    given = replayed(emission.before, emission.update)
    if given is None or given == emission.rows:
        return None
    return f"the producer's rows are {drawn(emission.rows)}, the list law gives {drawn(given)}"


def replayed(before: Rows, update: Update | None) -> tuple[Request | None, ...] | None:
    """The rows by the list law, up to the last that holds a request; None where it gives no meaning."""
    batch = list(before)
    try:
        apply_update(batch, without_size(update))
    except IllFormed:
        return None
    while batch and batch[-1] is None:
        batch.pop()
    return tuple(batch)


def refills(emission: Emission) -> str | None:
    """PROD-REFILL: those who come take the vacated rows, lowest first, and then extend the batch."""
    given = [row for row, _ in emission.update.added] if emission.update else []
    before = len(emission.before)
    expected = [*emptied(emission), *range(before, before + len(given))][: len(given)]
    return None if given == expected else f"rows {given} were taken, and the lowest are {expected}"


def condenses(emission: Emission) -> str | None:
    """PROD-CONDENSE: each one-way move goes from the highest occupied row into the lowest hole."""
    update, empty = emission.update or Update(0), emptied(emission)
    batch = [None if row in empty else held for row, held in enumerate(emission.before)]
    for row, request in update.added:
        add(batch, row, request)
    expected, given = condense(batch), one_way(update)
    return None if list(expected) == list(given) else f"moves {pairs(given)}, and the shortest are {pairs(expected)}"


def emptied(emission: Emission) -> list[int]:
    """The vacated rows, lowest first, but for those whose request came back and was not taken out."""
    added = [request for _, request in emission.update.added] if emission.update else []
    kept = [request for request in emission.decision.arrivals if request not in added]
    return [row for row in emission.decision.vacated if emission.before[row] not in kept]


def one_way(update: Update) -> Sequence[tuple[int, int, str]]:
    """The one-way moves."""
    return [move for move in update.moved if move[2] == UNIDIRECTIONAL]


def pairs(moves: Sequence[tuple[int, int, str]]) -> str:
    """`3->2, 4->0`, or `none`."""
    return ", ".join(f"{source}->{to}" for source, to, _ in moves) or "none"


def drawn(rows: Rows) -> str:
    """`[A, x, C]`."""
    return format_drawing([None if request is None else request.name for request in rows])


def listed(names: Sequence[str]) -> str:
    """`A, B`, or `nobody`."""
    return ", ".join(sorted(names)) or "nobody"


Check = Callable[[Emission], str | None]
CHECKS: dict[str, Check] = {
    "PROD-UNCHANGED": unchanged,
    "PROD-ROWS": rows_are_right,
    "PROD-CONTIGUOUS": is_contiguous,
    "PROD-DISJOINT": is_disjoint,
    "PROD-NONE": none_is_right,
    "PROD-PARAMS": params_are_own,
    "PROD-LIVE": is_live,
    "PROD-ELIDE": elides_rightly,
    "PROD-RANGE": range_is_kept,
    "PROD-REPLAY": replays,
    "PROD-SIZE": size_is_right,
}
TOLD: dict[str, Check] = {
    "PROD-NONE": none_is_right,
    "PROD-DISJOINT": is_disjoint,
    "PROD-RANGE": range_is_kept,
    "PROD-CONTIGUOUS": is_contiguous,
    "PROD-ROWS": stand_once,
    "PROD-REPLAY": replays,
    "PROD-SIZE": size_is_right,
}
STYLE: dict[str, Check] = {"PROD-REFILL": refills, "PROD-CONDENSE": condenses}
