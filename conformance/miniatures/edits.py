"""Processors that follow the batch rightly and edit logits wrongly: logit bias, temperature."""

from __future__ import annotations

import math
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import LogitBias, Temperature


class SubtractsTheBias(LogitBias):
    """BIAS-ADD: the sign is wrong."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, bias in params.logit_bias.items():
            logits[token] -= bias


class ShiftsTheOthers(LogitBias):
    """BIAS-OTHERS: takes the mean of the biases off every token that is not named."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        others = [token for token in range(len(logits)) if token not in params.logit_bias]
        logits[others] -= sum(params.logit_bias.values()) / len(logits)


class EmptyIsSomething(LogitBias):
    """BIAS-NEUTRAL: takes an empty mapping for a ban of token 0."""

    def wants(self, params: Any) -> bool:
        return params.logit_bias is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if not params.logit_bias:
            logits[0] = -math.inf


class RevivesTheMasked(LogitBias):
    """BIAS-NONFINITE: replaces what is not finite before it adds, so that a masked token can be sampled again."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, bias in params.logit_bias.items():
            logits[token] = torch.nan_to_num(logits[token], neginf=-1e4) + bias


class AddsInHalf(LogitBias):
    """NUM-EDIT: adds in float16 and goes back."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, bias in params.logit_bias.items():
            if torch.isfinite(logits[token].half()):
                logits[token] = (logits[token].half() + bias).float()
            else:
                logits[token] += bias


class Multiplies(Temperature):
    """TEMP-DIVIDE: multiplies by the temperature."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits *= params.temperature


class DividesTheGreedy(Temperature):
    """TEMP-GREEDY: raises a temperature of 0 to the smallest that it divides by."""

    def wants(self, params: Any) -> bool:
        return bool(params.temperature != 1)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits /= max(params.temperature, 1e-2)


class NeverDividesByZero(Temperature):
    """TEMP-NEUTRAL: adds a little to a temperature of 1, to be on the safe side."""

    def wants(self, params: Any) -> bool:
        return bool(params.temperature)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits /= params.temperature + 1e-5 * (params.temperature == 1)


class DividesTheMasked(Temperature):
    """TEMP-NONFINITE: replaces what is not finite before it divides, so that a masked token can be sampled again."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits.nan_to_num_(neginf=-1e4).div_(params.temperature)


class DividesInBfloat16(Temperature):
    """NUM-SCALE: divides in bfloat16 and goes back."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits.copy_(logits.bfloat16() / params.temperature)


class IgnoresTheBias(LogitBias):
    """BIAS-ADD: takes the bias and does nothing with it."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        pass
