"""Logit bias: a number is added to the logits of the tokens that the request names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from logitsproc.optimized.packing import FloatValues, Index, TokenIds, float_values, pack, token_ids
from logitsproc.optimized.table import BatchUpdate, Users

LARGEST = float(np.finfo(np.float32).max)


class Bias(NamedTuple):
    """tokens: distinct ids. values: what is added to the logit of each."""

    tokens: TokenIds
    values: FloatValues


class LogitBiasLogitsProcessor:
    """Logit bias for the rows whose request has one, in place: one indexed addition for the whole batch."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(bias)
        self.packed: tuple[Index, torch.Tensor] | None = None

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError for a negative token id or a value not finite in float32."""
        for token, value in (params.logit_bias or {}).items():
            if token < 0:
                raise ValueError(f"logit_bias names token {token}, and token ids are not negative")
            if not abs(value) <= LARGEST:
                raise ValueError(f"logit_bias of token {token} must be finite in float32, not {value}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, a bias can make another token the largest."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is None:
            return
        self.users.follow(batch_update)
        users = self.users.by_row()
        self.packed = pack_biases(users, self.device) if users else None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """BIAS-ADD, BIAS-OTHERS, BIAS-NONFINITE, NUM-EDIT, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE:
        the input, with one float32 addition for each named token and everything else as it was.

        logits: [rows, vocab] float32, of any strides. Raises IndexError for a token beyond the vocabulary.
        """
        if self.packed is not None:
            index, values = self.packed
            logits.index_put_(index, values, accumulate=True)
        return logits


def bias(params: Any, prompt: list[int] | None, output: list[int]) -> Bias | None:
    """BIAS-NEUTRAL: the request's bias, or None when it names no token."""
    named = params.logit_bias
    return Bias(token_ids(named), float_values(named.values())) if named else None


def pack_biases(biases: dict[int, Bias], device: torch.device) -> tuple[Index, torch.Tensor]:
    """The index of every named token, and what is added there, float32. biases: row -> bias, not empty."""
    tokens, values = zip(*biases.values(), strict=True)
    return pack(biases, tokens, device), torch.from_numpy(np.concatenate(values)).to(device)
