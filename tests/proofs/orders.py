"""The parts of an update, in the order in which they are followed, or in another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from logitsproc.reference import batch as reference
from logitsproc.reference.batch import SWAP, Update

PARTS = ("removed", "added", "moved")
ADMITTED = PARTS, ("added", "removed", "moved")
"""The orders in which the parts of an engine's update may be followed."""


def apply_in_order(code: Any, batch: Any, update: Update, order: Iterable[str]) -> None:
    """Applies the parts of an update in this order; code: what has remove, add, move, swap and resize."""
    for part in order:
        for operation in getattr(update, part):
            if part == "removed":
                code.remove(batch, operation)
            elif part == "added":
                code.add(batch, *operation)
            else:
                (code.swap if operation[2] == SWAP else code.move)(batch, *operation[:2])
    code.resize(batch, update.batch_size)


def in_order(*order: str) -> Callable[[Any, Update], None]:
    """What applies the parts of an update to a list in this order."""

    def apply(batch: Any, update: Update) -> None:
        apply_in_order(reference, batch, update, order)

    apply.__doc__ = f"The order of the parts is {', '.join(order)}."
    return apply
