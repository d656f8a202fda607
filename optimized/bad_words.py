"""Bad words: the token that would complete one is masked."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from logitsproc.optimized.domains import are_words, require
from logitsproc.optimized.packing import MASKED, Index, pack, token_ids
from logitsproc.optimized.processor import Processor


class BadWords(NamedTuple):
    """single: the words of one token. longer: the token before the last -> (all tokens before the last, the last) of
    each word. output: the live list."""

    single: list[int]
    longer: dict[int, list[tuple[list[int], int]]]
    output: list[int]


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


class BadWordsLogitsProcessor(Processor):
    """Masks the tokens that would complete a bad word of the row's request, in place: one indexed write."""

    state_of = staticmethod(bad_words)

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.banned: dict[int, list[int]] = {}
        self.index: Index | None = None
        self.masked = torch.tensor(MASKED, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError when bad_words_token_ids is neither None nor holds words of at least
        one token id."""
        value = params.bad_words_token_ids
        within = value is None or are_words(value)
        require("bad_words_token_ids", value, "None or a list of lists of at least one token id", within)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, the largest token may complete a word."""
        return False

    def edit(self, logits: torch.Tensor, words: dict[int, BadWords]) -> None:
        """BAD-COMPLETE, BAD-OTHERS, PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-SHRINK: -inf for each token that would
        complete a word now.

        logits: [rows, vocab] float32, of any strides, changed in place. words: row -> words. Raises IndexError for a
        token beyond the vocabulary.
        """
        banned = completing(words)
        if not banned:
            return
        if banned != self.banned:
            self.index = pack(banned, [token_ids(tokens) for tokens in banned.values()], self.device)
            self.banned = banned
        logits.index_put_(self.index, self.masked)
