"""Frequency penalty: tokens are made less likely by a step for each time that the output has them."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized.penalties import Penalties, combined, penalise
from logitsproc.optimized.table import BatchUpdate, Users


class FrequencyPenaltyLogitsProcessor:
    """The frequency penalty of the rows whose request has one, on the tokens of their output only, in place."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.users = Users(frequency_penalty)
        self.penalties: dict[int, Penalties] = {}

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError when frequency_penalty is not in [-2, 2]."""
        if not -2.0 <= params.frequency_penalty <= 2.0:
            raise ValueError(f"frequency_penalty must be in [-2, 2], not {params.frequency_penalty}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be one of the output."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was.

        Outputs are not read here: they may still change before `apply`.
        """
        if batch_update is None:
            return
        self.users.follow(batch_update)
        self.penalties = self.users.by_row()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """FREQ-SUBTRACT, FREQ-OTHERS, PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE:
        the input, changed at the output's tokens of its users' rows only.

        logits: [rows, vocab] float32, of any strides.
        """
        if self.penalties:
            penalise(logits, self.penalties)
        return logits


def frequency_penalty(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """FREQ-NEUTRAL: the request's penalty, or None for 0."""
    return combined(1.0, params.frequency_penalty, 0.0, prompt, output)
