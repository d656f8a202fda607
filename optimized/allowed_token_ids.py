"""Allowed token ids: every token that the request does not list is masked."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.optimized.domains import are_tokens, require
from logitsproc.optimized.packing import MASKED, token_ids
from logitsproc.optimized.processor import Processor


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


class AllowedTokenIdsLogitsProcessor(Processor):
    """Masks, in place, all but the listed tokens of the rows whose request has a list."""

    state_of = staticmethod(allowed_tokens)
    edit = staticmethod(keep_allowed)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when allowed_token_ids is neither None nor names token ids only."""
        value = params.allowed_token_ids
        within = value is None or (are_tokens(value) and len(value) > 0)
        require("allowed_token_ids", value, "None or a list of at least one token id", within)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be one that is not listed."""
        return False
