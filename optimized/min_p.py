"""min-p: a token stays if its probability is at least min_p times the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from logitsproc.optimized.packing import float_values
from logitsproc.optimized.table import BatchUpdate, Users

MASKED = -math.inf
VISIT = 3072
"""To visit one row by itself takes as long as to compare this many tokens of the whole batch."""


class MinPLogitsProcessor:
    """min-p for the rows whose request has a min_p above 0, in place.

    p >= min_p * max(p) is logit >= max(logits) + ln(min_p): no softmax; a row is read twice, written once.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(log_share)
        self.rows: list[int] = []
        self.log_shares = torch.empty(0, 1, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError when min_p is not in [0, 1]."""
        if not 0.0 <= params.min_p <= 1.0:
            raise ValueError(f"min_p must be in [0, 1], not {params.min_p}")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, the largest tokens of a row always stay."""
        return True

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was."""
        if batch_update is None:
            return
        self.users.follow(batch_update)
        users = self.users.by_row()
        self.rows = list(users)
        self.log_shares = column(users).to(self.device)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """MINP-THRESHOLD, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE: the input, changed in its users' rows only.

        logits: [rows, vocab] float32, of any strides.
        """
        if not self.rows:
            return logits
        if logits.numel() < VISIT * len(self.rows):
            mask_batch(logits[: self.log_shares.shape[0]], self.log_shares)
        else:
            mask_rows([logits[row] for row in self.rows], self.log_shares[self.rows])
        return logits


def log_share(params: Any, prompt: list[int] | None, output: list[int]) -> float | None:
    """MINP-NEUTRAL: ln(min_p), or None for 0, which asks for nothing."""
    return math.log(params.min_p) if params.min_p else None


def column(log_shares: dict[int, float]) -> torch.Tensor:
    """ln(min_p) of every row up to the last user's, -inf for a row without: [rows, 1] float32.

    log_shares: row -> ln(min_p).
    """
    rows = range(max(log_shares, default=-1) + 1)
    return torch.from_numpy(float_values([log_shares.get(row, MASKED) for row in rows])[:, None])


def edges(largest: torch.Tensor, log_shares: torch.Tensor) -> torch.Tensor:
    """MINP-THRESHOLD, MINP-NONFINITE: the smallest logit that stays, or -inf for a row that is left alone.

    largest: the maximum of each row, overwritten; not finite where a row holds NaN or +inf, or only -inf.
    log_shares: ln(min_p) or -inf, so no edge is above its maximum. All [rows, 1] float32.
    """
    return largest.add_(log_shares).nan_to_num_(nan=MASKED, posinf=MASKED, neginf=MASKED)


def mask_batch(logits: torch.Tensor, log_shares: torch.Tensor) -> None:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES: all rows at once.

    logits: [rows, vocab], log_shares: [rows, 1], float32.
    """
    logits.masked_fill_(logits < edges(logits.amax(1, keepdim=True), log_shares), MASKED)


def mask_rows(rows: Sequence[torch.Tensor], log_shares: torch.Tensor) -> None:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES: row by row.

    rows: views of the logits, [vocab] each, log_shares: [rows, 1], float32.
    threshold_ runs at the speed of memory, which masking by a comparison does not. It replaces what is at or
    below its threshold, NaN not, so the threshold is the float32 next below the edge.
    """
    edge = edges(torch.stack([row.amax(0, keepdim=True) for row in rows]), log_shares)
    below = edge.nextafter(torch.full_like(edge, MASKED)).flatten()
    for row, threshold in zip(rows, below.tolist(), strict=True):
        torch.threshold_(row, threshold, MASKED)
