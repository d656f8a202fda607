"""min-tokens: no stop token before the request has that many output tokens."""

from __future__ import annotations

from collections.abc import Sequence

from logitsproc.reference.expectation import Expectation, exact, untouched
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params


def min_tokens(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """MINTOK-BLOCK, MINTOK-RELEASE, MINTOK-OTHERS, MINTOK-NEUTRAL:
    every stop token is masked while len(output) < min_tokens; after that, and for every other token, nothing.

    >>> min_tokens({"min_tokens": 2, "stop_token_ids": [1]}, [], [7], [0.0, 1.0]).low
    [0.0, -inf]
    >>> min_tokens({"min_tokens": 2, "stop_token_ids": [1]}, [], [7, 7], [0.0, 1.0]).untouched
    True
    """
    stops = stop_tokens(params)
    if not stops or len(output) >= params.get("min_tokens", 0):
        return untouched(logits)
    return exact([MASKED if token in stops else logit for token, logit in enumerate(logits)])


def stop_tokens(params: Params) -> set[int]:
    """MINTOK-EOS: the stop token ids of the request and the model's end-of-sequence token.

    >>> sorted(stop_tokens({"stop_token_ids": [3], "eos_token_id": 1}))
    [1, 3]
    """
    stops = set(params.get("stop_token_ids") or ())
    eos = params.get("eos_token_id")
    return stops if eos is None else stops | {eos}
