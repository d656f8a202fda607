"""Repetition, frequency and presence penalties: the logits of tokens that are there already are made less likely.

All three read the same counts, so they are one gather, one formula and one scatter on the seen tokens of the batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from logitsproc.optimized.packing import TokenIds, float_values, token_ids
from logitsproc.optimized.seen import Seen


@dataclass(eq=False)
class Penalties:
    """What one request asks for, 1, 0 and 0 where it asks for nothing, and the tokens that it is asked of: a prompt and
    the live output."""

    repetition: float
    frequency: float
    presence: float
    prompt: Sequence[int]
    output: list[int]

    @cached_property
    def seen(self) -> Seen:
        """How often each token is there; made where it is first read, which is not when the request comes."""
        return Seen(self.prompt, self.output)


class Entries(NamedTuple):
    """The seen tokens of several rows, one entry each: where it stands, its occurrences, its request's penalties.

    rows, tokens: int64, no pair twice. The others: float32. All of equal length, on the device of the logits.
    """

    rows: torch.Tensor
    tokens: torch.Tensor
    counts: torch.Tensor
    repetition: torch.Tensor
    frequency: torch.Tensor
    presence: torch.Tensor


def penalties(params: Any, prompt: list[int] | None, output: list[int]) -> Penalties | None:
    """REP-NEUTRAL, FREQ-NEUTRAL, PRES-NEUTRAL: the request's three penalties, or None when all are neutral."""
    return combined(params.repetition_penalty, params.frequency_penalty, params.presence_penalty, prompt, output)


def combined(
    repetition: float, frequency: float, presence: float, prompt: list[int] | None, output: list[int]
) -> Penalties | None:
    """REP-SEEN, FREQ-OUTPUTS, PRES-OUTPUTS: the penalties with what they are about, or None when all are neutral.

    Only repetition is about the prompt. A neutral -0.0 becomes 0.0, which leaves every logit its bits.
    """
    if repetition == 1.0 and not frequency and not presence:
        return None
    prompted = () if repetition == 1.0 or prompt is None else prompt
    return Penalties(repetition, frequency or 0.0, presence or 0.0, prompted, output)


def penalise(logits: torch.Tensor, users: dict[int, Penalties]) -> None:
    """REP-OTHERS, FREQ-OTHERS, PRES-OTHERS: repetition, then frequency, then presence, each rounded to float32.

    logits: [rows, vocab] float32, of any strides, changed in place. users: row -> penalties, not empty.
    """
    penalise_rows(logits, token_ids(users), users.values())


def penalise_rows(logits: torch.Tensor, rows: TokenIds, asked: Collection[Penalties]) -> None:
    """REP-OTHERS, FREQ-OTHERS, PRES-OTHERS: repetition, then frequency, then presence, each rounded to float32.

    logits: [rows, vocab] float32, of any strides, changed in place. rows: where each of these requests stands.
    """
    entries = seen_entries(rows, asked, logits.shape[1], logits.device)
    index = entries.rows, entries.tokens
    logits.index_put_(index, lowered(scaled(logits[index], entries), entries))


def scaled(values: torch.Tensor, entries: Entries) -> torch.Tensor:
    """REP-SCALE, REP-ONCE, REP-NONFINITE, NUM-SCALE: divided where above 0, multiplied elsewhere, NaN included."""
    return torch.where(values > 0, values / entries.repetition, values * entries.repetition)


def lowered(values: torch.Tensor, entries: Entries) -> torch.Tensor:
    """FREQ-SUBTRACT, FREQ-NONFINITE, NUM-PRODUCT, PRES-SUBTRACT, PRES-ONCE, PRES-NONFINITE, NUM-EDIT:
    less frequency times the occurrences, less presence; what only the prompt has stays.
    """
    less = values - entries.frequency * entries.counts - entries.presence
    return torch.where(entries.counts > 0, less, values)


def seen_entries(rows: TokenIds, asked: Collection[Penalties], vocab: int, device: torch.device) -> Entries:
    """PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER: an entry for every token that is seen now and is in the vocabulary.

    rows: where each of these requests stands, one at least.
    """
    seen = [each.seen for each in asked]
    for each in seen:
        each.follow()
    sizes = [len(each.tokens) for each in seen]
    tokens = np.frombuffer(joined(each.tokens for each in seen), np.int64)
    columns: list[npt.NDArray[Any]] = [
        np.repeat(rows, sizes),
        tokens,
        np.frombuffer(joined(each.counts for each in seen), np.float32),
        np.repeat(float_values([each.repetition for each in asked]), sizes),
        np.repeat(float_values([each.frequency for each in asked]), sizes),
        np.repeat(float_values([each.presence for each in asked]), sizes),
    ]
    inside = (tokens >= 0) & (tokens < vocab)
    if not inside.all():
        columns = [column[inside] for column in columns]
    return Entries(*(torch.from_numpy(column).to(device) for column in columns))


def joined(arrays: Iterable[array[Any]]) -> bytearray:
    """The bytes of all arrays, one after the other."""
    return bytearray().join(arrays)
