"""What the fast path is measured on: requests, logits and updates, all drawn from seeds."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from random import Random
from time import perf_counter
from typing import Any

import torch

from logitsproc.conformance.bindings import Binding
from logitsproc.conformance.interface import host_config
from logitsproc.optimized import Pipeline
from logitsproc.optimized.pipeline import STAGES
from logitsproc.reference.batch import UNIDIRECTIONAL

ROWS, VOCAB = 256, 128256
FEW_TOKENS = 1000
"""A vocabulary so small that the calls take longer than the logits."""
PROMPT, OUTPUT = 128, 64
"""Tokens of a request."""
LISTED, PEAKS = 2000, 30
HEIGHTS = 20.0, 8.0
"""How far the highest and the lowest peak of a row stand above the rest, whose logits are normally distributed."""
PEAKED, FLAT = "peaked", "flat"
LIGHT, HEAVY = "light", "heavy"
QUARTER = 4
CPU = torch.device("cpu")

Fields = dict[str, Any]
Request = tuple[Any, list[int], list[int]]
"""params, prompt token ids, live output token ids"""
Update = Any
"""A BatchUpdate of the host's."""


def peaks(row: int, vocab: int) -> list[int]:
    """The tokens of a row that stand far above the others."""
    return Random(row).sample(range(vocab), PEAKS)


@lru_cache(maxsize=3)
def logits(rows: int, vocab: int, kind: str) -> torch.Tensor:
    """[rows, vocab] float32: normally distributed, with a few peaks in each row if it is PEAKED."""
    values = torch.randn(rows, vocab, generator=torch.Generator().manual_seed(0))
    if kind == PEAKED:
        for row in range(rows):
            values[row, peaks(row, vocab)] += torch.linspace(*HEIGHTS, PEAKS)
    return values


def listed(chance: Random, row: int, vocab: int) -> list[int]:
    """A list of allowed tokens with half of the row's peaks."""
    others = chance.sample(range(vocab), min(LISTED, vocab // 2))
    return list(dict.fromkeys([*peaks(row, vocab)[: PEAKS // 2], *others]))


def words(chance: Random, vocab: int, output: list[int]) -> list[list[int]]:
    """Bad words of one, two and three tokens; the output stands before the last token of the second."""
    return [chance.sample(range(vocab), 1), [output[-1], chance.randrange(vocab)], chance.sample(range(vocab), 3)]


FIELDS: dict[str, Callable[[Random, int, int, list[int]], Fields]] = {
    "allowed_token_ids": lambda chance, row, vocab, output: {"allowed_token_ids": listed(chance, row, vocab)},
    "bad_words": lambda chance, row, vocab, output: {"bad_words_token_ids": words(chance, vocab, output)},
    "min_tokens": lambda chance, row, vocab, output: {
        "min_tokens": 2 * OUTPUT,
        "stop_token_ids": chance.sample(range(vocab), 2),
    },
    "logit_bias": lambda chance, row, vocab, output: {"logit_bias": dict.fromkeys(chance.sample(range(vocab), 8), 1.5)},
    "repetition_penalty": lambda chance, row, vocab, output: {"repetition_penalty": 1.1},
    "frequency_penalty": lambda chance, row, vocab, output: {"frequency_penalty": 0.2},
    "presence_penalty": lambda chance, row, vocab, output: {"presence_penalty": 0.1},
    "temperature": lambda chance, row, vocab, output: {"temperature": 0.8},
    "min_p": lambda chance, row, vocab, output: {"min_p": 0.02},
    "top_k": lambda chance, row, vocab, output: {"top_k": 40},
    "top_p": lambda chance, row, vocab, output: {"top_p": 0.95},
}
"""What a request asks of each stage: (chance, row, vocab, output) -> fields."""
ALL = tuple(FIELDS)
NINE = ALL[2:]
BUT_THE_LIST = ALL[1:]
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
PROCESSORS = dict(zip(ALL, STAGES, strict=True))
"""Stage -> its processor."""


def requests(binding: Binding, rows: int, vocab: int, stages: Iterable[str], every: int = 1) -> list[Request]:
    """One request a row; every so many of them ask for these stages, the others for nothing."""
    chance = Random(0)
    drawn = []
    for row in range(rows):
        prompt = [chance.randrange(vocab) for _ in range(PROMPT)]
        output = chance.choices(peaks(row, vocab), k=OUTPUT // 2)
        output += [chance.randrange(vocab) for _ in range(OUTPUT - len(output))]
        asked = [FIELDS[stage](chance, row, vocab, output) for stage in stages] if row % every == 0 else []
        drawn.append(
            (binding.make_params({name: value for each in asked for name, value in each.items()}), prompt, output)
        )
    return drawn


def filling(binding: Binding, batch: Sequence[Request]) -> Update:
    """The update that adds all requests to an empty batch."""
    added = [(row, *request) for row, request in enumerate(batch)]
    return binding.batch_update(batch_size=len(batch), removed=[], added=added, moved=[])


def churn(binding: Binding, batch: Sequence[Request], added: int, gone: int) -> tuple[Update, Update]:
    """A step in which so many requests replace others and so many leave, and the step that fills the batch again.

    As an engine does it, the last rows move one way to where requests have left. added + 2 * gone is at most the rows.
    """
    rows, holes = len(batch), range(added, added + gone)
    step = binding.batch_update(
        batch_size=rows - gone,
        removed=list(holes),
        added=[(row, *batch[row]) for row in range(added)],
        moved=[(rows - 1 - place, hole, binding.directions[UNIDIRECTIONAL]) for place, hole in enumerate(holes)],
    )
    back = [(row, *batch[row]) for row in range(rows - gone, rows)]
    return step, binding.batch_update(batch_size=rows, removed=[], added=back, moved=[])


def pipeline(vocab: int, rows: int) -> Pipeline:
    """A pipeline without custom processors, for an empty batch."""
    return Pipeline(host_config(vocab, rows), CPU, False, custom=())


def sizes(rows: int) -> dict[str, tuple[int, int]]:
    """How many requests come, and how many leave, in a step of little churn and in one of much."""
    return {LIGHT: (1, 1), HEAVY: (rows // 2, rows // 4)}


def faults(function: Callable[[], object]) -> int:
    """How many pages one call has to be given: large tensors need new ones where malloc has returned those it had."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    function()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start
