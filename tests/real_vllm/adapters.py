"""Processors that derive from vLLM's classes, right ones and wrong ones."""

from typing import Any

import torch
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor, BatchUpdate, LogitsProcessor


def ban_last(output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
    """A request-level processor with two arguments: the last output token is banned."""
    if output_ids:
        logits[output_ids[-1]] = -torch.inf
    return logits


def ban_prompt(prompt_ids: list[int], output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
    """A request-level processor with three arguments: the tokens of the prompt are banned."""
    logits[prompt_ids] = -torch.inf
    return logits


class BansLast(AdapterLogitsProcessor):
    """The adapter with two arguments, for requests with extra_args {"ban": "last"}."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: Any) -> Any:
        return ban_last if (params.extra_args or {}).get("ban") == "last" else None


class BansPrompt(BansLast):
    """The adapter with three arguments, for requests with extra_args {"ban": "prompt"}."""

    def new_req_logits_processor(self, params: Any) -> Any:
        return ban_prompt if (params.extra_args or {}).get("ban") == "prompt" else None


class SharesOneCounter(BansLast):
    """PROC-FUNCTION: counts its calls, and does nothing every other time."""

    calls = 0

    def new_req_logits_processor(self, params: Any) -> Any:
        if (params.extra_args or {}).get("ban") != "last":
            return None

        def every_other(output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return ban_last(output_ids, logits) if self.calls % 2 else logits

        return every_other


class ForgetsToClear(LogitsProcessor):
    """PROC-STATE-DEPARTED: a class of its own on vLLM's base, without clearing on replacement."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.tokens: dict[int, int] = {}

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        if batch_update is None:
            return
        for row in batch_update.removed:
            self.tokens.pop(row, None)
        for row, params, _, _ in batch_update.added:
            if params.extra_args:
                self.tokens[row] = params.extra_args["token"]
        for source, destination, direction in batch_update.moved:
            moved, replaced = self.tokens.pop(source, None), self.tokens.pop(destination, None)
            if moved is not None:
                self.tokens[destination] = moved
            if replaced is not None and direction.name == "SWAP":
                self.tokens[source] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, token in self.tokens.items():
            logits[row, token] = -torch.inf
        return logits
