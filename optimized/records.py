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
    """What one request asks of each stage, None where that is nothing; a greedy one asks nothing of the last four."""

    greedy: bool
    allowed: torch.Tensor | None
    words: BadWords | None
    minimum: Minimum | None
    bias: Bias | None
    penalties: Penalties | None
    temperature: float | None
    log_share: float | None
    k: int | None
    p: float | None


class SlotBiases(NamedTuple):
    """The biased tokens of all requests, of equal length: the slot of each, its id, and its bias."""

    slots: TokenIds
    tokens: TokenIds
    values: FloatValues


def record(params: Any, prompt: list[int] | None, output: list[int]) -> Record | None:
    """TEMP-GREEDY, PIPE-GREEDY: what the request asks for, or None for a random one that asks for nothing."""
    greedy = params.temperature < GREEDY_BELOW
    asked = Record(
        greedy,
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
    return asked if greedy or is_user(asked) else None


def is_user(asked: Record) -> bool:
    """Whether something is asked of a stage."""
    return any(stage is not None for stage in asked[1:])


def flags_of(asked: Record) -> int:
    """The bits of what is asked for."""
    is_few = asked.allowed is not None and 0 < asked.allowed.numel() <= LISTED
    bits = (asked.greedy, asked.allowed is not None, is_few, *(stage is not None for stage in asked[2:]))
    return sum(1 << bit for bit, is_set in enumerate(bits) if is_set)


def is_cut(asked: Record) -> bool:
    """Whether min-p, top-k or top-p may mask a token."""
    return asked.log_share is not None or asked.k is not None or asked.p is not None


class Columns(dict[int, Record]):
    """slot -> record, and beside them, by slot too, what is packed for whole batches: numbers, neutral where a request
    does not ask for them (temperature 1, share -inf, k 0, p inf), and biases.

    A record is written once, when its request comes, so that the work of an update is what it changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.packed: Packed = np.zeros(ROOM, COLUMNS)
        self.biased = SlotBiases(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        self.restless: set[int] = set()

    def __setitem__(self, slot: int, asked: Record) -> None:
        """UPD-ADD: what a slot's request asks for."""
        self.make_room(slot + 1)
        super().__setitem__(slot, asked)
        share = MASKED if asked.log_share is None else asked.log_share
        heat = 1.0 if asked.temperature is None else asked.temperature
        self.packed[slot] = flags_of(asked), asked.k or 0, math.inf if asked.p is None else asked.p, heat, share
        if asked.bias is not None:
            self.restless.add(slot)

    def pop(self, slot: int, default: Any = None) -> Any:
        """PROC-STATE-DEPARTED: nothing is asked for in this slot."""
        gone = super().pop(slot, default)
        if gone is not default:
            self.packed[slot] = 0
            if gone.bias is not None:
                self.restless.add(slot)
        return gone

    def make_room(self, slots: int) -> None:
        """Room for so many slots."""
        while len(self.packed) < slots:
            self.packed = np.concatenate([self.packed, np.zeros_like(self.packed)])

    def of(self, slots: list[int]) -> Packed:
        """The columns of each row, without a flag where there is no request. slots: row -> slot."""
        self.make_room(len(slots))
        return self.packed[slots]

    def biases(self) -> SlotBiases:
        """Every bias that is asked for; only what has changed is packed anew."""
        if self.restless:
            changed = np.zeros(len(self.packed), np.bool_)
            changed[list(self.restless)] = True
            stays = ~changed[self.biased.slots]
            asked = {slot: self[slot].bias for slot in self.restless if slot in self}
            new = {slot: each for slot, each in asked.items() if each is not None}
            old = self.biased
            slots = [np.full(len(each.tokens), slot) for slot, each in new.items()]
            self.biased = SlotBiases(
                np.concatenate([old.slots[stays], *slots]),
                np.concatenate([old.tokens[stays], *(each.tokens for each in new.values())]),
                np.concatenate([old.values[stays], *(each.values for each in new.values())]),
            )
            self.restless.clear()
        return self.biased
