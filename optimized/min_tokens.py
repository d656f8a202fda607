"""min-tokens: no stop token before the request has that many output tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from logitsproc.optimized.domains import are_tokens, is_integer, require
from logitsproc.optimized.packing import MASKED, Index, TokenIds, pack, token_ids
from logitsproc.optimized.processor import Processor
from logitsproc.optimized.table import BatchUpdate


class Minimum(NamedTuple):
    """min_tokens: a number of tokens. output: the live list, of which only the length is read. stops: ids."""

    min_tokens: int
    output: Sequence[int]
    stops: TokenIds


def minimum(params: Any, prompt: list[int] | None, output: list[int]) -> Minimum | None:
    """MINTOK-NEUTRAL, MINTOK-EOS: the request's minimum, or None without one or without a stop token."""
    stops = params.all_stop_token_ids if params.min_tokens else ()
    return Minimum(params.min_tokens, output, token_ids(stops)) if stops else None


def is_too_short(asked: Minimum) -> bool:
    """PROC-PLACEHOLDER: whether the request does not have its min_tokens yet."""
    return len(asked.output) < asked.min_tokens


def too_short(minima: dict[int, Minimum]) -> list[int]:
    """PROC-QUIET: the rows whose request does not have its min_tokens yet."""
    return [row for row, each in minima.items() if is_too_short(each)]


class MinTokensLogitsProcessor(Processor):
    """Masks the stop tokens of the rows whose request is still too short, in place.

    A request that is long enough stays known: its list may shrink again.
    """

    state_of = staticmethod(minimum)

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.blocked: list[int] = []
        self.index: Index | None = None
        self.masked = torch.tensor(MASKED, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when min_tokens is no int from 0 on, or is above 0 and
        stop_token_ids is neither None nor a list of token ids."""
        least, stops = params.min_tokens, params.stop_token_ids
        require("min_tokens", least, "an int of at least 0", is_integer(least, 0))
        if least:
            require("stop_token_ids", stops, "None or a list of token ids", stops is None or are_tokens(stops))
            every = params.all_stop_token_ids
            require("all_stop_token_ids", every, "a set of token ids", are_tokens(every))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may be a stop token."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: as every processor's; what was packed of the batch before is dropped."""
        super().update_state(batch_update)
        if batch_update is not None:
            self.blocked, self.index = [], None

    def edit(self, logits: torch.Tensor, minima: dict[int, Minimum]) -> None:
        """MINTOK-BLOCK, MINTOK-RELEASE, MINTOK-OTHERS, PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-QUIET, PROC-SHRINK:
        -inf for the stop tokens of each row whose request is too short now.

        logits: [rows, vocab] float32, of any strides, changed in place. minima: row -> minimum. Raises IndexError for a
        token beyond the vocabulary.
        """
        blocked = too_short(minima)
        if not blocked:
            return
        if blocked != self.blocked:
            self.index = pack(blocked, [minima[row].stops for row in blocked], self.device)
            self.blocked = blocked
        logits.index_put_(self.index, self.masked)
