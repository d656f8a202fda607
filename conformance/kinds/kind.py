"""What the suite knows of a transformation beside its reference row."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from logitsproc.conformance.bindings import Subject
from logitsproc.reference.batch import Batch
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.processor import RowFunction
from logitsproc.reference.request import Params, Request

Pool = list[dict[str, Any]]
Row = Sequence[float]
SMALLEST_VOCAB = 8
"""Token ids of the suite's own params and outputs are below it."""


@dataclass(frozen=True)
class Kind:
    """A transformation.

    `field`: what `--as` calls it, as a rule the SamplingParams field. `chapters`: its chapters of the spec.
    `numerics`: the numerics clauses that it bears. `users`, `others`: params that use it and that do not, from a
    random source. `bears`: the clauses that a row with this expectation exercises. `blames`: the clause that a token
    got wrong. `reads_outputs`: whether the row depends on the output list, `reads_ids`: on more than its length.
    `skipped`: the row function where the whole batch is greedy, if that is another one.
    `bearers`: who owes its clauses. `prepare`: makes of the subject named the one that is run. `together`: the
    clauses that a step shows as a whole, from the history's options and the batch. `beside_others`: the clause that a
    row breaks which is right alone and wrong beside others, in a batch where any request is greedy, or none.
    `bfloat16`: whether some histories have logits of that dtype.
    """

    field: str
    chapters: tuple[str, ...]
    numerics: tuple[str, ...]
    row: RowFunction
    users: Callable[[random.Random], Pool]
    others: Callable[[random.Random], Pool]
    bears: Callable[[Request, Row, Expectation], tuple[str, ...]]
    blames: Callable[[Request, Row, Row, int], str]
    reads_outputs: bool = False
    reads_ids: bool = False
    skipped: RowFunction | None = None
    bearers: tuple[str, ...] = ("processor",)
    prepare: Callable[[Subject], Subject] = lambda subject: subject
    together: Callable[[frozenset[str], Batch], tuple[str, ...]] = lambda options, batch: ()
    beside_others: Callable[[Request, Row, Row, bool], str | None] = lambda request, logits, got, any_greedy: None
    bfloat16: bool = False


def asked(params: Params, name: str) -> Any:
    """What a request asks of a custom processor of the suite's, by name in extra_args, or None."""
    return (params.get("extra_args") or {}).get(name)


def is_same(before: float, after: float) -> bool:
    """Whether a logit is as it was, NaN too."""
    return before == after or (math.isnan(before) and math.isnan(after))


def only_masked(logits: Row, got: Row) -> bool:
    """Whether every token that is not as it was is masked."""
    return all(after == MASKED or is_same(before, after) for before, after in zip(logits, got, strict=True))


def only_changed(tokens: Container[int], logits: Row, got: Row) -> bool:
    """Whether every token that is not as it was is one of these."""
    return all(token in tokens or is_same(logits[token], after) for token, after in enumerate(got))


def is_rough(exact: float, got: float, magnitude: float) -> bool:
    """Whether a number is about right, to 2**-7 of a magnitude, so that rounding is what is wrong with it."""
    return abs(got - exact) <= 2.0**-7 * magnitude
