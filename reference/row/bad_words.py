"""Bad words: the token that would complete one is masked."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, exact, untouched
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params


def bad_words(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """BAD-OTHERS, BAD-NEUTRAL: the tokens that complete a word are masked, the others stay as they are.

    >>> bad_words({"bad_words_token_ids": [[7, 1]]}, [], [5, 7], [0.0, 1.0]).low
    [0.0, -inf]
    >>> bad_words({"bad_words_token_ids": []}, [], [], [0.0]).untouched
    True
    """
    completing = completing_tokens(params, output)
    if not completing:
        return untouched(logits)
    return exact([MASKED if token in completing else logit for token, logit in enumerate(logits)])


def completing_tokens(params: Params, output: Sequence[int]) -> set[int]:
    """BAD-COMPLETE, BAD-OUTPUTS: the last token of every word whose tokens before it are the last outputs.

    >>> completing_tokens({"bad_words_token_ids": [[1, 2], [2, 1, 3], [4]]}, [2, 1]) == {2, 3, 4}
    True
    """
    words = params.get("bad_words_token_ids") or ()
    return {word[-1] for word in words if ends_with(output, word[:-1])}


def ends_with(output: Sequence[int], tokens: Sequence[int]) -> bool:
    """BAD-COMPLETE, BAD-SINGLE: whether the last outputs are these tokens; every list ends with no tokens.

    >>> ends_with([2, 1], [1]), ends_with([1], [2, 1]), ends_with([], [])
    (True, False, True)
    """
    start = len(output) - len(tokens)
    return start >= 0 and list(output[start:]) == list(tokens)
