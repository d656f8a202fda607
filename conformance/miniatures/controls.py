"""Right processors in a few lines each: what the miniatures are spoiled copies of."""

from __future__ import annotations

import math
from collections import Counter
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


class AllowedTokenIds(ByRow):
    """Allowed token ids."""

    def wants(self, params: Any) -> bool:
        return params.allowed_token_ids is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        kept = logits[params.allowed_token_ids]
        logits.fill_(-math.inf)
        logits[params.allowed_token_ids] = kept


class BadWords(ByRow):
    """Bad words."""

    def wants(self, params: Any) -> bool:
        return bool(params.bad_words_token_ids)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for *before, last in params.bad_words_token_ids:
            if output[len(output) - len(before) :] == before:
                logits[last] = -math.inf


class MinTokens(ByRow):
    """min-tokens."""

    def wants(self, params: Any) -> bool:
        return bool(params.min_tokens)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            logits[list(params.all_stop_token_ids)] = -math.inf


class LogitBias(ByRow):
    """Logit bias."""

    def wants(self, params: Any) -> bool:
        return bool(params.logit_bias)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, bias in params.logit_bias.items():
            logits[token] += bias


class RepetitionPenalty(ByRow):
    """Repetition penalty."""

    def wants(self, params: Any) -> bool:
        return bool(params.repetition_penalty != 1)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in {*(prompt or ()), *output}:
            if logits[token] > 0:
                logits[token] /= params.repetition_penalty
            else:
                logits[token] *= params.repetition_penalty


class FrequencyPenalty(ByRow):
    """Frequency penalty."""

    def wants(self, params: Any) -> bool:
        return bool(params.frequency_penalty)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token, count in Counter(output).items():
            logits[token] -= params.frequency_penalty * count


class PresencePenalty(ByRow):
    """Presence penalty."""

    def wants(self, params: Any) -> bool:
        return bool(params.presence_penalty)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            logits[token] -= params.presence_penalty


class Temperature(ByRow):
    """Temperature."""

    def is_argmax_invariant(self) -> bool:
        return True

    def wants(self, params: Any) -> bool:
        return bool(params.temperature not in (0, 1))

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits /= params.temperature


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


class TopK(ByRow):
    """top-k."""

    def is_argmax_invariant(self) -> bool:
        return True

    def wants(self, params: Any) -> bool:
        return bool(params.top_k > 0)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        least = logits.topk(min(params.top_k, len(logits))).values[-1]
        logits[~logits.isnan() if least.isnan() else logits < least] = -math.inf


class TopP(ByRow):
    """top-p."""

    def is_argmax_invariant(self) -> bool:
        return True

    def wants(self, params: Any) -> bool:
        return bool(params.top_p < 1)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        values, order = logits.sort(descending=True)
        probabilities = values.softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        if torch.isfinite(values[0]):
            logits[order[before >= params.top_p]] = -math.inf


class MaskTable(AllowedTokenIds):
    """Allowed token ids as a table, a row of bool [vocab] for each of the batch, True where a token is masked."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        rows = vllm_config.scheduler_config.max_num_seqs
        self.masks = torch.zeros(rows, vllm_config.model_config.get_vocab_size(), dtype=torch.bool)

    def remove(self, row: int) -> None:
        self.masks[row] = False

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.masks[row] = self.wants(params)
        self.masks[row, params.allowed_token_ids or []] = False

    def move(self, source: int, destination: int) -> None:
        self.masks[destination] = self.masks[source]
        self.masks[source] = False

    def swap(self, row: int, other: int) -> None:
        self.masks[[row, other]] = self.masks[[other, row]]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits.masked_fill_(self.masks[: len(logits)], -math.inf)


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


CONTROLS: dict[str, type[ByRow]] = {
    "allowed_token_ids": AllowedTokenIds,
    "bad_words": BadWords,
    "min_tokens": MinTokens,
    "logit_bias": LogitBias,
    "repetition_penalty": RepetitionPenalty,
    "frequency_penalty": FrequencyPenalty,
    "presence_penalty": PresencePenalty,
    "temperature": Temperature,
    "min_p": MinP,
    "top_k": TopK,
    "top_p": TopP,
}
"""The right processor of each kind."""


def canary(control: type[ByRow]) -> type[ByRow]:
    """PROC-STATE-DEPARTED: the control, made to forget to clear."""
    return type(f"{control.__name__}Canary", (ForgetsToClear, control), {"__doc__": canary.__doc__})


CANARIES = {field: canary(control) for field, control in CONTROLS.items()}
