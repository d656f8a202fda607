"""The largest tokens of many rows, found without a sort, and rows of which little is left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from logitsproc.optimized.packing import MASKED, FloatValues, TokenIds

MASKED_BITS = int(np.float32(MASKED).view(np.int32))
LOWEST = float(np.finfo(np.float32).min)
BLOCK = 128
"""Of so many tokens that stand next to each other one maximum is taken. Powers of 2 from 32 on are quick."""
MOST = 1024
"""A row of which more tokens are wanted is better looked at as a whole."""
TIED = 256
"""So many candidates a row may have at least, when ties bring more than are wanted."""


class Candidates(NamedTuple):
    """The largest tokens of several rows, all ties of the least of them included.

    values: [rows, width] float32, descending, -inf after the last. tokens: [rows, width] int64, their ids, 0 after the
    last. rest: [rows, 1] float32, which no other token of the row exceeds, and NaN for a row that has no candidates
    because it holds NaN, because too many are wanted, or because too many are tied.
    """

    values: torch.Tensor
    tokens: torch.Tensor
    rest: torch.Tensor


class Reaching(NamedTuple):
    """Tokens that reach the bound of their row, in ascending order of rows: all of equal length.

    places: which of the rows, int64. tokens: ids, int64. values: float32.
    """

    places: TokenIds
    tokens: TokenIds
    values: FloatValues


def largest(logits: torch.Tensor, rows: TokenIds, wanted: TokenIds, size: int = BLOCK) -> Candidates:
    """TOPK-MASK, TOPK-TIES, TOPP-PREFIX: at least the `wanted` largest tokens of each row, or all that are not -inf
    where there are fewer.

    Each of the `wanted` blocks with the largest maxima holds a token that reaches the least of these maxima, so at
    least `wanted` tokens reach it. A token that reaches it stands in a block whose maximum reaches it too, so that to
    look into those blocks finds every such token, and all others are smaller.

    logits: [all rows, vocab] float32 on the CPU, of any strides, not changed; read once, and a few blocks once more.
    rows: [rows] int64, ascending, at least one. wanted: [rows] int64, at least 1 each. size: tokens in a block, a power
    of 2, made smaller where there were not twice as many blocks as are wanted.
    """
    most = int(wanted[wanted <= MOST].max(initial=1))
    limit = max(TIED, 4 * most)
    size = min(size, 1 << max(logits.shape[1] // (2 * most), 1).bit_length() - 1)
    maxima = block_maxima(logits, rows, size)
    bounds = lower_bounds(maxima, wanted, limit)
    found = reaching(logits, rows, maxima, bounds, size)
    counts = np.bincount(found.places, minlength=len(rows))
    if counts.max() > limit:
        bounds[counts > limit] = math.nan
        found = part_of(found, (counts <= limit)[found.places])
    return arranged(found, bounds)


def block_maxima(logits: torch.Tensor, rows: TokenIds, size: int) -> FloatValues:
    """The largest logit of each block of each row, NaN where the block has one: [rows, blocks].

    The last block is shorter where the vocabulary ends.
    """
    whole, rest = divmod(logits.shape[1], size)
    maxima = torch.empty(len(rows), whole + bool(rest))
    for there, here in stretches(rows):
        part = logits[there]
        torch.amax(part[:, : whole * size].view(len(part), whole, size), 2, out=maxima[here, :whole])
        if rest:
            torch.amax(part[:, whole * size :], 1, out=maxima[here, whole])
    return maxima.numpy()


def lower_bounds(maxima: FloatValues, wanted: TokenIds, limit: int) -> FloatValues:
    """What at least `wanted` tokens of a row reach, or all that are not -inf: [rows, 1], NaN for a row to leave out.

    limit: a row with more blocks that reach its bound is left out.
    """
    blocks = maxima.shape[1]
    ordered = np.sort(maxima, axis=1)
    nth = np.take_along_axis(ordered, blocks - np.minimum(wanted, blocks)[:, None], axis=1)
    bounds = np.where(wanted[:, None] > blocks, LOWEST, np.maximum(nth, LOWEST)).astype(np.float32)
    bounds[np.isnan(ordered[:, -1]) | (wanted > MOST) | ((ordered >= bounds).sum(axis=1) > limit)] = math.nan
    return bounds


def reaching(logits: torch.Tensor, rows: TokenIds, maxima: FloatValues, bounds: FloatValues, size: int) -> Reaching:
    """Every token that reaches its row's bound, from the blocks whose maximum does.

    The last block, if short, is read as one of full size, and what it shares with its neighbour is left out.
    """
    place, block = np.divmod(np.flatnonzero(maxima >= bounds), maxima.shape[1])
    first = np.minimum(block * size, logits.shape[1] - size)
    windows = np.lib.stride_tricks.sliding_window_view(logits.numpy(), size, axis=1)
    values = windows[rows[place], first]
    hits = np.flatnonzero(values >= bounds[place])
    which, offset = np.divmod(hits, size)
    found = Reaching(place[which], first[which] + offset, values.ravel()[hits])
    own = found.tokens >= block[which] * size
    return found if own.all() else part_of(found, own)


def part_of(found: Reaching, chosen: npt.NDArray[np.bool_]) -> Reaching:
    """The chosen ones."""
    return Reaching(found.places[chosen], found.tokens[chosen], found.values[chosen])


def arranged(found: Reaching, bounds: FloatValues) -> Candidates:
    """The tokens side by side, one row for each bound, each row in descending order."""
    counts = np.bincount(found.places, minlength=len(bounds))
    column = np.arange(len(found.places)) - np.repeat(np.cumsum(counts) - counts, counts)
    values = np.full((len(bounds), max(counts.max(), 1)), MASKED, np.float32)
    tokens = np.zeros(values.shape, np.int64)
    values[found.places, column] = found.values
    tokens[found.places, column] = found.tokens
    ordered, order = torch.from_numpy(values).sort(dim=1, descending=True)
    rest = torch.from_numpy(bounds).nextafter(torch.tensor(MASKED))
    return Candidates(ordered, torch.from_numpy(tokens).gather(1, order), rest)


def keep(logits: torch.Tensor, rows: TokenIds, tokens: torch.Tensor, values: torch.Tensor, kept: torch.Tensor) -> None:
    """TOPK-MASK, TOPP-PREFIX: the rows become -inf, but for the tokens that are kept, which get their values.

    logits: [all rows, vocab] float32, of any strides, changed in place. rows: [rows] int64, in ascending order.
    tokens, values, kept: [rows, width] int64, float32 and bool.
    The bits of -inf are written by a clamp of integers: it reads what it overwrites, which is no slower than fill_, and
    half as fast again where the batch is larger than the caches.
    """
    for there, _ in stretches(rows):
        logits[there].view(torch.int32).clamp_(MASKED_BITS, MASKED_BITS)
    place, column = kept.nonzero(as_tuple=True)
    logits.index_put_((torch.from_numpy(rows)[place], tokens[place, column]), values[place, column])


def mask_below(rows: Iterable[torch.Tensor], edges: torch.Tensor) -> None:
    """MINP-THRESHOLD, TOPK-MASK, TOPK-KEPT-VALUES, TOPP-PREFIX, TOPP-KEPT-VALUES: what is less than its row's edge
    becomes -inf.

    rows: [vocab] float32 each, changed in place. edges: [rows, 1] float32, NaN being larger than every number.
    threshold_ runs at the speed of memory. It replaces what is at or below its threshold, NaN not, so the threshold is
    the float32 next below the edge.
    """
    below = edges.nextafter(torch.full_like(edges, MASKED)).nan_to_num_(nan=math.inf, posinf=math.inf, neginf=MASKED)
    for row, threshold in zip(rows, below.flatten().tolist(), strict=True):
        torch.threshold_(row, threshold, MASKED)


def stretches(rows: TokenIds) -> Iterator[tuple[slice, slice]]:
    """Rows that stand next to each other: where they stand in the batch, and where in `rows`, which is ascending.

    >>> list(stretches(np.array([3, 4, 7])))
    [(slice(3, 5, None), slice(0, 2, None)), (slice(7, 8, None), slice(2, 3, None))]
    """
    starts = [0, *(np.flatnonzero(rows[1:] - rows[:-1] != 1) + 1).tolist()] if len(rows) else []
    for start, end in pairwise([*starts, len(rows)]):
        first = int(rows[start])
        yield slice(first, first + end - start), slice(start, end)
