"""Temperature: every logit of a row is divided by it."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized.domains import SMALLEST, is_number, require
from logitsproc.optimized.packing import float_values, token_ids
from logitsproc.optimized.processor import Processor
from logitsproc.optimized.selection import stretches

GREEDY_BELOW = 1e-5
Run = tuple[slice, torch.Tensor]
"""Rows that stand next to each other, and the temperature of each, [rows, 1] float32."""


def temperature(params: Any, prompt: list[int] | None, output: list[int]) -> float | None:
    """TEMP-NEUTRAL, TEMP-GREEDY: the request's temperature, or None for 1 and for a greedy one."""
    neutral = params.temperature == 1.0 or params.temperature < GREEDY_BELOW
    return None if neutral else float(params.temperature)


def runs(temperatures: dict[int, float], device: torch.device) -> list[Run]:
    """The rows in runs as long as can be. temperatures: row -> temperature, in ascending order of rows."""
    column = torch.from_numpy(float_values(temperatures.values())[:, None]).to(device)
    return [(there, column[here]) for there, here in stretches(token_ids(temperatures))]


def divide(logits: torch.Tensor, batch: list[Run]) -> None:
    """TEMP-DIVIDE, TEMP-NONFINITE, NUM-SCALE: one float32 division for each logit of the rows.

    logits: [rows, vocab] float32, of any strides, changed in place.
    """
    for rows, temperatures in batch:
        logits[rows].div_(temperatures)


class TemperatureLogitsProcessor(Processor):
    """Temperature for the rows whose request has one that changes them, in place: a division for each run of rows."""

    state_of = staticmethod(temperature)
    packed = staticmethod(runs)
    edit = staticmethod(divide)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR, VAL-FLOAT: raises ValueError when temperature is neither 0 nor in [2**-126, 2]."""
        value = params.temperature
        within = is_number(value, 0, 0) or is_number(value, SMALLEST, 2)
        require("temperature", value, "0 or in [2**-126, 2]", within)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, a division by a positive number keeps the largest tokens largest."""
        return True
