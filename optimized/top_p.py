"""top-p: of the tokens of a row in descending order, the fewest whose probabilities sum up to p stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from logitsproc.optimized.domains import is_number, require
from logitsproc.optimized.packing import MASKED, TokenIds, token_ids
from logitsproc.optimized.processor import Processor
from logitsproc.optimized.selection import keep, largest, mask_below

WIDE = 128
"""So many candidates are looked for in a row when how many stay depends on their logits."""
FAR = -80.0
"""Farther below the largest logit probabilities are nothing beside it, and exp takes a hundred times as long."""


def top_p(params: Any, prompt: list[int] | None, output: list[int]) -> float | None:
    """TOPP-NEUTRAL: the request's p, or None for 1."""
    return float(params.top_p) if params.top_p < 1.0 else None


def keep_nucleus(logits: torch.Tensor, ps: dict[int, float]) -> None:
    """TOPP-PREFIX, TOPP-TIES, TOPP-ONE, TOPP-KEPT-VALUES, TOPP-NONFINITE: what is beyond p becomes -inf.

    logits: [rows, vocab] float32 on the CPU, of any strides, changed in place. ps: row -> p below 1, in ascending order
    of rows.
    """
    if not ps:
        return
    rows = token_ids(ps)
    values, tokens, rest = largest(logits, rows, np.full(len(rows), WIDE))
    weights = relative(values)
    totals = weights.sum(1, keepdim=True)
    more = (rest > MASKED) & totals.isfinite()
    tops = values[:, :1][more]
    totals[more] = masses(logits, rows[more.numpy()[:, 0]], torch.ones_like(tops), tops)
    kept, reached = nucleus(weights, totals, torch.tensor(list(ps.values()), dtype=torch.float64)[:, None])
    settled = reached.flatten()
    keep(logits, rows[settled.numpy()], tokens[settled], values[settled], kept[settled])
    for row in rows[~settled.numpy()].tolist():
        mask_tail(logits[row], ps[row])


def relative(values: torch.Tensor) -> torch.Tensor:
    """TOPP-NONFINITE: the probability of each value in relation to its row's largest, NaN in a row where that is not
    finite: [rows, width] float64.

    values: [rows, width] float32, in descending order.
    """
    return (values - values[:, :1]).double().exp_()


def masses(logits: torch.Tensor, rows: TokenIds, temperatures: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """NUM-MASS: the sum of all probabilities of each row, divided by its temperature, in relation to the largest:
    [rows] float64.

    logits: [all rows, vocab] float32, not changed. rows: [rows] int64. temperatures, largest: [rows] float32, the
    latter divided, and finite.
    The rounding of a difference weighs as much as its probability, and torch sums pairwise: at 128256 tokens the
    relative error was 2**-22 at most, a sixteenth of the band. Row by row, for a row fits the cache.
    """
    scratch, sums = torch.empty(logits.shape[1]), torch.empty(len(rows))
    for place, row in enumerate(rows.tolist()):
        torch.div(logits[row], temperatures[place], out=scratch)
        sums[place] = scratch.sub_(largest[place]).clamp_(min=FAR).exp_().sum()
    return sums.double()


def nucleus(weights: torch.Tensor, totals: torch.Tensor, ps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """TOPP-PREFIX, TOPP-TIES, TOPP-ONE: which stay, those before them being less than p, [rows, width], and whether p
    is reached, [rows, 1]; bool.

    weights: [rows, width], in descending order. totals, ps: [rows, 1]. All float64, and NaN stays.
    """
    goals = ps * totals
    through = weights.cumsum(1)
    return ~(through - weights >= goals), through[:, -1:] >= goals


def mask_tail(row: torch.Tensor, p: float) -> None:
    """TOPP-PREFIX, TOPP-TIES, TOPP-ONE, TOPP-NONFINITE: one row by a sort of its values, which NumPy does with vectors.

    row: [vocab] float32 on the CPU, changed in place.
    """
    top = row.amax()
    if not top.isfinite():
        return
    ordered = np.negative(row.numpy())
    ordered.sort()
    through = torch.from_numpy(ordered).add(top).neg_().clamp_(min=FAR).exp_().cumsum(0, dtype=torch.float64)
    count = int(torch.searchsorted(through, p * through[-1:])) + 1
    edge = -ordered[count - 1]
    mask_below([row], torch.tensor([[edge]]))
    surplus = int(np.searchsorted(ordered, -edge, side="right")) - count
    if surplus:
        row[(row == edge).nonzero()[-surplus:, 0]] = MASKED


class TopPLogitsProcessor(Processor):
    """top-p for the rows whose request has one, in place. A row is not sorted, unless p is in its flat tail."""

    state_of = staticmethod(top_p)
    edit = staticmethod(keep_nucleus)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when top_p is no number in (0, 1]."""
        value = params.top_p
        require("top_p", value, "in (0, 1]", is_number(value, 0, 1) and value > 0)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: True, a largest token of a row always stays."""
        return True
