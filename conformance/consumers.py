"""A base for what follows an engine's updates and changes logits without being a logits processor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch

from logitsproc.conformance.interface import as_update
from logitsproc.reference.batch import Batch, apply_update
from logitsproc.reference.request import Request


class Consumer(ABC):
    """A consumer of updates behind the interface of a processor: a subclass fills in `sync` and `transform`.

    It builds what it wraps in its own `__init__`, after this one, and sets HOST = "vllm" if that wants vLLM's types.
    The rows are kept by the list law itself, so what an engine hands over at each call is found in `outputs`.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.rows: Batch = []

    @abstractmethod
    def sync(self, batch_update: Any) -> None:
        """Hands an update on, of the host's type; not called in a step that has none."""

    @abstractmethod
    def transform(self, logits: torch.Tensor) -> torch.Tensor:
        """What the consumer makes of the logits, float32 [rows, vocab]."""

    @property
    def outputs(self) -> list[list[int]]:
        """The live output list of each row; an empty list for a hole."""
        return [[] if request is None else request.output for request in self.rows]

    def is_argmax_invariant(self) -> bool:
        """No, so that it runs in every step."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follows the update and hands it on."""
        if batch_update is not None:
            apply_update(self.rows, as_update(batch_update, lambda item: Request("", output=item[2])))
            self.sync(batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """What `transform` returns."""
        return self.transform(logits)
