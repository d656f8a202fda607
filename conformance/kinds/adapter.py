"""Adapters of request-level processors: the suite makes a concrete one and asks for two and for three parameters."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from logitsproc.conformance.bindings import ADAPTS, CannotRun, Subject
from logitsproc.conformance.kinds.kind import Kind, Pool, Row, asked
from logitsproc.conformance.probes import Requests
from logitsproc.reference.expectation import Expectation, exact, untouched
from logitsproc.reference.loading import adapted
from logitsproc.reference.numerics import MASKED, f32
from logitsproc.reference.request import Params, Request


def row(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Row) -> Expectation:
    """The row that the adapter gives for a request.

    >>> row({"extra_args": {"request": "two"}}, [], [1], [0.0, 1.0]).low
    [0.0, -inf]
    """
    got = adapted(REQUEST_LEVEL.get(asked(params, "request")), prompt, output, logits)
    return untouched(logits) if got is logits else exact(got)


def mask_last(output: Sequence[int], logits: Row) -> Row:
    """The row with the last output token masked."""
    last = output[-1] if output else None
    return [MASKED if token == last else logit for token, logit in enumerate(logits)] if output else logits


def raise_prompt(prompt: Sequence[int] | None, output: Sequence[int], logits: Row) -> Row:
    """The row with 1 added for each token of the prompt."""
    return [f32(logit + 1.0) if token in (prompt or ()) else logit for token, logit in enumerate(logits)]


REQUEST_LEVEL: dict[str, Callable[..., Row]] = {"two": mask_last, "three": raise_prompt}


def users(chance: random.Random) -> Pool:
    """Two parameters, and three."""
    return [{"extra_args": {"request": "two"}}, {"extra_args": {"request": "three"}}]


def others(chance: random.Random) -> Pool:
    """Nothing asked, and None returned."""
    return [{}, {"extra_args": {"request": "none"}}, {"temperature": 0.7}]


def wanted(request: Request) -> str | None:
    """What the request asks for."""
    found: str | None = asked(request.params, "request")
    return found


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The adapter's clauses that this row shows."""
    if wanted(request) == "none":
        return ("LOAD-OPT-OUT",)
    return () if expectation.untouched else ("LOAD-ADAPTER", "LOAD-ROW")


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """LOAD-ADAPTER, LOAD-OPT-OUT, LOAD-ROW: which the token breaks; a new row that is not used is as it was."""
    if wanted(request) not in ("two", "three"):
        return "LOAD-OPT-OUT"
    return "LOAD-ROW" if wanted(request) == "three" and list(got) == list(logits) else "LOAD-ADAPTER"


def prepare(subject: Subject) -> Subject:
    """A concrete adapter; raises CannotRun when the subject is none."""
    if not isinstance(subject.factory, type) or not callable(getattr(subject.factory, ADAPTS, None)):
        raise CannotRun(f"{subject.target} is not an adapter: it has no {ADAPTS}()")
    return replace(subject, mixin=Requests)


ADAPTER = Kind(
    "adapter",
    ("loading",),
    (),
    row,
    users,
    others,
    bears,
    blames,
    reads_outputs=True,
    reads_ids=True,
    bearers=("processor", "adapter"),
    prepare=prepare,
)
