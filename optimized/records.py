"""What a request asks of every stage; and of the requests of a batch, by slot, what all of it is packed from."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from logitsproc.optimized.allowed_token_ids import allowed_tokens
from logitsproc.optimized.bad_words import BadWords, bad_words
from logitsproc.optimized.logit_bias import Bias, bias
from logitsproc.optimized.min_p import log_share
from logitsproc.optimized.min_tokens import Minimum, minimum
from logitsproc.optimized.packing import MASKED, FloatValues, TokenIds
from logitsproc.optimized.penalties import Penalties, penalties
from logitsproc.optimized.temperature import GREEDY_BELOW, temperature
from logitsproc.optimized.top_k import top_k
from logitsproc.optimized.top_p import top_p

GREEDY, ALLOWED, FEW, WORDS, MINIMUM, BIAS, PENALTIES, DIVIDED, MIN_P, TOP_K, TOP_P = (1 << bit for bit in range(11))
"""What is asked for. FEW: the list of allowed tokens is not empty and short enough to be packed with others."""
CUT = MIN_P | TOP_K | TOP_P
LISTED = 4096
"""Longer lists of allowed tokens are not packed side by side."""
ROOM = 64
"""So many slots there is room for at first."""
COLUMNS = np.dtype([("flags", "i8"), ("k", "i8"), ("p", "f8"), ("temperature", "f4"), ("log_share", "f4")])
Packed = npt.NDArray[np.void]
"""[requests] of COLUMNS."""
Flags = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Record(NamedTuple):
    """What one request asks of each stage, None where that is nothing; a greedy one asks nothing of the last four.

    flags: the bits of what is asked for.
    """

    flags: int
    allowed: torch.Tensor | None
    words: BadWords | None
    minimum: Minimum | None
    bias: Bias | None
    penalties: Penalties | None
    temperature: float | None
    log_share: float | None
    k: int | None
    p: float | None


STAGE_BITS = ALLOWED, WORDS, MINIMUM, BIAS, PENALTIES, DIVIDED, MIN_P, TOP_K, TOP_P
"""Of the fields of a record, in their order."""


class SlotBiases(NamedTuple):
    """The biased tokens of all requests, of equal length: the slot of each, its id, and its bias."""

    slots: TokenIds
    tokens: TokenIds
    values: FloatValues


def record(params: Any, prompt: list[int] | None, output: list[int]) -> Record | None:
    """TEMP-GREEDY, PIPE-GREEDY: what the request asks for, or None for a random one that asks for nothing."""
    greedy = params.temperature < GREEDY_BELOW
    asked = (
        allowed_tokens(params, prompt, output),
        bad_words(params, prompt, output),
        minimum(params, prompt, output),
        bias(params, prompt, output),
        penalties(params, prompt, output),
        temperature(params, prompt, output),
        None if greedy else log_share(params, prompt, output),
        None if greedy else top_k(params, prompt, output),
        None if greedy else top_p(params, prompt, output),
    )
    flags = flags_of(asked) | (GREEDY if greedy else 0)
    return Record(flags, *asked) if flags else None


def flags_of(asked: tuple[Any, ...]) -> int:
    """The bits of what is asked for. asked: the fields of a record, without its flags."""
    flags = 0
    for bit, stage in zip(STAGE_BITS, asked, strict=True):
        if stage is not None:
            flags |= bit
    return flags | FEW if flags & ALLOWED and 0 < asked[0].numel() <= LISTED else flags


def packed(asked: Record | None) -> tuple[int, int, float, float, float]:
    """The columns of a record, neutral where a request does not ask for them; all 0 where there is none."""
    if asked is None:
        return 0, 0, 0.0, 0.0, 0.0
    heat = 1.0 if asked.temperature is None else asked.temperature
    share = MASKED if asked.log_share is None else asked.log_share
    return asked.flags, asked.k or 0, math.inf if asked.p is None else asked.p, heat, share


class Columns(dict[int, Record]):
    """slot -> record, and what whole batches are packed from, by slot too: numbers, neutral where a request does not
    ask for them (temperature 1, share -inf, k 0, p inf), biases, and what is read anew at every `apply`.

    A slot is written when its request comes and when it is gone, and has no other in between. What is packed in arrays
    waits for `pack`, so that the work is what has changed.

    words, minima, penalties: slot -> what is asked. numbers: [slots] of COLUMNS, without a flag where no request is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numbers: Packed = np.zeros(ROOM, COLUMNS)
        self.biases = SlotBiases(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        self.words: dict[int, BadWords] = {}
        self.minima: dict[int, Minimum] = {}
        self.penalties: dict[int, Penalties] = {}
        self.changed: set[int] = set()

    def __setitem__(self, slot: int, asked: Record) -> None:
        """UPD-ADD: what a slot's request asks for."""
        super().__setitem__(slot, asked)
        self.changed.add(slot)
        if asked.words is not None:
            self.words[slot] = asked.words
        if asked.minimum is not None:
            self.minima[slot] = asked.minimum
        if asked.penalties is not None:
            self.penalties[slot] = asked.penalties

    def pop(self, slot: int, default: Any = None) -> Any:
        """PROC-STATE-DEPARTED: nothing is asked for in this slot."""
        self.changed.add(slot)
        for states in (self.words, self.minima, self.penalties):
            states.pop(slot, None)
        return super().pop(slot, default)

    def pack(self, slots: int) -> None:
        """Brings the numbers and the biases up to the records. slots: how many the batch has."""
        while len(self.numbers) < slots:
            self.numbers = np.concatenate([self.numbers, np.zeros_like(self.numbers)])
        if not self.changed:
            return
        changed = {slot: self.get(slot) for slot in self.changed}
        self.numbers[list(changed)] = np.array(list(map(packed, changed.values())), COLUMNS)
        self.pack_biases({slot: asked.bias for slot, asked in changed.items() if asked and asked.bias})
        self.changed.clear()

    def pack_biases(self, new: dict[int, Bias]) -> None:
        """Of the changed slots the old biases are dropped and these put there."""
        old = self.biases
        if not new and not len(old.slots):
            return
        stays = np.ones(len(self.numbers), np.bool_)
        stays[list(self.changed)] = False
        kept = stays[old.slots]
        slots = [np.full(len(each.tokens), slot) for slot, each in new.items()]
        self.biases = SlotBiases(
            np.concatenate([old.slots[kept], *slots]),
            np.concatenate([old.tokens[kept], *(each.tokens for each in new.values())]),
            np.concatenate([old.values[kept], *(each.values for each in new.values())]),
        )
