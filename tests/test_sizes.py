"""The fast path against the reference at the ends of what an engine may ask: vocabularies of 1 and of 128256 tokens,
1 and 256 rows, numbers at the ends of float32."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from test_spec import OPTIMIZED

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.validation import edges
from logitsproc.reference.expectation import refused
from logitsproc.reference.pipeline import skips_invariant
from logitsproc.reference.request import Request
from logitsproc.reference.validation import in_vocabulary

PROMPT, OUTPUT = [0, 5, 5, 2], [0, 1, 2, 1, 0, 5]
LARGEST = 3.4028234663852886e38
ALONE = [name for name in OPTIMIZED if name != "adapter"]


def requests(kind: str, count: int, vocab: int) -> list[Request]:
    """So many requests with params of the kind's pools whose tokens are in the vocabulary."""
    chance = random.Random(count)
    pool = [*KINDS[kind].users(chance), *KINDS[kind].others(chance), *edges(KINDS[kind])]
    pool = [params for params in pool if in_vocabulary(params, vocab) and params.get("eos_token_id", 0) < vocab]
    pool = [params for params in pool if "extra_args" not in params]
    chosen = [pool[row % len(pool)] for row in range(count)]
    prompt, output = ([token for token in tokens if token < vocab] for tokens in (PROMPT, OUTPUT))
    return [Request(str(row), params, list(prompt), list(output)) for row, params in enumerate(chosen)]


def logits(rows: int, vocab: int) -> torch.Tensor:
    """Dense rows, one with ties, one with the ends of float32 and masked tokens."""
    made = torch.randn(rows, vocab, generator=torch.Generator().manual_seed(vocab)) * 3
    made[1::3] = made[1::3].round()
    ends = torch.tensor([LARGEST, -LARGEST, 1e-45, -1e-45, -torch.inf, 0.0, -0.0])
    made[2::3, : min(vocab, 7)] = ends[: min(vocab, 7)]
    return made


def wrong_rows(kind: str, batch: Sequence[Request], rows: torch.Tensor) -> list[tuple[Any, list[int]]]:
    """The params, and the wrong tokens, of the rows that are not what the reference says."""
    subject = KINDS[kind].prepare(load_subject(f"logitsproc.optimized:{OPTIMIZED[kind]}"))
    binding = subject.binding
    added = [
        (row, binding.make_params(dict(request.params)), request.prompt, request.output)
        for row, request in enumerate(batch)
    ]
    processor = subject.build(rows.shape[1])
    processor.update_state(binding.batch_update(len(batch), [], added, []))
    got = processor.apply(rows.clone()).tolist()
    skipped = KINDS[kind].skipped if skips_invariant(list(batch)) else None
    function = skipped or KINDS[kind].row
    wrong = []
    for request, before, after in zip(batch, rows.tolist(), got, strict=True):
        expectation = function(request.params, request.prompt, request.output, before)
        if tokens := refused(expectation, after):
            wrong.append((request.params, tokens[:8]))
    return wrong


@pytest.mark.parametrize("kind", ALONE)
@pytest.mark.parametrize(("rows", "vocab"), [(1, 1), (24, 1), (256, 64), (1, 128256), (8, 128256)])
def test_every_row_is_what_the_reference_says(kind: str, rows: int, vocab: int) -> None:
    assert wrong_rows(kind, requests(kind, rows, vocab), logits(rows, vocab)) == []


@pytest.mark.parametrize("kind", ALONE)
def test_no_rows_at_all(kind: str) -> None:
    assert wrong_rows(kind, [], torch.empty(0, 8)) == []
