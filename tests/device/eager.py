"""The stages as vLLM V1 does them, in eager torch on any device: dense, with a softmax and a sort. To compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from logitsproc.optimized.bad_words import completing_tokens
from logitsproc.optimized.records import record

Stage = Callable[[torch.Tensor], torch.Tensor]
"""logits, [rows, vocab] float32 -> logits."""


class Asked(NamedTuple):
    """What a batch asks for, on the device. allowed, prompts: [rows, vocab] bool. counts: [rows, vocab] float32.
    banned, biased: the index of each listed token. biases: float32, one a biased token. The rest: [rows, 1]."""

    allowed: torch.Tensor
    banned: tuple[torch.Tensor, torch.Tensor]
    biased: tuple[torch.Tensor, torch.Tensor]
    biases: torch.Tensor
    prompts: torch.Tensor
    counts: torch.Tensor
    repetition: torch.Tensor
    frequency: torch.Tensor
    presence: torch.Tensor
    temperature: torch.Tensor
    min_p: torch.Tensor
    k: torch.Tensor
    p: torch.Tensor


def asked(batch: Sequence[tuple[Any, list[int], list[int]]], vocab: int, device: torch.device) -> Asked:
    """Of requests that all ask something of every stage but the list of allowed tokens: (params, prompt, output)."""
    rows = len(batch)
    records = [record(*request) for request in batch]

    def column(values: list[float], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)[:, None]

    def index(tokens: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = [(row, token) for row, each in enumerate(tokens) for token in each]
        of_rows, of_tokens = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T.to(device)
        return of_rows, of_tokens

    prompts = torch.zeros((rows, vocab), dtype=torch.bool, device=device)
    prompts[index([prompt for _, prompt, _ in batch])] = True
    counts = torch.zeros((rows, vocab), device=device)
    ones = torch.ones((), device=device)
    counts.index_put_(index([output for _, _, output in batch]), ones, accumulate=True)
    params = [each for each, _, _ in batch]
    banned = [completing_tokens(each.words) + each.minimum.stops.tolist() for each in records if each and each.words]
    return Asked(
        torch.ones((rows, vocab), dtype=torch.bool, device=device),
        index(banned),
        index([list(each.logit_bias) for each in params]),
        torch.tensor([bias for each in params for bias in each.logit_bias.values()], device=device),
        prompts,
        counts,
        column([each.repetition_penalty for each in params]),
        column([each.frequency_penalty for each in params]),
        column([each.presence_penalty for each in params]),
        column([each.temperature for each in params]),
        column([each.min_p for each in params]),
        column([each.top_k for each in params], torch.int64),
        column([each.top_p for each in params]),
    )


def penalised(logits: torch.Tensor, batch: Asked) -> torch.Tensor:
    """Repetition, frequency and presence."""
    seen = batch.prompts | (batch.counts > 0)
    factor = torch.where(seen, batch.repetition, 1.0)
    logits = logits * torch.where(logits > 0, 1.0 / factor, factor)
    return logits - batch.frequency * batch.counts - batch.presence * (batch.counts > 0)


def probable(logits: torch.Tensor, batch: Asked) -> torch.Tensor:
    """min-p by a softmax."""
    probabilities = logits.softmax(-1)
    return logits.masked_fill_(probabilities < batch.min_p * probabilities.amax(-1, keepdim=True), -torch.inf)


def truncated(logits: torch.Tensor, batch: Asked) -> torch.Tensor:
    """top-k and top-p by a sort."""
    ordered, order = logits.sort(dim=-1, descending=False)
    kth = ordered.gather(1, ordered.shape[1] - batch.k)
    ordered.masked_fill_(ordered < kth, -torch.inf)
    before = ordered.softmax(-1).cumsum(-1)
    cut = before <= 1 - batch.p
    cut[:, -1] = False
    ordered.masked_fill_(cut, -torch.inf)
    return torch.empty_like(logits).scatter_(-1, order, ordered)


def every_stage(batch: Asked) -> Stage:
    """All of them, in order."""
    masked = torch.tensor(-torch.inf, device=batch.biases.device)

    def run(logits: torch.Tensor) -> torch.Tensor:
        logits = logits.masked_fill_(~batch.allowed, -torch.inf)
        logits.index_put_(batch.banned, masked)
        logits[batch.biased] += batch.biases
        logits = penalised(logits, batch).div_(batch.temperature)
        return truncated(probable(logits, batch), batch)

    return run
