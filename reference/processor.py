"""What a processor owes: every row a function of its own request, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from logitsproc.reference.batch import Batch
from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Params, Request

RowFunction = Callable[[Params, Sequence[int] | None, Sequence[int], Sequence[float]], Expectation]
"""(params, prompt token ids, output token ids, logits of the row) -> what the row may be."""


def expected_rows(batch: Batch, row: RowFunction, logits: Sequence[Sequence[float]]) -> list[Expectation]:
    """PROC-STATE-DEPARTED, PROC-INDEPENDENT, PROC-SHAPE, PROC-EXCEPTION: one row out for each row in, for any batch.

    Nothing is kept between two calls, so nothing of a departed request can come back, and no row sees another.

    >>> expected_rows([], lambda *_: untouched([]), [])
    []
    """
    return [expected_row(request, row, values) for request, values in zip(batch, logits, strict=True)]


def expected_row(request: Request | None, row: RowFunction, logits: Sequence[float]) -> Expectation:
    """PROC-FUNCTION, PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-QUIET, PROC-APPLY-STATELESS, PROC-SHRINK,
    PROC-PROMPT-NONE: the row function of the request's params, prompt and outputs as they are now; a hole stays.

    >>> expected_row(None, lambda *_: untouched([]), [1.0]).untouched
    True
    """
    if request is None:
        return untouched(logits)
    return row(request.params, request.prompt, request.output, logits)


def keeps_argmax(before: Sequence[float], after: Sequence[float]) -> bool:
    """PROC-ARGMAX: at least one of the largest tokens of the row is still a largest token; a row with NaN has none.

    >>> keeps_argmax([1.0, 1.0, 0.0], [1.0, MASKED, 0.0]), keeps_argmax([1.0, 0.0], [MASKED, 0.0])
    (True, False)
    """
    if any(math.isnan(value) for value in before):
        return True
    largest = max(before, default=MASKED)
    return any(after[token] == max(after) for token, value in enumerate(before) if value == largest) or not before


def keeps_arguments(before: object, after: object) -> bool:
    """PROC-READONLY: what was handed in is equal, item for item, to what it was.

    >>> keeps_arguments([1], [1]), keeps_arguments([1], [])
    (True, False)
    """
    return before == after


def is_idle(expectations: Sequence[Expectation]) -> bool:
    """PROC-IDLE: no row of the batch is to be touched, so the input may be returned as it is.

    >>> is_idle([untouched([0.0])])
    True
    """
    return all(expectation.untouched for expectation in expectations)
