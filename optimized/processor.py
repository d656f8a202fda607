"""What the processors have in common: users that follow the batch, and an edit of their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch

from logitsproc.optimized.table import BatchUpdate, Users


def as_they_are(users: dict[int, Any], device: torch.device) -> dict[int, Any]:
    """row -> state, for an edit that wants nothing packed."""
    return users


class Processor(ABC):
    """A processor that changes the rows of its users in place, and no others.

    A subclass gives three functions. state_of: what it keeps of a request, as in Users. packed: (row -> state, in
    ascending order of rows and not empty, device) -> what the edit wants, made once for each batch. edit: (logits, what
    it wants) -> None.
    """

    state_of: Callable[[Any, list[int] | None, list[int]], Any]
    packed: Callable[[dict[int, Any], torch.device], Any] = staticmethod(as_they_are)
    edit: Callable[[torch.Tensor, Any], None]

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(self.state_of)
        self.batch: Any = None

    @abstractmethod
    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: whether no edit can make another token the largest."""

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was.

        Outputs are not read here: they may still change before `apply`.
        """
        if batch_update is None:
            return
        self.users.follow(batch_update)
        users = self.users.by_row()
        self.batch = self.packed(users, self.device) if users else None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32, of any strides. Raises IndexError where a request names a token beyond the
        vocabulary as one to change.
        """
        if self.batch is not None:
            self.edit(logits, self.batch)
        return logits
