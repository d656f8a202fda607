"""Temperature: every logit of a row is divided by it."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized.packing import float_values, token_ids
from logitsproc.optimized.selection import stretches
from logitsproc.optimized.table import BatchUpdate, Users

GREEDY_BELOW = 1e-5
SMALLEST = 2.0**-126
"""The smallest normal float32."""
Run = tuple[slice, torch.Tensor]
"""Rows that stand next to each other, and the temperature of each, [rows, 1] float32."""


class TemperatureLogitsProcessor:
    """Temperature for the rows whose request has one that changes them, in place: a division for each run of rows."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(temperature)
        self.runs: list[Run] = []

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError when temperature is neither 0 nor in [2**-126, 2]."""
        if params.temperature and not SMALLEST <= params.temperature <= 2.0:
            raise ValueError(f"temperature must be 0 or in [2**-126, 2], not {params.temperature}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, a division by a positive number keeps the largest tokens largest."""
        return True

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is None:
            return
        self.users.follow(batch_update)
        users = self.users.by_row()
        self.runs = runs(users, self.device) if users else []

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """TEMP-DIVIDE, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32, of any strides.
        """
        divide(logits, self.runs)
        return logits


def temperature(params: Any, prompt: list[int] | None, output: list[int]) -> float | None:
    """TEMP-NEUTRAL, TEMP-GREEDY: the request's temperature, or None for 1 and for a greedy one."""
    neutral = params.temperature == 1.0 or params.temperature < GREEDY_BELOW
    return None if neutral else float(params.temperature)


def runs(temperatures: dict[int, float], device: torch.device) -> list[Run]:
    """The rows in runs as long as can be. temperatures: row -> temperature, in ascending order of rows, not empty."""
    column = torch.from_numpy(float_values(temperatures.values())[:, None]).to(device)
    return [(there, column[here]) for there, here in stretches(token_ids(temperatures))]


def divide(logits: torch.Tensor, batch: list[Run]) -> None:
    """TEMP-DIVIDE, TEMP-NONFINITE, NUM-SCALE: one float32 division for each logit of the rows.

    logits: [rows, vocab] float32, of any strides, changed in place.
    """
    for rows, temperatures in batch:
        logits[rows].div_(temperatures)
