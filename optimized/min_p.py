"""min-p: a token stays if its probability is at least min_p times the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from logitsproc.optimized.domains import is_number, require
from logitsproc.optimized.packing import MASKED, float_values
from logitsproc.optimized.processor import Processor
from logitsproc.optimized.selection import mask_below

VISIT = 3072
"""To visit one row by itself takes as long as to compare this many tokens of the whole batch."""


class Shares(NamedTuple):
    """rows: those with a min_p, ascending. log_shares: ln(min_p) of every row up to the last of them, -inf for a row
    without, [rows, 1] float32."""

    rows: list[int]
    log_shares: torch.Tensor


def log_share(params: Any, prompt: list[int] | None, output: list[int]) -> float | None:
    """MINP-NEUTRAL: ln(min_p), or None for 0, which asks for nothing."""
    return math.log(params.min_p) if params.min_p else None


def shares(users: dict[int, float], device: torch.device) -> Shares:
    """users: row -> ln(min_p), in ascending order of rows, not empty."""
    rows = list(users)
    column = float_values([users.get(row, MASKED) for row in range(rows[-1] + 1)])
    return Shares(rows, torch.from_numpy(column[:, None]).to(device))


def keep_probable(logits: torch.Tensor, asked: Shares) -> None:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES: what is less probable than its row's share becomes -inf.

    logits: [rows, vocab] float32, of any strides, changed in place.
    """
    rows, log_shares = asked
    if logits.numel() < VISIT * len(rows):
        mask_batch(logits[: len(log_shares)], log_shares)
    else:
        mask_rows([logits[row] for row in rows], log_shares[rows])


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
    """
    mask_below(rows, edges(torch.stack([row.amax(0, keepdim=True) for row in rows]), log_shares))


class MinPLogitsProcessor(Processor):
    """min-p for the rows whose request has a min_p above 0, in place.

    p >= min_p * max(p) is logit >= max(logits) + ln(min_p): no softmax; a row is read twice, written once.
    """

    state_of = staticmethod(log_share)
    packed = staticmethod(shares)
    edit = staticmethod(keep_probable)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when min_p is no number in [0, 1]."""
        value = params.min_p
        require("min_p", value, "in [0, 1]", is_number(value, 0, 1))

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, the largest tokens of a row always stay."""
        return True
