"""The transformations the suite knows by SamplingParams field: reference row, params to draw, clauses to blame."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.processor import RowFunction
from logitsproc.reference.request import Params
from logitsproc.reference.row.logit_bias import logit_bias
from logitsproc.reference.row.min_p import min_p
from logitsproc.reference.row.min_tokens import min_tokens, stop_tokens

Pool = list[dict[str, Any]]
Row = Sequence[float]
SMALLEST_VOCAB = 8
NEAR = 0.03
"""A logit this close to a threshold is within 3% of its probability."""


@dataclass(frozen=True)
class Kind:
    """A transformation.

    `field`: the SamplingParams field. `chapter`: its chapter of the spec. `numeric`: the numerics clause it bears.
    `users`, `others`: params that use it and that do not, from a random source.
    `bears`: the clauses that a row with this expectation exercises. `blames`: the clause that the token got wrong.
    """

    field: str
    chapter: str
    numeric: str | None
    row: RowFunction
    users: Callable[[random.Random], Pool]
    others: Callable[[random.Random], Pool]
    bears: Callable[[Params, Row, Expectation], tuple[str, ...]]
    blames: Callable[[Params, Row, Row, int], str]
    reads_outputs: bool = False


def min_p_users(chance: random.Random) -> Pool:
    """Shares that fall among dense logits, on the edges of crowded ones, and the largest."""
    return [{"min_p": 0.5}, {"min_p": 0.1}, {"min_p": 1.0}, {"min_p": round(chance.uniform(0.01, 0.9), 3)}]


def min_p_others(chance: random.Random) -> Pool:
    """No min_p, its neutral value, and other fields."""
    return [{}, {"min_p": 0.0}, {"temperature": 0.7}]


def min_p_bears(params: Params, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The min-p clauses that this row shows."""
    if not params.get("min_p"):
        return ("MINP-NEUTRAL",)
    if expectation.untouched:
        return ("MINP-NONFINITE",)
    shows = ["MINP-KEEP-MAX", "MINP-KEPT-VALUES"]
    if expectation.low.count(MASKED) > logits.count(MASKED):
        shows.append("MINP-THRESHOLD")
    if expectation.either or is_near(params, logits):
        shows.append("NUM-BAND")
    return tuple(shows)


def is_near(params: Params, logits: Row) -> bool:
    """Whether a token other than the largest is within 3% of the threshold probability."""
    largest = max(logits)
    edge = largest + math.log(params["min_p"])
    return any([edge - NEAR < logit < edge + NEAR and logit != largest for logit in logits])  # noqa: C419 - faster


def min_p_blames(params: Params, logits: Row, got: Row, token: int) -> str:
    """MINP-THRESHOLD, MINP-KEEP-MAX, MINP-KEPT-VALUES, MINP-NEUTRAL, MINP-NONFINITE, NUM-BAND: which the token breaks.

    What min-p never does is not its clause.
    """
    if not params.get("min_p"):
        return "MINP-NEUTRAL" if only_masked(logits, got) else "PROC-UNTOUCHED"
    largest = max(logits)
    if any(math.isnan(logit) for logit in logits) or not math.isfinite(largest):
        return "MINP-NONFINITE"
    if got[token] not in (logits[token], MASKED):
        return "MINP-KEPT-VALUES"
    if logits[token] == largest:
        return "MINP-KEEP-MAX"
    return "NUM-BAND" if only_near(params, logits, got) else "MINP-THRESHOLD"


def only_masked(logits: Row, got: Row) -> bool:
    """Whether every token that is not as it was is masked."""
    return all(after in (before, MASKED) for before, after in zip(logits, got, strict=True))


def only_near(params: Params, logits: Row, got: Row) -> bool:
    """Whether every token that is wrong lies within 3% of the threshold probability."""
    edge = max(logits) + math.log(params["min_p"])
    wrong = [x for x, y in zip(logits, got, strict=True) if (y == MASKED) != (x < edge) and abs(x - edge) > 1e-5]
    return all(abs(logit - edge) < NEAR for logit in wrong)


def logit_bias_users(chance: random.Random) -> Pool:
    """One token, several, a ban, a bias that float32 does not hold exactly, and token 0 alone."""
    token = chance.randrange(1, SMALLEST_VOCAB)
    return [
        {"logit_bias": {0: 5.0}},
        {"logit_bias": {1: -100.0, 3: 2.5}},
        {"logit_bias": {token: 0.1, 0: -0.7}},
    ]


def logit_bias_others(chance: random.Random) -> Pool:
    """No bias, the two neutral values, and other fields."""
    return [{}, {"logit_bias": None}, {"logit_bias": {}}, {"min_p": 0.2}]


def logit_bias_bears(params: Params, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The bias clauses that this row shows."""
    bias = params.get("logit_bias")
    if not bias:
        return ("BIAS-NEUTRAL",)
    finite = all(math.isfinite(logits[token]) for token in bias)
    return ("BIAS-ADD", "NUM-EDIT", "BIAS-OTHERS") if finite else ("BIAS-NONFINITE", "BIAS-OTHERS")


def logit_bias_blames(params: Params, logits: Row, got: Row, token: int) -> str:
    """BIAS-ADD, BIAS-OTHERS, BIAS-NEUTRAL, BIAS-NONFINITE, NUM-EDIT: which the token breaks."""
    bias = params.get("logit_bias")
    if not bias:
        return "PROC-UNTOUCHED" if bias is None else "BIAS-NEUTRAL"
    if token not in bias:
        return "BIAS-OTHERS"
    if not math.isfinite(logits[token]):
        return "BIAS-NONFINITE"
    nearly = abs(got[token] - logits[token] - bias[token]) <= 2.0**-8 * max(abs(logits[token]), abs(bias[token]))
    return "NUM-EDIT" if nearly else "BIAS-ADD"


def min_tokens_users(chance: random.Random) -> Pool:
    """Stop ids, the end-of-sequence id, and both; boundaries that short histories reach."""
    return [
        {"min_tokens": 3, "stop_token_ids": [2]},
        {"min_tokens": 2, "stop_token_ids": [1, 4], "eos_token_id": 0},
        {"min_tokens": 9, "stop_token_ids": [6]},
        {"min_tokens": chance.randrange(1, 5), "eos_token_id": 5},
    ]


def min_tokens_others(chance: random.Random) -> Pool:
    """Nothing asked, the neutral value, and nothing to stop at."""
    return [{}, {"min_tokens": 0, "stop_token_ids": [3]}, {"min_tokens": 4}]


def min_tokens_bears(params: Params, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The min-tokens clauses that this row shows."""
    if not params.get("min_tokens") or not stop_tokens(params):
        return ("MINTOK-NEUTRAL",)
    if expectation.untouched:
        return ("MINTOK-RELEASE",)
    ends = ("MINTOK-EOS",) if params.get("eos_token_id") is not None else ()
    stops = ("MINTOK-BLOCK",) if params.get("stop_token_ids") else ()
    return (*ends, *stops, "MINTOK-OTHERS")


def min_tokens_blames(params: Params, logits: Row, got: Row, token: int) -> str:
    """MINTOK-BLOCK, MINTOK-EOS, MINTOK-RELEASE, MINTOK-OTHERS, MINTOK-NEUTRAL: which the token breaks."""
    if not params.get("min_tokens") or not stop_tokens(params):
        return "MINTOK-NEUTRAL" if params and only_masked(logits, got) else "PROC-UNTOUCHED"
    if token == params.get("eos_token_id") and got[token] == logits[token]:
        return "MINTOK-EOS"
    if token in (params.get("stop_token_ids") or ()) and got[token] == logits[token]:
        return "MINTOK-BLOCK"
    is_stop = token in (params.get("stop_token_ids") or ()) or token == params.get("eos_token_id")
    return "MINTOK-RELEASE" if is_stop else "MINTOK-OTHERS"


KINDS = {
    kind.field: kind
    for kind in (
        Kind("min_p", "min-p", "NUM-BAND", min_p, min_p_users, min_p_others, min_p_bears, min_p_blames),
        Kind(
            "logit_bias",
            "logit-bias",
            "NUM-EDIT",
            logit_bias,
            logit_bias_users,
            logit_bias_others,
            logit_bias_bears,
            logit_bias_blames,
        ),
        Kind(
            "min_tokens",
            "min-tokens",
            None,
            min_tokens,
            min_tokens_users,
            min_tokens_others,
            min_tokens_bears,
            min_tokens_blames,
            reads_outputs=True,
        ),
    )
}
