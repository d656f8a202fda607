"""What the device keeps of each request, and the mail that brings it there: one `int32` tensor each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logitsproc.optimized.bad_words import completing_tokens
from logitsproc.optimized.gpu import kernels
from logitsproc.optimized.min_tokens import is_too_short
from logitsproc.optimized.packing import TokenIds
from logitsproc.optimized.records import TOP_K, Record
from logitsproc.optimized.seen import Seen

Words = npt.NDArray[np.int32]
WORD: int = kernels.GROUP.value
"""Bits in a word, and tokens in a group."""
ROOM = 32
"""Of a list of so many tokens a slot has room for at first, and for a multiple of it later."""


class Layout(NamedTuple):
    """Where what stands in a slot, in words: a record; the biased tokens, their number first, and the biases; the
    banned tokens, their number first; a bit for each allowed token; a bit for each token that may have been seen, and
    of each of those what it counts. size: of the whole slot."""

    vocab: int
    biases: int
    bans: int
    biased_at: int
    values_at: int
    banned_at: int
    allowed_at: int
    seen_at: int
    counts_at: int
    size: int


def layout(vocab: int, biases: int, bans: int) -> Layout:
    """A slot for this vocabulary, with room for so many biased and banned tokens; all parts stand at multiples of
    ROOM."""
    parts = (kernels.RECORD.value, biases + 1, biases, bans + 1, words(vocab), words(vocab), vocab)
    starts = np.cumsum([roomy(part) for part in parts]).tolist()
    return Layout(vocab, biases, bans, *starts)


def words(vocab: int) -> int:
    """So many words have a bit for each token."""
    return -(-vocab // WORD)


def roomy(length: int) -> int:
    """The next multiple of ROOM.

    >>> [roomy(length) for length in (0, 1, 32, 33)]
    [0, 32, 32, 64]
    """
    return -(-length // ROOM) * ROOM


class Letter(NamedTuple):
    """What is new in one slot. copies: (place in the slot, what to write there, or how many zeros). counts: [tokens,
    2], a token and what it counts."""

    copies: Sequence[tuple[int, Words | int]]
    counts: Words


NO_COUNTS: Words = np.empty((0, 2), np.int32)


def mail(slots: Words, letters: dict[int, Letter]) -> Words:
    """The words that `update` reads. slots: the slot of each row, -1 for a row to leave alone. letters: row -> letter,
    in ascending order of rows."""
    rows = len(slots)
    copies_of, counts_of = np.zeros((2, rows + 1), np.int32)
    for row, letter in letters.items():
        copies_of[row + 1] = 3 * len(letter.copies)
        counts_of[row + 1] = letter.counts.size
    copies_at = 3 * rows + 2 + np.cumsum(copies_of, dtype=np.int32)
    counts_at = copies_at[-1] + np.cumsum(counts_of, dtype=np.int32)
    copies, payload, place = [], [], int(counts_at[-1])
    for letter in letters.values():
        for there, what in letter.copies:
            if isinstance(what, int):
                copies += [there, -1, what]
            else:
                copies += [there, place, len(what)]
                payload.append(what)
                place += len(what)
    counts = [letter.counts.ravel() for letter in letters.values()]
    return np.concatenate([slots, copies_at, counts_at, np.array(copies, np.int32), *counts, *payload])


def arrival(asked: Record, banned: TokenIds, at: Layout) -> Letter:
    """UPD-ADD: all that a slot holds of a request. banned: its tokens that are banned now.

    Raises IndexError for a token beyond the vocabulary.
    """
    copies: list[tuple[int, Words | int]] = [(0, record_of(asked, at.vocab))]
    if asked.bias is not None:
        copies.append((at.biased_at, counted(within(asked.bias.tokens, at.vocab))))
        copies.append((at.values_at, asked.bias.values.view(np.int32)))
    if asked.words is not None or asked.minimum is not None:
        copies.append(bans(banned, at))
    if asked.allowed is not None:
        copies.append((at.allowed_at, bits(within(asked.allowed.numpy(), at.vocab), at.vocab)))
    if asked.penalties is None:
        return Letter(copies, NO_COUNTS)
    copies.append((at.seen_at, words(at.vocab)))
    asked.penalties.seen.follow()
    return Letter(copies, counts_of(asked.penalties.seen, asked.penalties.seen.tokens, at.vocab))


def record_of(asked: Record, vocab: int) -> Words:
    """TOPK-NEUTRAL: the record, [RECORD] int32, floats by their bits; a k for the whole vocabulary asks for nothing."""
    record = np.zeros(kernels.RECORD.value, np.int32)
    floats = record.view(np.float32)
    record[kernels.FLAGS.value] = asked.flags
    if asked.temperature is not None:
        floats[kernels.TEMPERATURE.value] = asked.temperature
    if asked.log_share is not None:
        floats[kernels.LOG_SHARE.value] = asked.log_share
    if asked.penalties is not None:
        floats[kernels.REPETITION.value] = asked.penalties.repetition
        floats[kernels.FREQUENCY.value] = asked.penalties.frequency
        floats[kernels.PRESENCE.value] = asked.penalties.presence
    if asked.k is not None:
        record[kernels.K.value] = asked.k
        if asked.k >= vocab:
            record[kernels.FLAGS.value] &= ~TOP_K
    if asked.p is not None:
        floats[kernels.P.value] = asked.p
    return record


def banned_now(asked: Record) -> list[int]:
    """BAD-COMPLETE, MINTOK-BLOCK, PROC-LIVE-OUTPUTS: the tokens that are banned with the output as it is now."""
    tokens = [] if asked.words is None else completing_tokens(asked.words)
    if asked.minimum is not None and is_too_short(asked.minimum):
        tokens = tokens + asked.minimum.stops.tolist()
    return tokens


def bans(banned: TokenIds, at: Layout) -> tuple[int, Words]:
    """The copy that bans these tokens and no others. Raises IndexError for a token beyond the vocabulary."""
    return at.banned_at, counted(within(banned, at.vocab))


def counts_of(seen: Seen, tokens: Iterable[int], vocab: int) -> Words:
    """PROC-PLACEHOLDER, REP-ONCE, FREQ-OUTPUTS: (token, count) of these tokens, as far as they are in the vocabulary:
    twice the occurrences, and 1 more for a token of the prompt. [tokens, 2]."""
    named = [token for token in tokens if 0 <= token < vocab]
    places = [seen.places.get(token) for token in named]
    counts = [0 if at is None else 2 * int(seen.counts[at]) + (at < seen.prompted) for at in places]
    return np.array([named, counts], np.int32).T


def within(tokens: TokenIds, vocab: int) -> TokenIds:
    """The tokens; raises IndexError when one is beyond the vocabulary."""
    if len(tokens) and tokens.max() >= vocab:
        raise IndexError(f"token {tokens.max()} is beyond the vocabulary of {vocab} tokens")
    return tokens


def counted(tokens: TokenIds) -> Words:
    """The tokens, their number first."""
    return np.concatenate([[len(tokens)], tokens]).astype(np.int32)


def bits(tokens: TokenIds, vocab: int) -> Words:
    """A word for each group of tokens, with the bits of these set."""
    named = np.zeros(words(vocab) * WORD, np.uint8)
    named[tokens] = 1
    return np.packbits(named, bitorder="little").view(np.int32)
