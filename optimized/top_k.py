"""top-k: the k largest logits of a row stay, and every logit equal to the least of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from logitsproc.optimized.packing import TokenIds, token_ids
from logitsproc.optimized.selection import MASKED, largest, mask_below
from logitsproc.optimized.table import BatchUpdate, Users

BEYOND = 2**31 - 1
"""No vocabulary has so many tokens."""


class TopKLogitsProcessor:
    """top-k for the rows whose request has one, in place: a row is read once and written once, and not sorted."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.users = Users(top_k)
        self.ks: dict[int, int] = {}

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError when top_k is not an int of at least -1."""
        if not isinstance(params.top_k, int) or isinstance(params.top_k, bool) or params.top_k < -1:
            raise ValueError(f"top_k must be an int of at least -1, not {params.top_k!r}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, the largest tokens of a row always stay."""
        return True

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is None:
            return
        self.users.follow(batch_update)
        self.ks = self.users.by_row()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """TOPK-MASK, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32 on the CPU, of any strides.
        """
        keep_largest(logits, self.ks)
        return logits


def top_k(params: Any, prompt: list[int] | None, output: list[int]) -> int | None:
    """TOPK-NEUTRAL: the request's k, or None for 0 and -1. A larger one than any vocabulary becomes BEYOND."""
    return min(params.top_k, BEYOND) if params.top_k > 0 else None


def keep_largest(logits: torch.Tensor, ks: dict[int, int]) -> None:
    """TOPK-MASK, TOPK-TIES, TOPK-KEPT-VALUES, TOPK-NEUTRAL, TOPK-NONFINITE: what is less than the k-th largest becomes
    -inf.

    logits: [rows, vocab] float32 on the CPU, of any strides, changed in place. ks: row -> k, in ascending order of
    rows.
    """
    ks = {row: k for row, k in ks.items() if k < logits.shape[1]}
    if not ks:
        return
    rows, wanted = [logits[row] for row in ks], token_ids(ks.values())
    found = largest(logits, token_ids(ks), wanted)
    edges = kth_largest(found.values, wanted)
    for place in found.rest.isnan().nonzero()[:, 0].tolist():
        edges[place] = kth_of_row(rows[place], int(wanted[place]))
    mask_below(rows, edges)


def kth_largest(values: torch.Tensor, ks: TokenIds) -> torch.Tensor:
    """TOPK-MASK: the k-th largest value of each row, -inf for k 0 and where there are fewer: [rows, 1] float32.

    values: [rows, width] float32, in descending order. ks: [rows] int64.
    """
    column = torch.from_numpy(ks)[:, None]
    kth = values.gather(1, (column - 1).clamp_(0, values.shape[1] - 1))
    return kth.masked_fill_((column < 1) | (column > values.shape[1]), MASKED)


def kth_of_row(row: torch.Tensor, k: int) -> float:
    """TOPK-NONFINITE: the k-th largest of a whole row, NaN being larger than every number.

    row: [vocab] float32 on the CPU. k: from 1 to vocab. NumPy sorts values with vectors, and puts NaN last; where many
    values are equal its partition takes longer.
    """
    return float(np.sort(row.numpy())[len(row) - k])
