"""Where logits come from: fixed palettes of rows, so that a history is reproduced by two small numbers."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import torch

ROWS = 24
STEP_STRIDE = 7
ROW_STRIDE = 5


class Palette(NamedTuple):
    """`tensor`: float32 [rows, vocab]. `values` and `bits` are the same rows as lists of floats and of int32."""

    tensor: torch.Tensor
    values: list[list[float]]
    bits: list[list[int]]


def dense(chance: random.Random, vocab: int) -> list[float]:
    """Random values, no two alike as a rule."""
    return [round(chance.gauss(0, 3), 3) for _ in range(vocab)]


def ties(chance: random.Random, vocab: int) -> list[float]:
    """A handful of values, so that every row has ties, at its maximum too."""
    return [chance.choice((-1.5, 0.0, 0.25, 1.25, 1.25)) for _ in range(vocab)]


def extremes(chance: random.Random, vocab: int) -> list[float]:
    """The ends of float32, subnormals and both zeros among ordinary values."""
    ends = (3.4028234663852886e38, -3.4028234663852886e38, 1e-45, -1e-45, 0.0, -0.0, 1e30, -88.5, 88.5)
    return [chance.choice(ends) if chance.random() < 0.5 else round(chance.gauss(0, 3), 3) for _ in range(vocab)]


def masked(chance: random.Random, vocab: int) -> list[float]:
    """Rows in which other processors have masked most tokens, or all of them."""
    share = chance.choice((0.3, 0.7, 1.0))
    return [-math.inf if chance.random() < share else round(chance.gauss(0, 3), 3) for _ in range(vocab)]


def crowded(chance: random.Random, vocab: int) -> list[float]:
    """Values a few percent of probability around ln(0.5) and ln(0.1) below the maximum, where thresholds fall."""
    edges = (math.log(0.5), math.log(0.1))
    return [0.0] + [chance.choice(edges) + round(chance.uniform(-0.03, 0.03), 6) for _ in range(vocab - 1)]


def broken(chance: random.Random, vocab: int) -> list[float]:
    """What a broken model emits: NaN or +inf somewhere."""
    row = dense(chance, vocab)
    row[chance.randrange(vocab)] = chance.choice((math.nan, math.inf))
    return row


Recipe = Callable[[random.Random, int], list[float]]
PALETTES: dict[str, tuple[Recipe, ...]] = {
    "dense": (dense,),
    "ties": (ties,),
    "mixed": (dense, ties, extremes, masked, crowded, broken),
}


@functools.lru_cache(maxsize=32)
def palette(name: str, vocab: int, dtype: torch.dtype = torch.float32) -> Palette:
    """The rows of a palette for a vocabulary: always the same ones, rounded to the dtype."""
    chance = random.Random(f"{name} {vocab}")
    recipes = PALETTES[name]
    return to_palette([recipes[row % len(recipes)](chance, vocab) for row in range(ROWS)], dtype)


def to_palette(rows: list[list[float]], dtype: torch.dtype = torch.float32) -> Palette:
    """Rows as a palette of their own, rounded to the dtype."""
    with torch.inference_mode(False):
        tensor = torch.tensor(rows, dtype=torch.float32).to(dtype).float()
    return Palette(tensor, tensor.tolist(), tensor.view(torch.int32).tolist())


def picks(offset: int, step: int, rows: int) -> list[int]:
    """Which palette rows the batch is shown at a step."""
    return [(offset + STEP_STRIDE * step + ROW_STRIDE * row) % ROWS for row in range(rows)]
