"""Bad words: the token that would complete one is masked."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from logitsproc.optimized.packing import Index, pack, token_ids
from logitsproc.optimized.table import BatchUpdate, Users


class BadWords(NamedTuple):
    """single: the words of one token. longer: the token before the last -> (all tokens before the last, the last) of
    each word. output: the live list."""

    single: list[int]
    longer: dict[int, list[tuple[list[int], int]]]
    output: list[int]


class BadWordsLogitsProcessor:
    """Masks the tokens that would complete a bad word of the row's request, in place: one indexed write."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.device = device
        self.users = Users(bad_words)
        self.words: dict[int, BadWords] = {}
        self.banned: dict[int, list[int]] = {}
        self.index: Index | None = None
        self.masked = torch.tensor(-math.inf, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: raises ValueError for a word without tokens or a negative token id."""
        for word in params.bad_words_token_ids or ():
            if not word:
                raise ValueError("a word of bad_words_token_ids must have a token")
            if min(word) < 0:
                raise ValueError(f"token {min(word)} of a bad word: token ids are not negative")

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may complete a word."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED: the batch as it is now; None says that it is as it was.

        Outputs are not read here: they may still change before `apply`.
        """
        if batch_update is None:
            return
        self.users.follow(batch_update)
        self.words = self.users.by_row()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """BAD-COMPLETE, BAD-OTHERS, PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-SHRINK, PROC-IDLE, PROC-UNTOUCHED,
        PROC-SHAPE: the input, with -inf for each token that would complete a word now.

        logits: [rows, vocab] float32, of any strides. Raises IndexError for a token beyond the vocabulary.
        """
        banned = completing(self.words)
        if not banned:
            return logits
        if banned != self.banned:
            self.index = pack(banned, [token_ids(tokens) for tokens in banned.values()], self.device)
            self.banned = banned
        return logits.index_put_(self.index, self.masked)


def bad_words(params: Any, prompt: list[int] | None, output: list[int]) -> BadWords | None:
    """BAD-NEUTRAL, BAD-OUTPUTS: the request's words beside its output, or None without a word."""
    if not params.bad_words_token_ids:
        return None
    single: list[int] = []
    longer: dict[int, list[tuple[list[int], int]]] = {}
    for *before, last in params.bad_words_token_ids:
        if before:
            longer.setdefault(before[-1], []).append((before, last))
        else:
            single.append(last)
    return BadWords(single, longer, output)


def completing(words: dict[int, BadWords]) -> dict[int, list[int]]:
    """BAD-COMPLETE, BAD-SINGLE: row -> the tokens that would complete a word now, for each row that has any."""
    tokens = {row: completing_tokens(each) for row, each in words.items()}
    return {row: each for row, each in tokens.items() if each}


def completing_tokens(words: BadWords) -> list[int]:
    """BAD-COMPLETE, BAD-SINGLE, BAD-OUTPUTS: the last token of each word whose tokens before it end the output.

    >>> completing_tokens(BadWords([4], {1: [([1], 2), ([2, 1], 3), ([3, 1], 5)]}, [2, 1]))
    [4, 2, 3]
    """
    output = words.output
    longer = words.longer.get(output[-1], ()) if output else ()
    return words.single + [last for before, last in longer if output[-len(before) :] == before]
