"""Presence penalty: tokens that the output has are made less likely by one step, however often it has them."""

from __future__ import annotations

from typing import Any

from logitsproc.optimized.domains import is_number, require
from logitsproc.optimized.penalties import Penalties, combined, penalise
from logitsproc.optimized.processor import Processor


def presence_penalty(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """PRES-NEUTRAL: the request's penalty, or None for 0."""
    return combined(1.0, 0.0, params.presence_penalty, prompt, output)


class PresencePenaltyLogitsProcessor(Processor):
    """The presence penalty of the rows whose request has one, on the tokens of their output only, in place."""

    state_of = staticmethod(presence_penalty)
    edit = staticmethod(penalise)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when presence_penalty is no number in [-2, 2]."""
        value = params.presence_penalty
        require("presence_penalty", value, "in [-2, 2]", is_number(value, -2, 2))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be one of the output."""
        return False
