"""The batch is a list; an update is what happens to the list.

>>> a, b, c, d, e = (Request(name) for name in "ABCDE")
>>> batch = [a, b, c, d]
>>> moved = ((3, 2, UNIDIRECTIONAL), (0, 1, SWAP))
>>> apply_update(batch, Update(batch_size=3, removed=(2,), added=((0, e),), moved=moved))
>>> batch
[B, E, D]
"""

from __future__ import annotations

from dataclasses import dataclass

from logitsproc.reference.request import Request

UNIDIRECTIONAL = "UNIDIRECTIONAL"
SWAP = "SWAP"

Row = int
Batch = list[Request | None]
"""Row i of the batch is item i; None is a hole."""


class IllFormed(ValueError):
    """An update that no producer may emit; the message says which operation, in one line."""


@dataclass(frozen=True, slots=True)
class Update:
    """PROD-UNCHANGED: one batch update, what was removed, added and moved, and the number of rows after it.

    removed: rows. added: (row, request). moved: (source, destination, UNIDIRECTIONAL or SWAP).
    """

    batch_size: int
    removed: tuple[Row, ...] = ()
    added: tuple[tuple[Row, Request], ...] = ()
    moved: tuple[tuple[Row, Row, str], ...] = ()


def remove(batch: Batch, row: Row) -> None:
    """UPD-REMOVE: the row becomes a hole, and no other row changes.

    >>> batch = [Request("A"), Request("B"), Request("C")]
    >>> remove(batch, 1)
    >>> batch
    [A, None, C]
    """
    require(0 <= row < len(batch) and batch[row] is not None, "remove", f"{row}, which holds no request")
    batch[row] = None


def add(batch: Batch, row: Row, request: Request) -> None:
    """UPD-ADD, UPD-REPLACE, UPD-EXTEND: the request stands at the row, whatever stood there.

    >>> batch = [Request("A"), None]
    >>> add(batch, 1, Request("B"))
    >>> add(batch, 0, Request("C"))
    >>> add(batch, 2, Request("D"))
    >>> batch
    [C, B, D]
    """
    require(0 <= row <= len(batch), "add", f"at {row}, beyond one past the end")
    if row == len(batch):
        batch.append(request)
    else:
        batch[row] = request


def move(batch: Batch, source: Row, destination: Row) -> None:
    """UPD-MOVE, UPD-DROP: the source's request stands at the destination, the source is a hole.

    >>> batch = [Request("A"), Request("B"), Request("C"), Request("D")]
    >>> move(batch, 3, 1)
    >>> batch
    [A, D, C, None]
    """
    require(source != destination, "move", f"of row {source} onto itself")
    require(
        0 <= source < len(batch) and batch[source] is not None,
        "move",
        f"from {source}, which holds no request",
    )
    require(0 <= destination < len(batch), "move", f"to {destination}, outside the batch")
    batch[destination] = batch[source]
    batch[source] = None


def swap(batch: Batch, row: Row, other: Row) -> None:
    """UPD-SWAP: the two rows exchange what they hold; a row swapped with itself stays.

    >>> batch = [Request("A"), Request("B"), Request("C"), Request("D")]
    >>> swap(batch, 3, 1)
    >>> batch
    [A, D, C, B]
    """
    require(0 <= row < len(batch) and 0 <= other < len(batch), "swap", f"of {row} and {other}, outside the batch")
    batch[row], batch[other] = batch[other], batch[row]


def resize(batch: Batch, batch_size: int) -> None:
    """UPD-SIZE: the rows from batch_size on are gone, and none of them held a request.

    >>> batch = [Request("A"), None]
    >>> resize(batch, 1)
    >>> batch
    [A]
    """
    require(not any(batch[batch_size:]), "batch_size", f"{batch_size} cuts off a live request")
    del batch[batch_size:]


def apply_update(batch: Batch, update: Update | None) -> None:
    """UPD-ORDER, UPD-SEQUENCE, UPD-NONE, UPD-OVERLAP: removed, added, moved, each in the order listed.

    Raises IllFormed, with the batch half changed, when an operation names a row it cannot.

    >>> batch = [Request("A")]
    >>> apply_update(batch, None)
    >>> apply_update(batch, Update(batch_size=1, removed=(0,), added=((0, Request("B")),)))
    >>> batch
    [B]
    >>> apply_update(batch, Update(batch_size=2, added=((3, Request("C")),)))
    Traceback (most recent call last):
    logitsproc.reference.batch.IllFormed: add at 3, beyond one past the end
    """
    if update is None:
        return
    for row in update.removed:
        remove(batch, row)
    for row, request in update.added:
        add(batch, row, request)
    for source, destination, direction in update.moved:
        (swap if direction == SWAP else move)(batch, source, destination)
    resize(batch, update.batch_size)


def require(condition: bool, operation: str, trouble: str) -> None:
    """PROD-RANGE: an operation that names a row it cannot is ill-formed.

    >>> require(False, "remove", "2, which holds no request")
    Traceback (most recent call last):
    logitsproc.reference.batch.IllFormed: remove 2, which holds no request
    """
    if not condition:
        raise IllFormed(f"{operation} {trouble}")
