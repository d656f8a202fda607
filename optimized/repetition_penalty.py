"""Repetition penalty: tokens that the prompt or the output has are made less likely by a factor."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized.penalties import Penalties, combined, penalise
from logitsproc.optimized.table import BatchUpdate, Users

SMALLEST, LARGEST = 2.0**-126, 2.0**126
"""Between these a float32 and its reciprocal are normal."""


class RepetitionPenaltyLogitsProcessor:
    """The repetition penalty of the rows whose request has one, on their seen tokens only, in place."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.users = Users(repetition_penalty)
        self.penalties: dict[int, Penalties] = {}

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError when repetition_penalty is not in [2**-126, 2**126]."""
        if not SMALLEST <= params.repetition_penalty <= LARGEST:
            raise ValueError(f"repetition_penalty must be in [2**-126, 2**126], not {params.repetition_penalty}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be a seen one."""
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
        """REP-SCALE, REP-OTHERS, PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE:
        the input, changed at the seen tokens of its users' rows only.

        logits: [rows, vocab] float32, of any strides.
        """
        if self.penalties:
            penalise(logits, self.penalties)
        return logits


def repetition_penalty(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """REP-NEUTRAL: the request's penalty, or None for 1."""
    return combined(params.repetition_penalty, 0.0, 0.0, prompt, output)
