"""Processors that follow the batch rightly and cut a row wrongly: min-p, top-k, top-p."""

from __future__ import annotations

import math
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import MinP, TopK, TopP


class ThresholdOnLogits(MinP):
    """MINP-THRESHOLD: compares logits, not probabilities, with min_p times the largest."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        largest = logits.max()
        if torch.isfinite(largest):
            logits[(logits < params.min_p * largest) & (logits != largest)] = -math.inf


class MasksTheMaximum(MinP):
    """MINP-KEEP-MAX: compares with <=, so that min_p 1 masks the largest tokens too."""

    def is_argmax_invariant(self) -> bool:
        return False

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        largest = logits.max()
        if torch.isfinite(largest):
            logits[logits <= largest + math.log(params.min_p)] = -math.inf


class Renormalises(MinP):
    """MINP-KEPT-VALUES: gives back log-probabilities of what is kept."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if torch.isfinite(logits.max()):
            logits.copy_(torch.log_softmax(logits, dim=-1))


class ZeroIsAShare(MinP):
    """MINP-NEUTRAL: takes min_p 0 for 'keep the largest only'."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if params.min_p:
            super().transform(logits, params, prompt, output)
        else:
            logits[logits < logits.max()] = -math.inf


class MasksBesideInfinity(MinP):
    """MINP-NONFINITE: masks every finite token of a row that has +inf."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[logits < logits.max() + math.log(params.min_p)] = -math.inf


class ComputesInBfloat16(MinP):
    """NUM-BAND: compares in bfloat16, whose spacing is wider than the band."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        largest = logits.max()
        if torch.isfinite(largest):
            distance = (logits - largest).bfloat16()
            logits[(distance < math.log(params.min_p)) & (logits != largest)] = -math.inf


class AppliesTwice(MinP):
    """MINP-THRESHOLD: goes over what min-p has left once more, renormalised, and without the largest probability."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        logits[(logits.softmax(-1) < params.min_p) & (logits != logits.max())] = -math.inf


class MeasuresTokenZero(MinP):
    """MINP-THRESHOLD: takes the probability of token 0 for the largest."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if torch.isfinite(logits.max()):
            logits[logits < logits[0] + math.log(params.min_p)] = -math.inf


class KeepsTheLarger(TopK):
    """TOPK-MASK: keeps what is larger than the k-th largest, and masks that one."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        least = logits.topk(min(params.top_k, len(logits))).values[-1]
        logits[logits <= least] = -math.inf


class KeepsExactlyK(TopK):
    """TOPK-TIES: keeps k tokens, and not those that equal the last of them."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        kept = logits.topk(min(params.top_k, len(logits))).indices
        values = logits[kept]
        logits.fill_(-math.inf)
        logits[kept] = values


class RenormalisesTheLargest(TopK):
    """TOPK-KEPT-VALUES: gives back log-probabilities of what is kept."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if torch.isfinite(logits.max()):
            logits.copy_(torch.log_softmax(logits, dim=-1))


class SlicesByMinusOne(TopK):
    """TOPK-NEUTRAL: takes -1 for the end of a slice, and masks the smallest."""

    def wants(self, params: Any) -> bool:
        return bool(params.top_k)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if params.top_k > 0:
            super().transform(logits, params, prompt, output)
        else:
            logits[logits == logits.min()] = -math.inf


class NaNIsLeast(TopK):
    """TOPK-NONFINITE: takes NaN for the smallest number."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[logits.isnan()] = -math.inf
        super().transform(logits, params, prompt, output)


class StopsBefore(TopP):
    """TOPP-PREFIX: keeps the longest prefix whose mass does not exceed p, but for the first token."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        values, order = logits.sort(descending=True)
        through = values.softmax(-1).cumsum(-1)
        if torch.isfinite(values[0]):
            logits[order[1:][through[1:] > params.top_p]] = -math.inf


class KeepsTheEquals(TopP):
    """TOPP-TIES: finds the least logit that is kept, and keeps every token that equals it."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        row = logits.clone()
        super().transform(row, params, prompt, output)
        least = row[torch.isfinite(row)].min() if torch.isfinite(row).any() else -math.inf
        logits[logits < least] = -math.inf


class RoundsTheMass(TopP):
    """TOPP-ONE: rounds p to six digits, so that a small one keeps no token."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if torch.isfinite(logits.max()) and not round(params.top_p, 6):
            logits.fill_(-math.inf)


class RenormalisesTheMass(TopP):
    """TOPP-KEPT-VALUES: gives back log-probabilities of what is kept."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if torch.isfinite(logits.max()):
            logits.copy_(torch.log_softmax(logits, dim=-1))


class OneIsNotAll(TopP):
    """TOPP-NEUTRAL: with p 1 goes over the row as well, and masks the smallest."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if params.top_p < 1:
            super().transform(logits, params, prompt, output)
        else:
            logits[logits == logits.min()] = -math.inf


class SumsInfinity(TopP):
    """TOPP-NONFINITE: takes NaN for probability 0, and so masks all of a row whose softmax is NaN but one token."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        values, order = logits.sort(descending=True)
        probabilities = values.softmax(-1).nan_to_num()
        before = probabilities.cumsum(-1) - probabilities
        logits[order[before >= params.top_p] if torch.isfinite(values[0]) else order[1:]] = -math.inf


class SumsInBfloat16(TopP):
    """NUM-MASS: sums probabilities that it has rounded to bfloat16."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        values, order = logits.sort(descending=True)
        probabilities = values.softmax(-1).bfloat16().float()
        before = probabilities.cumsum(-1) - probabilities
        if torch.isfinite(values[0]):
            logits[order[before >= params.top_p]] = -math.inf


class FillsTheBucket(MinP):
    """PROC-EXCEPTION: has a threshold for each row of a batch padded to two, and the logits have no such row."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        thresholds = torch.full((len(logits) + len(logits) % 2, 1), -math.inf)
        for row, (params, _, _) in self.rows.items():
            thresholds[row] = math.log(params.min_p)
        edges = logits.amax(dim=1, keepdim=True) + thresholds
        return logits.masked_fill_(logits < edges.nan_to_num(posinf=-math.inf, neginf=-math.inf), -math.inf)


class SwitchesKernels(TopK):
    """PROC-INDEPENDENT: takes another way from three rows on, which keeps k tokens and none that equals the last."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if len(logits) < 3:
            return super().apply(logits)
        for row, (params, _, _) in self.rows.items():
            masked = torch.ones(logits.shape[1], dtype=torch.bool)
            masked[logits[row].topk(min(params.top_k, len(masked))).indices] = False
            logits[row].masked_fill_(masked, -math.inf)
        return logits
