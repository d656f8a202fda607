"""Allowed token ids: every token that the request does not list is masked."""

from __future__ import annotations

import math
from typing import Any

import torch

from logitsproc.optimized.packing import token_ids
from logitsproc.optimized.table import BatchUpdate, Users

MASKED = -math.inf


class AllowedTokenIdsLogitsProcessor:
    """Masks, in place, all but the listed tokens of the rows whose request has a list."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.users = Users(allowed_tokens)
        self.allowed: dict[int, torch.Tensor] = {}

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError for an empty list or a negative token id."""
        if params.allowed_token_ids is None:
            return
        if not params.allowed_token_ids:
            raise ValueError("allowed_token_ids must name a token, or be None")
        if min(params.allowed_token_ids) < 0:
            raise ValueError(f"allowed token {min(params.allowed_token_ids)}: token ids are not negative")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be one that is not listed."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is None:
            return
        self.users.follow(batch_update)
        self.allowed = self.users.by_row()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """ALLOW-MASK, ALLOW-KEPT, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32, of any strides. Raises IndexError for a token beyond the vocabulary.
        """
        keep_allowed(logits, self.allowed)
        return logits


def allowed_tokens(params: Any, prompt: list[int] | None, output: list[int]) -> torch.Tensor | None:
    """ALLOW-NEUTRAL: the listed tokens, distinct, [tokens] int64, or None without a list."""
    allowed = params.allowed_token_ids
    return None if allowed is None else torch.from_numpy(token_ids(dict.fromkeys(allowed)))


def keep_allowed(logits: torch.Tensor, allowed: dict[int, torch.Tensor]) -> None:
    """ALLOW-MASK, ALLOW-KEPT, ALLOW-FILL: each row is filled with -inf between a gather of its listed tokens and a
    scatter, which leaves them their bits.

    logits: [rows, vocab] float32, of any strides, changed in place. allowed: row -> ids, [tokens] int64. Row by row,
    for a row fits the cache.
    """
    for number, tokens in allowed.items():
        row, tokens = logits[number], tokens.to(logits.device)
        kept = row.index_select(0, tokens)
        row.fill_(MASKED).index_copy_(0, tokens, kept)
