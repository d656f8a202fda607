"""A wrong processor, which the live check is to catch."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized import Users
from logitsproc.optimized.vllm import MinPLogitsProcessor


class ForgetfulUsers(Users[float]):
    """Users of which one that is replaced by no user stays."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        """As the base class, but what the slot held is not cleared."""
        slot = self.table.add(row)
        state = self.state_of(params, prompt, output)
        if state is not None:
            self.states[slot] = state


class ForgetsToClear(MinPLogitsProcessor):
    """PROC-STATE-DEPARTED: min-p that stays with the row when its request is replaced."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.processor.users = ForgetfulUsers(self.processor.state_of)
