"""The sampler's stages in the order of profile `v1`: what a row is when the set of tokens to sample from is final.

>>> params = {"logit_bias": {0: 9.0}, "presence_penalty": 1.0, "top_k": 1}
>>> pipeline(params, [], [0], [0.0, 1.0, 2.0], skipped=False).low
[8.0, -inf, -inf]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from logitsproc.reference.batch import Batch
from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.processor import RowFunction
from logitsproc.reference.request import Params
from logitsproc.reference.row.allowed_token_ids import allowed_token_ids
from logitsproc.reference.row.bad_words import bad_words
from logitsproc.reference.row.frequency_penalty import frequency_penalty
from logitsproc.reference.row.logit_bias import logit_bias
from logitsproc.reference.row.min_p import keep_likely
from logitsproc.reference.row.min_tokens import min_tokens
from logitsproc.reference.row.presence_penalty import presence_penalty
from logitsproc.reference.row.repetition_penalty import repetition_penalty
from logitsproc.reference.row.temperature import is_greedy, temperature
from logitsproc.reference.row.top_k import keep_largest
from logitsproc.reference.row.top_p import keep_mass

MASKS: tuple[RowFunction, ...] = (allowed_token_ids, bad_words)
PENALTIES: tuple[RowFunction, ...] = (repetition_penalty, frequency_penalty, presence_penalty)
BUILT_IN: tuple[RowFunction, ...] = (min_tokens, logit_bias)

Narrowing = Callable[[Params, Expectation], Expectation]
"""A custom argmax-invariant processor: what is left of a row."""


def pipeline(
    params: Params,
    prompt: Sequence[int] | None,
    output: Sequence[int],
    logits: Sequence[float],
    skipped: bool,
    custom: Sequence[RowFunction] = (),
    invariant: Sequence[Narrowing] = (),
) -> Expectation:
    """PIPE-ORDER, PIPE-EACH, PIPE-RETURNED, EMPTY-ROW: every stage on what the one before it returned.

    logits: float32 values, whatever the dtype was that they came in. skipped: whether the argmax-invariant stages
    are (`skips_invariant`). custom, invariant: the custom processors.

    >>> pipeline({"allowed_token_ids": [0], "bad_words_token_ids": [[0]]}, [], [], [1.0, 2.0], skipped=False).low
    [-inf, -inf]
    """
    row = untouched(logits)
    for stage in (*MASKS, *BUILT_IN, *custom, *PENALTIES):
        row = edited(row, stage, params, prompt, output)
    if skipped:
        return row
    row = drawn(row, params, keep_min_p)
    for narrow in invariant:
        row = narrow(params, row)
    return drawn(row, params, keep_top)


def edited(
    row: Expectation, stage: RowFunction, params: Params, prompt: Sequence[int] | None, output: Sequence[int]
) -> Expectation:
    """PIPE-ORDER, PIPE-FLOAT: an edit of both ends of every interval, for no edit turns the order of logits round.

    >>> edited(Expectation([0.0], [1.0]), logit_bias, {"logit_bias": {0: 1.0}}, [], [])
    Expectation(low=[1.0], high=[2.0], either=frozenset(), untouched=False, kept=None, signs=True)
    """
    low = stage(params, prompt, output, row.low)
    if low.untouched:
        return row
    high = low if row.high is row.low else stage(params, prompt, output, row.high)
    return Expectation(low.low, high.high, signs=row.signs and low.signs)


def drawn(row: Expectation, params: Params, narrow: Narrowing) -> Expectation:
    """PIPE-GREEDY: what is for random sampling only does nothing to the row of a greedy request.

    >>> drawn(untouched([1.0, 2.0]), {"temperature": 0.0, "top_k": 1}, keep_top).untouched
    True
    """
    return row if is_greedy(params) else narrow(params, row)


def keep_min_p(params: Params, row: Expectation) -> Expectation:
    """PIPE-ORDER: temperature, then min-p.

    >>> keep_min_p({"min_p": 0.5}, untouched([1.0, 2.0])).low
    [-inf, 2.0]
    """
    row = edited(row, temperature, params, (), ())
    share = params.get("min_p", 0.0)
    return keep_likely(row, share) if share else row


def keep_top(params: Params, row: Expectation) -> Expectation:
    """PIPE-ORDER: top-k, then top-p of what top-k has left.

    >>> keep_top({"top_k": 2, "top_p": 0.6}, untouched([1.0, 1.1, 1.2])).low
    [-inf, 1.1, 1.2]
    """
    k, p = params.get("top_k", 0), params.get("top_p", 1.0)
    if 0 < k < len(row.low):
        row = keep_largest(row, k)
    return keep_mass(row, p) if p < 1.0 else row


def skips_invariant(batch: Batch) -> bool:
    """PIPE-SKIP: the argmax-invariant stages are skipped exactly when every request of the batch is greedy.

    >>> skips_invariant([])
    True
    """
    return all(request is None or is_greedy(request.params) for request in batch)
