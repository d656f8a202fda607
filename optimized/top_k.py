"""top-k: the k largest logits of a row stay, and every logit equal to the least of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from logitsproc.optimized.domains import is_integer, require
from logitsproc.optimized.packing import MASKED, TokenIds, token_ids
from logitsproc.optimized.processor import Processor
from logitsproc.optimized.selection import largest, mask_below

BEYOND = 2**31 - 1
"""No vocabulary has so many tokens."""


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


class TopKLogitsProcessor(Processor):
    """top-k for the rows whose request has one, in place: a row is read once and written once, and not sorted."""

    state_of = staticmethod(top_k)
    edit = staticmethod(keep_largest)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when top_k is no int of at least -1."""
        value = params.top_k
        require("top_k", value, "an int of at least -1", is_integer(value, -1))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, the largest tokens of a row always stay."""
        return True
