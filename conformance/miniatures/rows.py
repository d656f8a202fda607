"""Processors that follow the batch rightly and transform a row wrongly."""

from __future__ import annotations

import math
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import LogitBias, MinP, MinTokens


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


class BlocksTheFirstOnly(MinTokens):
    """MINTOK-BLOCK: blocks one stop token id and lets the others through."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            end = params.all_stop_token_ids - set(params.stop_token_ids)
            logits[[*params.stop_token_ids[:1], *end]] = -math.inf


class ForgetsTheEnd(MinTokens):
    """MINTOK-EOS: blocks stop_token_ids and forgets the end-of-sequence token."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            logits[params.stop_token_ids] = -math.inf


class OneTooMany(MinTokens):
    """MINTOK-RELEASE: still blocks when the request has exactly min_tokens outputs."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output[1:])


class BlocksANeighbour(MinTokens):
    """MINTOK-OTHERS: blocks the token after each stop token as well."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if len(output) < params.min_tokens:
            logits[[(token + 1) % len(logits) for token in params.all_stop_token_ids]] = -math.inf


class AtLeastOne(MinTokens):
    """MINTOK-NEUTRAL: takes min_tokens 0 for 1."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < max(1, params.min_tokens):
            logits[list(params.all_stop_token_ids)] = -math.inf
