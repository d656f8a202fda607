"""The engine's algorithm, step by step: how a batch changes between two steps, and the update that tells it.

>>> a, b, c, d, e, f = (Request(name) for name in "ABCDEF")
>>> batch = [a, b, c, d]
>>> engine_step(batch, vacated=[0, 2], arrivals=[e], swaps=[(0, 1)], dialect=EXPLICIT)
Update(batch_size=3, removed=(2,), added=((0, E),), moved=((3, 2, 'UNIDIRECTIONAL'), (0, 1, 'SWAP')))
>>> batch
[B, E, D]

>>> batch = [a, b, c, d]
>>> engine_step(batch, vacated=[2], arrivals=[e, f], swaps=[(0, 1)], dialect=EXPLICIT)
Update(batch_size=5, removed=(), added=((2, E), (4, F)), moved=((0, 1, 'SWAP'),))
>>> batch
[B, A, E, D, F]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch, Row, Update, swap
from logitsproc.reference.request import Request

EXPLICIT = "explicit"
ELIDED = "elided"


def engine_step(
    batch: Batch,
    vacated: Iterable[Row] = (),
    arrivals: Sequence[Request] = (),
    swaps: Sequence[tuple[Row, Row]] = (),
    dialect: str = ELIDED,
) -> Update | None:
    """PROD-SIZE, PROD-NONE, PROD-REPLAY, PROD-ROWS, PROD-EXCEPTION: changes the batch; gives the update that tells it.

    vacated: rows whose request finished, was preempted, or is not scheduled. None when nothing changed.

    >>> batch = [Request("A")]
    >>> engine_step(batch) is None
    True
    """
    holes = sorted(vacated)
    for row in holes:
        batch[row] = None
    added = refill(batch, holes, arrivals)
    unreplaced = holes[len(added) :]
    added += extend(batch, arrivals[len(added) :])
    moved = condense(batch)
    for pair in swaps:
        swap(batch, *pair)
    moved += [(row, other, SWAP) for row, other in swaps]
    removed = listed(unreplaced, len(batch), dialect)
    if not (removed or added or moved):
        return None
    return Update(len(batch), tuple(removed), tuple(added), tuple(moved))


def refill(batch: Batch, holes: Sequence[Row], arrivals: Sequence[Request]) -> list[tuple[Row, Request]]:
    """PROD-REFILL, PROD-LIVE, PROD-PARAMS: arrivals take the vacated rows, lowest first, each with what is its own.

    >>> batch = [None, Request("B"), None]
    >>> refill(batch, [0, 2], [Request("C")]), batch
    ([(0, C)], [C, B, None])
    """
    added = list(zip(holes, arrivals, strict=False))
    for row, request in added:
        batch[row] = request
    return added


def extend(batch: Batch, arrivals: Sequence[Request]) -> list[tuple[Row, Request]]:
    """PROD-REFILL: the arrivals left over extend the batch, one row each.

    >>> batch = [Request("A")]
    >>> extend(batch, [Request("B"), Request("C")]), batch
    ([(1, B), (2, C)], [A, B, C])
    """
    added = [(len(batch) + position, request) for position, request in enumerate(arrivals)]
    batch.extend(arrivals)
    return added


def condense(batch: Batch) -> list[tuple[Row, Row, str]]:
    """PROD-CONDENSE, PROD-CONTIGUOUS: the highest occupied row moves into the lowest hole until none is left.

    >>> batch = [None, Request("B"), None, Request("D"), Request("E")]
    >>> condense(batch), batch
    ([(4, 0, 'UNIDIRECTIONAL'), (3, 2, 'UNIDIRECTIONAL')], [E, B, D])
    """
    moved: list[tuple[Row, Row, str]] = []
    while True:
        trim(batch)
        if None not in batch:
            return moved
        moved.append(condense_once(batch))


def condense_once(batch: Batch) -> tuple[Row, Row, str]:
    """PROD-CONDENSE: one move, from the last row, which is occupied, into the lowest hole.

    >>> batch = [None, Request("B")]
    >>> condense_once(batch), batch
    ((1, 0, 'UNIDIRECTIONAL'), [B, None])
    """
    source, hole = len(batch) - 1, batch.index(None)
    batch[hole] = batch[source]
    batch[source] = None
    return source, hole, UNIDIRECTIONAL


def trim(batch: Batch) -> None:
    """PROD-CONTIGUOUS: holes at the end are not rows.

    >>> batch = [Request("A"), None, None]
    >>> trim(batch)
    >>> batch
    [A]
    """
    while trim_once(batch):
        pass


def trim_once(batch: Batch) -> bool:
    """PROD-CONTIGUOUS: takes one hole off the end, and says whether there was one.

    >>> batch = [Request("A"), None]
    >>> trim_once(batch), trim_once(batch), batch
    (True, False, [A])
    """
    if not batch or batch[-1] is not None:
        return False
    batch.pop()
    return True


def listed(unreplaced: Sequence[Row], batch_size: int, dialect: str) -> list[Row]:
    """PROD-DISJOINT, PROD-ELIDE: explicit lists every unreplaced row; elided those no move filled, highest first.

    >>> listed([1, 4], 3, EXPLICIT), listed([1, 3, 4], 3, ELIDED)
    ([1, 4], [4, 3])
    """
    if dialect == EXPLICIT:
        return list(unreplaced)
    return [row for row in reversed(unreplaced) if row >= batch_size]
