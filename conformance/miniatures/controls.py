"""Right processors in a few lines each: what the miniatures are spoiled copies of."""

from __future__ import annotations

import math
from typing import Any

import torch

State = tuple[Any, list[int] | None, list[int]]


class ByRow:
    """A dictionary by row of the requests that use the processor, and a transformation of one row."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.rows: dict[int, State] = {}

    def is_argmax_invariant(self) -> bool:
        """Whether the transformation keeps a largest token largest."""
        return False

    def wants(self, params: Any) -> bool:
        """Whether the params use the processor."""
        raise NotImplementedError

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        """Changes one row, float32 [vocab], in place."""
        raise NotImplementedError

    def update_state(self, update: Any) -> None:
        """Follows removed, added and moved, in this order."""
        if update is None:
            return
        for row in update.removed:
            self.remove(row)
        for row, params, prompt, output in update.added:
            self.add(row, params, prompt, output)
        self.move_all(update.moved)

    def move_all(self, moved: Any) -> None:
        """Follows the moves in the order listed."""
        for source, destination, direction in moved:
            if direction.name == "SWAP":
                self.swap(source, destination)
            else:
                self.move(source, destination)

    def remove(self, row: int) -> None:
        """The row has no state."""
        self.rows.pop(row, None)

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        """The row has the new request's state, or none."""
        self.put(row, (params, prompt, output) if self.wants(params) else None)

    def move(self, source: int, destination: int) -> None:
        """The source's state is at the destination."""
        self.put(destination, self.rows.pop(source, None))

    def swap(self, row: int, other: int) -> None:
        """Each row has the other's state."""
        held, opposite = self.rows.pop(row, None), self.rows.pop(other, None)
        self.put(row, opposite)
        self.put(other, held)

    def put(self, row: int, state: State | None) -> None:
        """The state at the row, or none."""
        self.rows.pop(row, None)
        if state is not None:
            self.rows[row] = state

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Transforms the rows in use, in place."""
        for row, (params, prompt, output) in self.rows.items():
            self.transform(logits[row], params, prompt, output)
        return logits


class MinP(ByRow):
    """min-p."""

    def is_argmax_invariant(self) -> bool:
        return True

    def wants(self, params: Any) -> bool:
        return bool(params.min_p)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        largest = logits.max()
        if torch.isfinite(largest):
            logits[logits < largest + math.log(params.min_p)] = -math.inf


class LogitBias(ByRow):
    """Logit bias."""

    def wants(self, params: Any) -> bool:
        return bool(params.logit_bias)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, bias in params.logit_bias.items():
            logits[token] += bias


class MinTokens(ByRow):
    """min-tokens."""

    def wants(self, params: Any) -> bool:
        return bool(params.min_tokens)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            logits[list(params.all_stop_token_ids)] = -math.inf


class NoRepeat(ByRow):
    """Bans the last output token of requests with extra_args {"no_repeat": True}: the ids matter, not the number."""

    def wants(self, params: Any) -> bool:
        return bool((params.extra_args or {}).get("no_repeat"))

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if output:
            logits[output[-1]] = -math.inf


class ForgetsToClear:
    """PROC-STATE-DEPARTED: a request without the feature that replaces one with it inherits its state."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if self.wants(params):  # type: ignore[attr-defined]
            super().add(row, params, prompt, output)  # type: ignore[misc]


class MinPCanary(ForgetsToClear, MinP):
    """PROC-STATE-DEPARTED: the canary of min_p, and of runs without a kind."""


class LogitBiasCanary(ForgetsToClear, LogitBias):
    """PROC-STATE-DEPARTED: the canary of logit_bias."""


class MinTokensCanary(ForgetsToClear, MinTokens):
    """PROC-STATE-DEPARTED: the canary of min_tokens."""


CANARIES = {"min_p": MinPCanary, "logit_bias": LogitBiasCanary, "min_tokens": MinTokensCanary}
