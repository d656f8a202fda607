"""Repetition penalty: tokens that the prompt or the output has are made less likely by a factor."""

from __future__ import annotations

from typing import Any

from logitsproc.optimized.domains import SMALLEST, is_number, require
from logitsproc.optimized.penalties import Penalties, combined, penalise
from logitsproc.optimized.processor import Processor


def repetition_penalty(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """REP-NEUTRAL: the request's penalty, or None for 1."""
    return combined(params.repetition_penalty, 0.0, 0.0, prompt, output)


class RepetitionPenaltyLogitsProcessor(Processor):
    """The repetition penalty of the rows whose request has one, on their seen tokens only, in place."""

    state_of = staticmethod(repetition_penalty)
    edit = staticmethod(penalise)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR, VAL-FLOAT: raises ValueError when repetition_penalty is no number in
        [2**-126, 2**126].
        """
        value = params.repetition_penalty
        require("repetition_penalty", value, "in [2**-126, 2**126]", is_number(value, SMALLEST, 1 / SMALLEST))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be a seen one."""
        return False
