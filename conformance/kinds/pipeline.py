"""The whole pipeline: every stage, and the two custom processors that the suite puts into it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations as combinations_of
from typing import Any

from logitsproc.conformance.bindings import Subject
from logitsproc.conformance.history import BFLOAT16
from logitsproc.conformance.kinds.allowed_token_ids import ALLOWED_TOKEN_IDS
from logitsproc.conformance.kinds.bad_words import BAD_WORDS
from logitsproc.conformance.kinds.frequency_penalty import FREQUENCY_PENALTY
from logitsproc.conformance.kinds.kind import Kind, Pool, Row, asked
from logitsproc.conformance.kinds.logit_bias import LOGIT_BIAS
from logitsproc.conformance.kinds.min_p import MIN_P
from logitsproc.conformance.kinds.min_tokens import MIN_TOKENS
from logitsproc.conformance.kinds.presence_penalty import PRESENCE_PENALTY
from logitsproc.conformance.kinds.repetition_penalty import REPETITION_PENALTY
from logitsproc.conformance.kinds.temperature import TEMPERATURE
from logitsproc.conformance.kinds.top_k import TOP_K
from logitsproc.conformance.kinds.top_p import TOP_P
from logitsproc.conformance.probes import CUSTOM
from logitsproc.reference.batch import Batch
from logitsproc.reference.expectation import Expectation, admits, untouched
from logitsproc.reference.numerics import MASKED, rounded
from logitsproc.reference.pipeline import pipeline, skips_invariant
from logitsproc.reference.request import Params, Request
from logitsproc.reference.row.temperature import is_greedy
from logitsproc.reference.row.top_k import keep_largest

STAGES = (
    ALLOWED_TOKEN_IDS,
    BAD_WORDS,
    MIN_TOKENS,
    LOGIT_BIAS,
    REPETITION_PENALTY,
    FREQUENCY_PENALTY,
    PRESENCE_PENALTY,
    TEMPERATURE,
    MIN_P,
    TOP_K,
    TOP_P,
)
LOOKED_EVERY = 8
"""At which numbers of outputs it is worth the time to ask whether the order of the stages shows."""
FIELDS: dict[str, tuple[str, ...]] = {
    "bad_words": ("bad_words_token_ids",),
    "min_tokens": ("min_tokens", "stop_token_ids", "eos_token_id"),
    "extra_args": ("extra_args",),
}
"""The params of a stage, where they are not the one of its name."""

NEUTRAL: dict[str, Any] = {
    "allowed_token_ids": None,
    "bad_words_token_ids": [],
    "min_tokens": 0,
    "logit_bias": {},
    "repetition_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "temperature": 1.0,
    "min_p": 0.0,
    "top_k": -1,
    "top_p": 1.0,
}


def shift(params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Row) -> Expectation:
    """What the custom processor Shift owes.

    >>> shift({"extra_args": {"shift": [1, 0.5]}}, [], [], [0.0, 1.0]).low
    [0.0, 1.5]
    """
    pair = asked(params, "shift")
    if pair is None:
        return untouched(logits)
    token, amount = pair
    low, high = list(logits), list(logits)
    low[token], high[token] = rounded(logits[token], amount)
    return Expectation(low, high)


def largest(params: Params, row: Expectation) -> Expectation:
    """What the custom processor Largest owes.

    >>> largest({"extra_args": {"largest": 1}}, untouched([0.0, 1.0])).low
    [-inf, 1.0]
    """
    k = asked(params, "largest")
    return row if k is None or k >= len(row.low) else keep_largest(row, k)


row = partial(pipeline, skipped=False, custom=(shift,), invariant=(largest,))
skipped_row = partial(pipeline, skipped=True, custom=(shift,), invariant=(largest,))


def users(chance: random.Random) -> Pool:
    """Every stage by itself, the custom ones, and combinations whose order shows, some of them greedy."""
    alone = [params for stage in STAGES for params in stage.users(chance)]
    return [*alone, *customs(), *combinations(chance)]


def customs() -> Pool:
    """Custom processors alone, and in a greedy request."""
    return [
        {"extra_args": {"shift": [2, 4.0]}},
        {"extra_args": {"largest": 2}},
        {"extra_args": {"largest": 1}, "temperature": 0.0},
        {"extra_args": {"shift": [1, -3.0], "largest": 3}, "temperature": 0.5},
    ]


def combinations(chance: random.Random) -> Pool:
    """Stages that do not commute, stages that leave nothing, and everything at once."""
    return [
        {"extra_args": {"shift": [1, 2.5]}, "repetition_penalty": 2.0, "presence_penalty": 0.5},
        {"logit_bias": {1: 3.0, 5: -2.0}, "repetition_penalty": 1.5, "frequency_penalty": 0.5, "top_k": 2},
        {"repetition_penalty": 0.5, "presence_penalty": 1.5, "frequency_penalty": -0.5, "temperature": 0.5},
        {"temperature": 0.5, "min_p": 0.2, "top_p": 0.8},
        {"temperature": 2.0, "min_p": 0.05, "top_k": 3, "top_p": 0.6},
        {"top_k": 4, "top_p": 0.5, "extra_args": {"largest": 3}},
        {"allowed_token_ids": [2], "bad_words_token_ids": [[2]]},
        {"allowed_token_ids": [3, 4], "min_tokens": 20, "stop_token_ids": [3, 4], "logit_bias": {3: 50.0}},
        everything(chance),
        {"logit_bias": {1: -9.0}, "presence_penalty": 2.0, "temperature": 0.0},
        {"repetition_penalty": 1.5, "temperature": 0.0},
        {"bad_words_token_ids": [[1, 2], [5]], "frequency_penalty": 1.0, "temperature": 0.0},
    ]


def everything(chance: random.Random) -> dict[str, Any]:
    """One request that uses all stages."""
    return {
        "allowed_token_ids": [0, 1, 2, 3, 5, 7],
        "bad_words_token_ids": [[2, 1], [7]],
        "min_tokens": 3,
        "stop_token_ids": [3],
        "logit_bias": {0: 1.5, 2: round(chance.uniform(-2, 2), 2)},
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.25,
        "presence_penalty": 0.5,
        "temperature": 0.8,
        "min_p": 0.02,
        "top_k": 4,
        "top_p": 0.95,
    }


def others(chance: random.Random) -> Pool:
    """Nothing asked, and every neutral value, also of greedy requests."""
    return [
        {},
        {"temperature": 0.0},
        *(asked for field, value in NEUTRAL.items() for asked in ({field: value}, {"temperature": 0.0, field: value})),
    ]


def used(params: Params) -> list[str]:
    """The stages whose params the request has, in alphabetical order."""
    fields = {field: name for name, of in FIELDS.items() for field in of}
    return sorted({fields.get(field, field) for field in params})


def asked_of(params: Params) -> list[str]:
    """The stages that have something to do for the request."""
    return used({field: value for field, value in params.items() if value != NEUTRAL.get(field)})


def only_stage(params: Params) -> Kind | None:
    """The stage that the request uses, if it uses one."""
    names = used(params)
    return next((stage for stage in STAGES if [stage.field] == names), None)


def without(params: Params, name: str) -> dict[str, Any]:
    """The params less those of a stage."""
    dropped = FIELDS.get(name, (name,))
    return {field: value for field, value in params.items() if field not in dropped}


def bears(request: Request, logits: Row, expectation: Expectation) -> tuple[str, ...]:
    """The clauses of the only stage, or what several stages show together."""
    stage = only_stage(request.params)
    if stage is not None:
        return stage.bears(request, logits, expectation)
    if not any(high != MASKED for high in expectation.high) and any(logit != MASKED for logit in logits):
        return ("EMPTY-ROW",)
    looks = len(request.output) % LOOKED_EVERY == 1
    return ("PIPE-ORDER",) if looks and order_shows(request, logits, expectation) else ()


def order_shows(request: Request, logits: Row, expectation: Expectation) -> bool:
    """Whether the stages in another order would give another row."""
    return any(not admits(expectation, other.low) for other in other_orders(request, logits))


def other_orders(request: Request, logits: Row) -> Iterator[Expectation]:
    """The row with one or two stages after all others, or before them."""
    params = request.params
    function = skipped_row if is_greedy(params) else row
    names = used(params)
    for first_name, second_name in [(name, name) for name in names] + list(combinations_of(names, 2)):
        rest = without(without(params, first_name), second_name)
        part = {field: value for field, value in params.items() if field not in rest}
        for one, other in ((rest, part), (part, rest)):
            first = function(one, request.prompt, request.output, logits)
            yield function(other, request.prompt, request.output, first.low)


def together(options: frozenset[str], batch: Batch) -> tuple[str, ...]:
    """The clauses that speak of the batch as a whole."""
    requests = [request for request in batch if request is not None]
    skipped = skips_invariant(batch)
    shows = []
    if len({tuple(asked_of(request.params)) for request in requests}) > 1:
        shows.append("PIPE-EACH")
    if not skipped and any(is_greedy(request.params) for request in requests):
        shows.append("PIPE-GREEDY")
    if any(asks(request, "largest") and is_greedy(request.params) for request in requests):
        shows.append("PIPE-SKIP")
    if any(asks(request, "shift") for request in requests):
        shows.append("PIPE-RETURNED")
    if BFLOAT16 in options:
        shows.append("PIPE-FLOAT")
    return tuple(shows)


def asks(request: Request, name: str) -> bool:
    """Whether the request uses this custom processor."""
    return asked(request.params, name) is not None


def blames(request: Request, logits: Row, got: Row, token: int) -> str:
    """PIPE-ORDER, PIPE-EACH, PIPE-GREEDY, PIPE-SKIP, PIPE-RETURNED, EMPTY-ROW: what explains a row that is wrong alone.

    A row of one stage only is that stage's affair.
    """
    params = request.params
    emptied = not any(high != MASKED for high in skipped_row(params, request.prompt, request.output, logits).high)
    if emptied and any(logit != MASKED for logit in logits):
        return "EMPTY-ROW"
    stage = only_stage(params)
    if stage is not None:
        return stage.blames(request, logits, got, token)
    if any(admits(other, got) for other in other_orders(request, logits)):
        return "PIPE-ORDER"
    other = beside_others(request, logits, got, is_greedy(params))
    return other or ("PIPE-GREEDY" if is_greedy(params) else "PIPE-ORDER")


def beside_others(request: Request, logits: Row, got: Row, any_greedy: bool) -> str | None:
    """PIPE-EACH, PIPE-GREEDY, PIPE-SKIP, PIPE-RETURNED: what explains a row that is right without the others.

    Without a greedy request in the batch there is nothing that could be skipped by mistake.
    """
    params = request.params
    explained = partial(explains, request, logits, got)
    if any_greedy and explained(params, row) != explained(params, skipped_row):
        return "PIPE-SKIP"
    if asks(request, "shift") and explained(without_custom(params, "shift"), row):
        return "PIPE-RETURNED"
    if any(explained(without(params, name), row) for name in used(params)):
        return "PIPE-EACH"
    return "PIPE-GREEDY" if is_greedy(params) else None


def explains(request: Request, logits: Row, got: Row, params: Params, function: Callable[..., Expectation]) -> bool:
    """Whether the row is right for other params, or for a batch of another kind."""
    return admits(function(params, request.prompt, request.output, logits), got)


def without_custom(params: Params, name: str) -> dict[str, Any]:
    """The params less one custom processor's."""
    extra = {key: value for key, value in (params.get("extra_args") or {}).items() if key != name}
    return {**params, "extra_args": extra}


def prepare(subject: Subject) -> Subject:
    """The pipeline with the suite's custom processors."""
    return replace(subject, custom=CUSTOM)


PIPELINE = Kind(
    "pipeline",
    ("pipeline", "loading", *(chapter for stage in STAGES for chapter in stage.chapters)),
    tuple(dict.fromkeys(clause for stage in STAGES for clause in stage.numerics)),
    row,
    users,
    others,
    bears,
    blames,
    reads_outputs=True,
    reads_ids=True,
    skipped=skipped_row,
    bearers=("processor", "pipeline", "loader", "host"),
    prepare=prepare,
    together=together,
    beside_others=beside_others,
    bfloat16=True,
)
