"""Logit bias: a number is added to the logits of the tokens that the request names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from logitsproc.optimized.domains import are_biases, require
from logitsproc.optimized.packing import FloatValues, Index, TokenIds, float_values, pack, token_ids
from logitsproc.optimized.processor import Processor

Biases = tuple[Index, torch.Tensor]
"""The index of every named token, and what is added there, float32."""


class Bias(NamedTuple):
    """tokens: distinct ids. values: what is added to the logit of each."""

    tokens: TokenIds
    values: FloatValues


def bias(params: Any, prompt: list[int] | None, output: list[int]) -> Bias | None:
    """BIAS-NEUTRAL: the request's bias, or None when it names no token."""
    named = params.logit_bias
    return Bias(token_ids(named), float_values(named.values())) if named else None


def pack_biases(biases: dict[int, Bias], device: torch.device) -> Biases:
    """The named tokens of all rows at once. biases: row -> bias, not empty."""
    tokens, values = zip(*biases.values(), strict=True)
    return pack(biases, tokens, device), torch.from_numpy(np.concatenate(values)).to(device)


def add_biases(logits: torch.Tensor, biases: Biases) -> None:
    """BIAS-ADD, BIAS-OTHERS, BIAS-NONFINITE, NUM-EDIT: one float32 addition for each named token.

    logits: [rows, vocab] float32, of any strides, changed in place. Raises IndexError for a token beyond the
    vocabulary.
    """
    index, values = biases
    logits.index_put_(index, values, accumulate=True)


class LogitBiasLogitsProcessor(Processor):
    """Logit bias for the rows whose request has one, in place: one indexed addition for the whole batch."""

    state_of = staticmethod(bias)
    packed = staticmethod(pack_biases)
    edit = staticmethod(add_biases)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR, VAL-FLOAT: raises ValueError when logit_bias is neither None nor maps token ids to
        numbers that float32 holds."""
        value = params.logit_bias
        within = value is None or are_biases(value)
        require("logit_bias", value, "None or a mapping of token ids to numbers, each 0 or normal in float32", within)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, a bias can make another token the largest."""
        return False
