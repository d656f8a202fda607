"""Frequency penalty: tokens are made less likely by a step for each time that the output has them."""

from __future__ import annotations

from typing import Any

from logitsproc.optimized.domains import is_number, require
from logitsproc.optimized.penalties import Penalties, combined, penalise
from logitsproc.optimized.processor import Processor


def frequency_penalty(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """FREQ-NEUTRAL: the request's penalty, or None for 0."""
    return combined(1.0, params.frequency_penalty, 0.0, prompt, output)


class FrequencyPenaltyLogitsProcessor(Processor):
    """The frequency penalty of the rows whose request has one, on the tokens of their output only, in place."""

    state_of = staticmethod(frequency_penalty)
    edit = staticmethod(penalise)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when frequency_penalty is no number in [-2, 2]."""
        value = params.frequency_penalty
        require("frequency_penalty", value, "in [-2, 2]", is_number(value, -2, 2))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be one of the output."""
        return False
