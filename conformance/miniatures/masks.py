"""Processors that follow the batch rightly and mask wrongly: allowed ids, bad words, min-tokens."""

from __future__ import annotations

import math
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import AllowedTokenIds, BadWords, MinTokens


class MasksTheAllowed(AllowedTokenIds):
    """ALLOW-MASK: the mask is inverted."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[params.allowed_token_ids] = -math.inf


class OneAtMost(AllowedTokenIds):
    """ALLOW-KEPT: takes an id that is listed twice for a mistake, and keeps those that are listed once."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        listed = [token for token in params.allowed_token_ids if params.allowed_token_ids.count(token) == 1]
        logits[[token for token in range(len(logits)) if token not in listed]] = -math.inf


class AddsAMask(AllowedTokenIds):
    """ALLOW-FILL: adds -inf to what is not listed, so that +inf and NaN come out as NaN."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[[token for token in range(len(logits)) if token not in params.allowed_token_ids]] += -math.inf


class NoListAllowsNothing(AllowedTokenIds):
    """ALLOW-NEUTRAL: takes no list for one of token 0."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[[token for token in range(len(logits)) if token not in (params.allowed_token_ids or [0])]] = -math.inf


class MatchesEarly(BadWords):
    """BAD-COMPLETE: does not compare the first token of a word, so that the others complete it."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for *before, last in params.bad_words_token_ids:
            if len(output) >= len(before) and output[len(output) - len(before[1:]) :] == before[1:]:
                logits[last] = -math.inf


class FindsAnywhere(BadWords):
    """BAD-COMPLETE: looks for the beginning of a word anywhere in the outputs, not only where they end."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for *before, last in params.bad_words_token_ids:
            starts = range(len(output) - len(before) + 1)
            if any(output[start : start + len(before)] == before for start in starts):
                logits[last] = -math.inf


class NeedsABeginning(BadWords):
    """BAD-SINGLE: a word of one token has nothing before its last, which is taken for no match."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for *before, last in params.bad_words_token_ids:
            if before and output[-len(before) :] == before:
                logits[last] = -math.inf


class MatchesThePrompt(BadWords):
    """BAD-OUTPUTS: a word may begin in the prompt."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, [*(prompt or ()), *output])


class BansTheWholeWord(BadWords):
    """BAD-OTHERS: masks every token of a word that would be complete, not only its last."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for word in params.bad_words_token_ids:
            if output[len(output) - len(word) + 1 :] == word[:-1]:
                logits[word] = -math.inf


class NoWordsAreOne(BadWords):
    """BAD-NEUTRAL: takes an empty list for a ban of token 0."""

    def wants(self, params: Any) -> bool:
        return params.bad_words_token_ids is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if not params.bad_words_token_ids:
            logits[0] = -math.inf


class BlocksTheFirstOnly(MinTokens):
    """MINTOK-BLOCK: blocks one stop token id and lets the others through."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            end = params.all_stop_token_ids - set(params.stop_token_ids)
            logits[[*params.stop_token_ids[:1], *end]] = -math.inf


class ForgetsTheEnd(MinTokens):
    """MINTOK-EOS: blocks stop_token_ids and forgets the end-of-sequence token."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < params.min_tokens:
            logits[params.stop_token_ids] = -math.inf


class OneTooMany(MinTokens):
    """MINTOK-RELEASE: still blocks when the request has exactly min_tokens outputs."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output[1:])


class BlocksANeighbour(MinTokens):
    """MINTOK-OTHERS: blocks the token after each stop token as well."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        if len(output) < params.min_tokens:
            logits[[(token + 1) % len(logits) for token in params.all_stop_token_ids]] = -math.inf


class AtLeastOne(MinTokens):
    """MINTOK-NEUTRAL: takes min_tokens 0 for 1."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if len(output) < max(1, params.min_tokens):
            logits[list(params.all_stop_token_ids)] = -math.inf


class TokenZeroIsNone(AllowedTokenIds):
    """ALLOW-MASK: asks whether any id is true, so that a list of token 0 is none."""

    def wants(self, params: Any) -> bool:
        return any(params.allowed_token_ids or ())


class LeavesTheTail(AllowedTokenIds):
    """ALLOW-MASK: makes its mask as wide as a tokenizer's vocabulary, and the rest of a padded row is let through."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits[:-1], params, prompt, output)


class AssumesContiguous(AllowedTokenIds):
    """PROC-UNTOUCHED: looks for a row at row times vocabulary, where the logits of a padded vocabulary have it not."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        super().apply(logits.as_strided(logits.shape, (logits.shape[1], 1)))
        return logits


class EnumeratesUsers(BadWords):
    """PROC-INDEPENDENT: counts through those that have bad words, and takes the count for the row."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, prompt, output) in enumerate(self.rows.values()):
            self.transform(logits[row], params, prompt, output)
        return logits


class LooksOneBack(BadWords):
    """BAD-COMPLETE: compares the beginning of a word with the outputs up to the last but one."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for word in params.bad_words_token_ids:
            seen = output if len(word) == 1 else output[:-1]
            if seen[len(seen) - len(word) + 1 :] == word[:-1]:
                logits[word[-1]] = -math.inf


class WritesIntoTheNextRow(BadWords):
    """PROC-INDEPENDENT: bans one id more, the size of the vocabulary, which is token 0 of the row behind."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        logits = super().apply(logits)
        logits[[row + 1 for row in self.rows if row + 1 < len(logits)], 0] = -math.inf
        return logits
