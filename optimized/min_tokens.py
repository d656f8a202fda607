"""min-tokens: no stop token before the request has that many output tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from logitsproc.optimized.packing import Index, TokenIds, pack, token_ids
from logitsproc.optimized.table import BatchUpdate, Users


class Minimum(NamedTuple):
    """min_tokens: a number of tokens. output: the live list, of which only the length is read. stops: ids."""

    min_tokens: int
    output: Sequence[int]
    stops: TokenIds


class MinTokensLogitsProcessor:
    """Masks the stop tokens of the rows whose request is still too short, in place.

    A request that is long enough stays known: its list may shrink again.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(minimum)
        self.minima: dict[int, Minimum] = {}
        self.blocked: list[int] = []
        self.index: Index | None = None
        self.masked = torch.tensor(-math.inf, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError for a negative min_tokens, or one with a negative stop id."""
        if params.min_tokens < 0:
            raise ValueError(f"min_tokens must not be negative, not {params.min_tokens}")
        if params.min_tokens and min(params.all_stop_token_ids, default=0) < 0:
            raise ValueError(f"stop token {min(params.all_stop_token_ids)}: token ids are not negative")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be a stop token."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was.

        Lengths are not read here: they may still change before `apply`.
        """
        if batch_update is None:
            return
        self.users.follow(batch_update)
        self.minima = self.users.by_row()
        self.blocked, self.index = [], None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """MINTOK-BLOCK, MINTOK-RELEASE, MINTOK-OTHERS, PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-QUIET,
        PROC-SHRINK, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE:
        the input, with -inf for the stop tokens of each row whose request is too short now.

        logits: [rows, vocab] float32, of any strides. Raises IndexError for a token beyond the vocabulary.
        """
        blocked = [row for row, (least, output, _) in self.minima.items() if len(output) < least]
        if not blocked:
            return logits
        if blocked != self.blocked:
            self.index = pack(blocked, [self.minima[row].stops for row in blocked], self.device)
            self.blocked = blocked
        return logits.index_put_(self.index, self.masked)


def minimum(params: Any, prompt: list[int] | None, output: list[int]) -> Minimum | None:
    """MINTOK-NEUTRAL, MINTOK-EOS: the request's minimum, or None without one or without a stop token."""
    stops = params.all_stop_token_ids
    return Minimum(params.min_tokens, output, token_ids(stops)) if params.min_tokens and stops else None
