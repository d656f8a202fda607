"""Custom processors that the suite puts into a pipeline, or behind an adapter, to see what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import ByRow


def asked(params: Any, name: str) -> Any:
    """What extra_args asks for under this name, or None."""
    return (params.extra_args or {}).get(name)


class Shift(ByRow):
    """extra_args {"shift": [token, amount]}: adds the amount to the token's logit; returns a new tensor."""

    def wants(self, params: Any) -> bool:
        return asked(params, "shift") is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        token, amount = asked(params, "shift")
        logits[token] += amount

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits.clone()) if self.rows else logits


class Largest(ByRow):
    """extra_args {"largest": k}: argmax invariant, keeps the k largest and their equals."""

    def is_argmax_invariant(self) -> bool:
        return True

    def wants(self, params: Any) -> bool:
        return asked(params, "largest") is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        least = logits.topk(min(asked(params, "largest"), len(logits))).values[-1]
        logits[logits < least] = -math.inf


CUSTOM = (Shift, Largest)


class Requests:
    """What a concrete adapter is made of: extra_args {"request": "two"} or {"request": "three"}."""

    def is_argmax_invariant(self) -> bool:
        """No: the largest token may be masked."""
        return False

    def new_req_logits_processor(self, params: Any) -> Callable[..., torch.Tensor] | None:
        """A request-level processor with so many parameters, or None."""
        return REQUEST_LEVEL.get(asked(params, "request"))


class LastOutput:
    """A request-level processor that is a method of an object."""

    def mask(self, output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        """Masks the last output token, in place."""
        if output_ids:
            logits[output_ids[-1]] = -math.inf
        return logits


def raise_prompt(prompt_ids: list[int], output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
    """A new row, with 1 added for each token of the prompt."""
    raised = logits.clone()
    raised[sorted(set(prompt_ids))] += 1.0
    return raised


REQUEST_LEVEL: dict[str, Callable[..., torch.Tensor]] = {"two": LastOutput().mask, "three": raise_prompt}
