"""The fast processors one by one: what they do to the rows of users, and that they do nothing else."""

from __future__ import annotations

import gc
import math
import random
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality, SamplingParams, host_config
from logitsproc.optimized import (
    AdapterLogitsProcessor,
    AllowedTokenIdsLogitsProcessor,
    BadWordsLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    LogitBiasLogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
    Pipeline,
    PresencePenaltyLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsProcessor,
    TopKLogitsProcessor,
    TopPLogitsProcessor,
)
from logitsproc.optimized.min_p import VISIT, mask_batch, mask_rows
from logitsproc.optimized.penalties import penalise, penalties
from logitsproc.optimized.seen import common_length

Added = tuple[int, SamplingParams, list[int] | None, list[int]]

ONE_WAY, SWAP = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP
VOCAB = 16
WIDE = 128256
LARGEST = torch.finfo(torch.float32).max
PLAIN = SamplingParams()
PROMPT, OUTPUT = [4, 9], [1]


class HalvesLogitsProcessor(AdapterLogitsProcessor):
    """Halves the row of a request whose extra arguments say so."""

    def is_argmax_invariant(self) -> bool:
        return True

    def new_req_logits_processor(self, params: SamplingParams) -> Callable[..., torch.Tensor] | None:
        return (lambda output, row: row.div_(2.0)) if params.extra_args else None


USES = {
    MinPLogitsProcessor: SamplingParams(min_p=0.5),
    LogitBiasLogitsProcessor: SamplingParams(logit_bias={1: 2.5, 7: -1.0}),
    MinTokensLogitsProcessor: SamplingParams(min_tokens=3, stop_token_ids=[2], eos_token_id=5),
    AllowedTokenIdsLogitsProcessor: SamplingParams(allowed_token_ids=[3, 1]),
    BadWordsLogitsProcessor: SamplingParams(bad_words_token_ids=[[1, 7], [2]]),
    RepetitionPenaltyLogitsProcessor: SamplingParams(repetition_penalty=1.5),
    FrequencyPenaltyLogitsProcessor: SamplingParams(frequency_penalty=0.5),
    PresencePenaltyLogitsProcessor: SamplingParams(presence_penalty=-0.5),
    TemperatureLogitsProcessor: SamplingParams(temperature=0.5),
    HalvesLogitsProcessor: SamplingParams(extra_args={"halve": True}),
}
every_processor = pytest.mark.parametrize("kind", USES)


class Outputs(list[int]):
    """A list that can be watched leaving."""


def build(kind: type[Any]) -> Any:
    return kind(host_config(VOCAB, max_num_seqs=8), torch.device("cpu"), False)


def update(
    size: int,
    removed: tuple[int, ...] = (),
    added: tuple[Added, ...] = (),
    moved: tuple[tuple[int, int, MoveDirectionality], ...] = (),
) -> BatchUpdate:
    return BatchUpdate(size, removed, added, moved)


def started(kind: type[Any], *params: SamplingParams) -> Any:
    """A processor whose batch holds one request for each params, with some prompt and output."""
    processor = build(kind)
    processor.update_state(update(len(params), added=tuple(addition(row, each) for row, each in enumerate(params))))
    return processor


def addition(row: int, params: SamplingParams) -> Added:
    return row, params, list(PROMPT), list(OUTPUT)


def random_logits(rows: int, vocab: int = VOCAB) -> torch.Tensor:
    return torch.randn(rows, vocab, generator=torch.Generator().manual_seed(rows * vocab)) * 3


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))


def touched(processor: Any, logits: torch.Tensor) -> list[bool]:
    """For each row, whether apply changes it."""
    after = processor.apply(logits.clone())
    return [not same_bits(row, was) for row, was in zip(after, logits, strict=True)]


@every_processor
def test_before_any_add_the_input_comes_back(kind: type[Any]) -> None:
    logits = random_logits(3)
    before = logits.clone()
    assert build(kind).apply(logits) is logits
    assert same_bits(logits, before)


@every_processor
def test_without_users_the_input_comes_back(kind: type[Any]) -> None:
    logits = random_logits(2)
    before = logits.clone()
    assert started(kind, PLAIN, PLAIN).apply(logits) is logits
    assert same_bits(logits, before)


@every_processor
@pytest.mark.parametrize(
    "neutral", [PLAIN, SamplingParams(logit_bias={}, min_tokens=3), SamplingParams(eos_token_id=5)]
)
def test_a_request_that_asks_for_nothing_is_no_user(kind: type[Any], neutral: SamplingParams) -> None:
    assert started(kind, neutral).users.states == {}


@every_processor
def test_no_rows_at_all(kind: type[Any]) -> None:
    processor = started(kind, USES[kind])
    processor.update_state(update(0, removed=(0,)))
    assert processor.apply(torch.empty(0, VOCAB)).shape == (0, VOCAB)


@every_processor
def test_users_are_changed_in_place_and_others_are_not(kind: type[Any]) -> None:
    processor = started(kind, USES[kind], PLAIN, USES[kind])
    logits = random_logits(3)
    assert touched(processor, logits) == [True, False, True]
    assert processor.apply(logits) is logits


@every_processor
@pytest.mark.parametrize("vocab", [VOCAB, VISIT])
def test_a_slice_of_a_wider_tensor(kind: type[Any], vocab: int) -> None:
    processor = started(kind, USES[kind], USES[kind])
    wide = random_logits(2, vocab + 6)
    before, middle = wide.clone(), slice(3, vocab + 3)
    expected = processor.apply(wide[:, middle].clone())
    part = wide[:, middle]
    assert processor.apply(part) is part
    assert same_bits(wide[:, middle], expected)
    assert same_bits(wide[:, :3], before[:, :3]) and same_bits(wide[:, -3:], before[:, -3:])


@every_processor
def test_quiet_steps_and_repeated_calls_change_nothing(kind: type[Any]) -> None:
    processor = started(kind, PLAIN, USES[kind])
    logits = random_logits(2)
    first = processor.apply(logits.clone())
    processor.update_state(None)
    processor.update_state(update(2))
    assert same_bits(processor.apply(logits.clone()), first)
    assert same_bits(processor.apply(logits.clone()), first)


@every_processor
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda user: update(3, removed=(0,), added=(addition(0, user),)), [True, False, False]),
        (lambda user: update(3, added=(addition(0, PLAIN),)), [False, False, False]),
        (lambda user: update(3, removed=(2,), moved=((0, 2, ONE_WAY),)), [False, False, True]),
        (lambda user: update(3, moved=((1, 0, ONE_WAY),)), [False, False, False]),
        (lambda user: update(3, moved=((0, 2, SWAP), (2, 1, SWAP))), [False, True, False]),
        (lambda user: update(3, added=((1, user, None, [1]),), moved=((1, 2, ONE_WAY),)), [True, False, True]),
        (
            lambda user: update(3, moved=((0, 2, ONE_WAY), (1, 0, ONE_WAY), (2, 1, ONE_WAY))),
            [False, True, False],
        ),
        (lambda user: update(3, moved=((0, 0, SWAP), (1, 1, SWAP))), [True, False, False]),
    ],
    ids=[
        "removed and added",
        "replaced",
        "removed and moved to",
        "dropped",
        "chain",
        "added and moved",
        "cycle",
        "self",
    ],
)
def test_the_user_at_row_0_of_3_after_one_update(
    kind: type[Any], change: Callable[[SamplingParams], BatchUpdate], expected: list[bool]
) -> None:
    processor = started(kind, USES[kind], PLAIN, PLAIN)
    processor.update_state(change(USES[kind]))
    assert touched(processor, random_logits(3)) == expected


@every_processor
def test_a_vacated_row_used_again_by_another(kind: type[Any]) -> None:
    processor = started(kind, PLAIN, USES[kind])
    processor.update_state(update(1, removed=(1,)))
    processor.update_state(update(2, added=(addition(1, PLAIN),)))
    assert touched(processor, random_logits(2)) == [False, False]


@every_processor
@pytest.mark.parametrize(
    "departure",
    [
        update(2, removed=(1,)),
        update(2, added=(addition(1, PLAIN),)),
        update(2, moved=((0, 1, ONE_WAY),)),
        update(2, moved=((0, 1, SWAP), (1, 0, ONE_WAY))),
    ],
    ids=["removed", "replaced", "dropped", "swapped and dropped"],
)
def test_nothing_is_kept_of_a_request_that_left(kind: type[Any], departure: BatchUpdate) -> None:
    processor = started(kind, PLAIN)
    outputs, params = Outputs(OUTPUT), deepcopy(USES[kind])
    watched = weakref.ref(outputs), weakref.ref(params)
    processor.update_state(update(2, added=((1, params, [], outputs),)))
    processor.apply(random_logits(2))
    del outputs, params
    processor.update_state(departure)
    gc.collect()
    assert [reference() for reference in watched] == [None, None]


@every_processor
def test_256_wide_rows_come_out_as_each_would_alone(kind: type[Any]) -> None:
    logits = random_logits(1, WIDE) + torch.arange(256.0).unsqueeze(1)
    expected = {row: started(kind, USES[kind]).apply(logits[row : row + 1].clone()) for row in (0, 100, 255)}
    untouched = logits[7].clone()
    users = [PLAIN if row == 7 else USES[kind] for row in range(256)]
    started(kind, *users).apply(logits)
    assert all(same_bits(logits[row : row + 1], alone) for row, alone in expected.items())
    assert same_bits(logits[7], untouched)


@every_processor
def test_shared_params_are_read_and_not_changed(kind: type[Any]) -> None:
    params = deepcopy(USES[kind])
    processor, another = started(kind, params, params), started(kind, PLAIN, params)
    assert touched(processor, random_logits(2)) == [True, True]
    assert touched(another, random_logits(2)) == [False, True]
    assert params == USES[kind]


@pytest.mark.parametrize(
    ("kind", "invariant"),
    [
        (MinPLogitsProcessor, True),
        (LogitBiasLogitsProcessor, False),
        (MinTokensLogitsProcessor, False),
        (AllowedTokenIdsLogitsProcessor, False),
        (BadWordsLogitsProcessor, False),
        (RepetitionPenaltyLogitsProcessor, False),
        (FrequencyPenaltyLogitsProcessor, False),
        (PresencePenaltyLogitsProcessor, False),
        (TemperatureLogitsProcessor, True),
    ],
)
def test_argmax_invariance(kind: type[Any], invariant: bool) -> None:
    assert build(kind).is_argmax_invariant() is invariant


@every_processor
def test_params_in_range_are_accepted(kind: type[Any]) -> None:
    for params in (
        PLAIN,
        USES[kind],
        SamplingParams(min_p=1.0, logit_bias={}, min_tokens=0, stop_token_ids=[4]),
        SamplingParams(allowed_token_ids=[0, 0], bad_words_token_ids=[], temperature=0.0),
        SamplingParams(repetition_penalty=2.0**126, frequency_penalty=2.0, presence_penalty=-2.0, temperature=2.0),
        SamplingParams(repetition_penalty=2.0**-126, temperature=2.0**-126, bad_words_token_ids=[[0]]),
    ):
        assert kind.validate_params(params) is None


HUGE = 10**400
NO_NUMBERS: list[Any] = ["1", None, math.nan, math.inf, -math.inf, HUGE, -HUGE, [1.0], 1j]
"""What is no number in any bounds."""
NO_IDS: list[Any] = [-1, 1.0, "1", None, math.nan, math.inf, [1]]
"""What is no token id."""
NO_LISTS: list[Any] = [5, 1.5, True, False, "12", "", b"12", {}, {1: 2}, range(3), math.nan, HUGE]
"""What is no list of tokens or words."""
Domain = tuple[dict[str, Any], list[Any], list[Any]]
DOMAINS: dict[type[Any], dict[str, Domain]] = {
    AllowedTokenIdsLogitsProcessor: {
        "allowed_token_ids": (
            {},
            [None, [0], (3, 3), {2**40}],
            [[], (), set(), frozenset({1}), *NO_LISTS, *([1, token] for token in NO_IDS)],
        )
    },
    BadWordsLogitsProcessor: {
        "bad_words_token_ids": (
            {},
            [None, [], (), [[0]], ((1, 2), [3])],
            [[[]], [[1], ()], [1, 2], ["12"], [None], [{1}], {(1, 2)}, *NO_LISTS, *([[1, token]] for token in NO_IDS)],
        )
    },
    MinTokensLogitsProcessor: {
        "min_tokens": ({}, [0, 1, HUGE], [-1, 1.0, 0.0, "1", None, math.nan, math.inf, [1], -HUGE]),
        "stop_token_ids": (
            {"min_tokens": 1},
            [None, [], [0], (1, 1), {2}],
            [*NO_LISTS, *([1, token] for token in NO_IDS)],
        ),
        "eos_token_id": ({"min_tokens": 1}, [None, 0], [-1, 1.0, "1"]),
    },
    LogitBiasLogitsProcessor: {
        "logit_bias": (
            {},
            [None, {}, {0: 0}, {0: -0.0}, {1: -LARGEST, 2: LARGEST, 3: 2.0**-126, 4: -(2.0**-126), 5: 7}],
            [
                *([1], [], 5, True, "12", "", math.nan, HUGE, {(1,): 1.0}),
                *({token: 1.0} for token in NO_IDS if token != [1]),
                *({3: value} for value in (*NO_NUMBERS, 3.5e38, -1e39, 1e-38, -1e-40, 5e-324)),
                {3: math.nextafter(LARGEST, math.inf)},
            ],
        )
    },
    RepetitionPenaltyLogitsProcessor: {
        "repetition_penalty": ({}, [1, 2.0**-126, 2.0**126], [*NO_NUMBERS, 0, -0.0, -1.0, 1e-38, 1e38])
    },
    FrequencyPenaltyLogitsProcessor: {"frequency_penalty": ({}, [0, -2, 2.0, 1e-50], [*NO_NUMBERS, -2.1, 2.1, 3])},
    PresencePenaltyLogitsProcessor: {"presence_penalty": ({}, [0, -2, 2.0, 1e-50], [*NO_NUMBERS, -2.1, 2.1, 3])},
    TemperatureLogitsProcessor: {
        "temperature": ({}, [0, 0.0, -0.0, 2.0**-126, 1, 2], [*NO_NUMBERS, -0.5, 2.1, 3, 1e-40, -1e-40])
    },
    MinPLogitsProcessor: {"min_p": ({}, [0, 1, 5e-324, 1.0], [*NO_NUMBERS, -0.1, 1.1, 2, -1])},
    TopKLogitsProcessor: {
        "top_k": ({}, [-1, 0, 1, HUGE], [value for value in NO_NUMBERS if value != HUGE] + [-2, 1.0])
    },
    TopPLogitsProcessor: {"top_p": ({}, [1, 1.0, 5e-324], [*NO_NUMBERS, 0, 0.0, -0.1, 1.5, 2])},
}
"""kind -> field -> the fields it goes with, what is in its domain, and what is not."""


def of_domains(place: int) -> list[Any]:
    """(kind, params, field, value) for each value at a place of the domains."""
    return [
        pytest.param(kind, unverified(**domain[0] | {field: value}), field, value, id=f"{field}={value!r:.30}")
        for kind, fields in DOMAINS.items()
        for field, domain in fields.items()
        for value in domain[place]
    ]


def unverified(**fields: Any) -> SamplingParams:
    """Params with these fields as they are."""
    params = SamplingParams()
    vars(params).update(fields)
    return params


@pytest.mark.parametrize(("kind", "params", "field", "value"), of_domains(1))
def test_params_in_their_domain_are_accepted(kind: type[Any], params: SamplingParams, field: str, value: Any) -> None:
    before = deepcopy(params)
    for each in (kind, Pipeline):
        assert each.validate_params(params) is None
    assert params == before


@pytest.mark.parametrize(("kind", "params", "field", "value"), of_domains(2))
def test_params_outside_are_refused_in_one_line(
    kind: type[Any], params: SamplingParams, field: str, value: Any
) -> None:
    for each in (kind, Pipeline):
        with pytest.raises(ValueError) as refused:
            each.validate_params(params)
        line = str(refused.value)
        assert "\n" not in line
        if field == "eos_token_id":
            assert line.startswith("all_stop_token_ids must be a set of token ids, not {")
        else:
            assert line.startswith(f"{field} must be ") and line.endswith(f", not {value!r}")


@pytest.mark.parametrize("stops", NO_LISTS)
def test_stop_tokens_without_min_tokens_are_not_read(stops: Any) -> None:
    params = unverified(stop_token_ids=stops)
    assert MinTokensLogitsProcessor.validate_params(params) is None
    assert started(MinTokensLogitsProcessor, params).users.states == {}


@pytest.mark.parametrize("vocab", [8, VISIT, WIDE])
@pytest.mark.parametrize("shares", [[0.5, 0.1, 1.0], [0.0, 0.5, 0.0, 0.1, 0.0]])
@pytest.mark.parametrize("padding", [0, 2])
def test_min_p_is_a_threshold_below_the_maximum(vocab: int, shares: list[float], padding: int) -> None:
    processor = started(MinPLogitsProcessor, *[SamplingParams(min_p=share) for share in shares])
    logits = random_logits(len(shares) + padding, vocab)
    edge = logits.amax(1, keepdim=True) + torch.tensor(shares + [0.0] * padding).log().unsqueeze(1)
    expected = torch.where(logits >= edge, logits, -math.inf)
    assert same_bits(processor.apply(logits), expected)


def test_min_p_keeps_a_token_on_the_edge_the_same_way_in_both_forms() -> None:
    log_shares = torch.tensor([[0.0], [-1.0], [-1e-3], [-700.0]])
    for scale in (1e-38, 1.0, 1e30):
        logits = random_logits(4) * scale
        edge = logits.amax(1) + log_shares.squeeze(1)
        logits[:, 3] = edge
        logits[:, 4] = edge.nextafter(torch.full_like(edge, -math.inf))
        at_once, by_row = logits.clone(), logits.clone()
        mask_batch(at_once, log_shares)
        mask_rows(list(by_row), log_shares)
        assert same_bits(at_once, by_row)
        assert torch.equal(at_once[:, 3], edge) and at_once[:, 4].isneginf().all()
        assert torch.equal(at_once.amax(1), logits.amax(1))


@pytest.mark.parametrize("vocab", [VOCAB, VISIT])
@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_min_p_leaves_rows_that_are_not_finite(vocab: int, odd: float) -> None:
    processor = started(MinPLogitsProcessor, USES[MinPLogitsProcessor], USES[MinPLogitsProcessor], PLAIN)
    logits = random_logits(3, vocab)
    logits[0, 3] = odd
    logits[1] = -math.inf
    assert touched(processor, logits) == [False, False, False]


@pytest.mark.parametrize("vocab", [VOCAB, VISIT])
@pytest.mark.parametrize("value", [-LARGEST, -0.0, 0.0, 1e-45, LARGEST])
def test_min_p_keeps_all_tokens_that_are_the_maximum(vocab: int, value: float) -> None:
    processor = started(MinPLogitsProcessor, SamplingParams(min_p=1.0))
    assert touched(processor, torch.full((1, vocab), value)) == [False]


def test_logit_bias_is_one_float32_addition() -> None:
    processor = started(LogitBiasLogitsProcessor, SamplingParams(logit_bias={0: 0.1, VOCAB - 1: -100.0}), PLAIN)
    logits = random_logits(2)
    expected = logits.clone()
    expected[0, 0] += torch.tensor(0.1)
    expected[0, VOCAB - 1] -= 100.0
    assert same_bits(processor.apply(logits), expected)


def test_logit_bias_leaves_minus_infinity_and_nan() -> None:
    logits = torch.full((1, VOCAB), -math.inf)
    logits[0, 7] = math.nan
    after = started(LogitBiasLogitsProcessor, USES[LogitBiasLogitsProcessor]).apply(logits)
    assert after[0, 1] == -math.inf and after[0, 7].isnan()


def test_a_token_beyond_the_vocabulary_never_reaches_the_next_row() -> None:
    processor = started(LogitBiasLogitsProcessor, SamplingParams(logit_bias={VOCAB: 1.0}), PLAIN)
    with pytest.raises(IndexError):
        processor.apply(random_logits(2))


@pytest.mark.parametrize(("length", "blocked"), [(0, True), (2, True), (3, False), (4, False)])
def test_min_tokens_masks_every_stop_token_until_the_list_is_long_enough(length: int, blocked: bool) -> None:
    processor = build(MinTokensLogitsProcessor)
    processor.update_state(update(1, added=((0, USES[MinTokensLogitsProcessor], None, [9] * length),)))
    logits = random_logits(1)
    expected = logits.clone()
    if blocked:
        expected[0, [2, 5]] = -math.inf
    assert same_bits(processor.apply(logits), expected)


def test_min_tokens_reads_the_live_list_at_apply() -> None:
    processor, outputs, logits = build(MinTokensLogitsProcessor), [9], random_logits(1)
    processor.update_state(update(1, added=((0, USES[MinTokensLogitsProcessor], [], outputs),)))
    lengths = []
    for change in ([9], [9, -1, -1], [9, 9, 9, 9], [9, 9], [9, 9, 9], []):
        processor.update_state(None)
        outputs[:] = change
        lengths.append(touched(processor, logits) == [True])
    assert lengths == [True, False, False, True, False, True]


def test_min_tokens_one_row_released_as_another_is_blocked() -> None:
    processor, logits = build(MinTokensLogitsProcessor), random_logits(2)
    one, other = [9, 9], [9, 9, 9]
    params = USES[MinTokensLogitsProcessor]
    processor.update_state(update(2, added=((0, params, [], one), (1, params, [], other))))
    assert touched(processor, logits) == [True, False]
    one.append(9)
    other.pop()
    assert touched(processor, logits) == [False, True]


def test_min_tokens_follows_the_list_that_came_last() -> None:
    processor, logits = build(MinTokensLogitsProcessor), random_logits(1)
    former, latter = [9, 9], [9, 9]
    for outputs in (former, latter):
        processor.update_state(update(1, added=((0, USES[MinTokensLogitsProcessor], [], outputs),)))
    former.append(9)
    assert touched(processor, logits) == [True]
    latter.append(9)
    assert touched(processor, logits) == [False]


def test_min_tokens_rows_keep_their_own_stop_tokens_through_a_swap() -> None:
    one = SamplingParams(min_tokens=2, stop_token_ids=[2])
    other = SamplingParams(min_tokens=2, stop_token_ids=[7, 8])
    processor = started(MinTokensLogitsProcessor, one, other)
    processor.apply(random_logits(2))
    processor.update_state(update(2, moved=((0, 1, SWAP),)))
    after = processor.apply(random_logits(2))
    assert after.isneginf().nonzero().tolist() == [[0, 7], [0, 8], [1, 2]]


ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, LARGEST, -LARGEST, 1.0, -1.0, 16777216.0]
"""NaN, infinities, zeros, subnormal, huge and plain logits."""


def odd_logits(rows: int, vocab: int, start: int = 0) -> torch.Tensor:
    """The odd logits over and over, from one of them on."""
    return torch.tensor([ODD[(start + place) % len(ODD)] for place in range(rows * vocab)]).reshape(rows, vocab)


@pytest.mark.parametrize(
    ("allowed", "vocab"),
    [([0], 1), ([3, 1], VOCAB), ([1, 3, 3, 1], VOCAB), ([0, WIDE - 1], WIDE), (list(range(WIDE)), WIDE)],
    ids=["one token", "two", "listed twice", "two of many", "all"],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_allowed_tokens_keep_their_bits_and_all_others_are_masked(allowed: list[int], vocab: int, rows: int) -> None:
    logits = odd_logits(rows, vocab)
    expected = torch.full_like(logits, -math.inf)
    expected[:, allowed] = logits[:, allowed]
    processor = started(AllowedTokenIdsLogitsProcessor, *[SamplingParams(allowed_token_ids=allowed)] * rows)
    assert same_bits(processor.apply(logits), expected)


@pytest.mark.parametrize(
    "params", [SamplingParams(allowed_token_ids=[1, VOCAB]), SamplingParams(bad_words_token_ids=[[VOCAB]])]
)
def test_a_mask_beyond_the_vocabulary_is_refused_before_a_row_changes(params: SamplingParams) -> None:
    kind = AllowedTokenIdsLogitsProcessor if params.allowed_token_ids else BadWordsLogitsProcessor
    logits = random_logits(2)
    before = logits.clone()
    with pytest.raises(IndexError):
        started(kind, params, PLAIN).apply(logits)
    assert same_bits(logits, before)


def test_a_list_beyond_the_vocabulary_is_refused_before_the_pipeline_changes_a_row() -> None:
    pipeline, logits = build(Pipeline), random_logits(2)
    within = SamplingParams(allowed_token_ids=[1, VOCAB - 1], logit_bias={1: 1.0}, temperature=0.5, top_k=1)
    beyond = SamplingParams(allowed_token_ids=[1, VOCAB], top_k=1)
    before = logits.clone()
    pipeline.update_state(update(2, added=(addition(0, within), addition(1, beyond))))
    with pytest.raises(IndexError, match=f"token {VOCAB} of allowed_token_ids"):
        pipeline.apply(logits)
    assert same_bits(logits, before)
    pipeline.update_state(update(2, added=(addition(1, within),)))
    assert pipeline.apply(logits).isfinite().sum(1).tolist() == [1, 1]


def masked_by_bad_words(params: SamplingParams, outputs: list[int]) -> list[int]:
    """Which tokens the processor masks in a row of plain logits."""
    processor = build(BadWordsLogitsProcessor)
    processor.update_state(update(1, added=((0, params, list(PROMPT), outputs),)))
    return list(processor.apply(torch.zeros(1, VOCAB))[0].isneginf().nonzero().flatten().tolist())


@pytest.mark.parametrize(
    ("words", "outputs", "masked"),
    [
        ([[2]], [], [2]),
        ([[2]], [2, 2], [2]),
        ([[1, 2]], [1], [2]),
        ([[1, 2]], [], []),
        ([[1, 2]], [1, 3], []),
        ([[9, 2]], [], []),
        ([[9, 1, 2]], [1], []),
        ([[1, 1, 2]], [1], []),
        ([[1, 1, 2]], [1, 1, 1], [2]),
        ([[3, 1, 5], [1, 6], [3, 1, 5], [2, 1, 7], [8]], [3, 1], [5, 6, 8]),
        ([[1, 2]], [1, -1], []),
    ],
)
def test_bad_words_mask_what_would_complete_one(words: list[list[int]], outputs: list[int], masked: list[int]) -> None:
    assert masked_by_bad_words(SamplingParams(bad_words_token_ids=words), outputs) == masked


def test_bad_words_against_an_oracle_on_lists_that_change() -> None:
    chance = random.Random(0)
    words = [[[chance.randrange(3) for _ in range(chance.randint(1, 4))] for _ in range(5)] for _ in range(3)]
    outputs: list[list[int]] = [[], [], []]
    processor = build(BadWordsLogitsProcessor)
    params = [SamplingParams(bad_words_token_ids=each) for each in words]
    processor.update_state(update(3, added=tuple((row, params[row], [0, 1], outputs[row]) for row in range(3))))
    for _ in range(200):
        for output in outputs:
            change_end(output, 3, chance)
        logits = odd_logits(3, VOCAB)
        expected = logits.clone()
        for row, output in enumerate(outputs):
            for word in words[row]:
                if [*output, word[-1]][-len(word) :] == word:
                    expected[row, word[-1]] = -math.inf
        processor.update_state(None)
        assert same_bits(processor.apply(logits), expected)


def change_end(output: list[int], vocab: int, chance: random.Random) -> None:
    """Rejects some of the last tokens, most often none, and lets some land, now and then a placeholder."""
    del output[len(output) - min(len(output), chance.choice([0, 0, 0, 1, 2, 9])) :]
    output += [chance.randrange(-1, vocab) for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))]


def penalised(
    params: SamplingParams, prompt: Sequence[int] | None, output: list[int], row: torch.Tensor
) -> torch.Tensor:
    """Repetition, frequency and presence token by token, in numpy's float32."""
    values = row.numpy().copy()
    factor, step, once = map(np.float32, (params.repetition_penalty, params.frequency_penalty, params.presence_penalty))
    with np.errstate(all="ignore"):
        for token in range(len(values)):
            if factor != 1 and (token in output or token in (prompt or ())):
                values[token] = values[token] / factor if values[token] > 0 else values[token] * factor
            if step and token in output:
                values[token] -= step * np.float32(output.count(token))
            if once and token in output:
                values[token] -= once
    return torch.from_numpy(values)


def only(kind: type[Any], params: SamplingParams) -> SamplingParams:
    """The params with the penalty of one kind alone."""
    field = PENALTIES[kind]
    return SamplingParams(**{field: getattr(params, field)})


PENALTIES = {
    RepetitionPenaltyLogitsProcessor: "repetition_penalty",
    FrequencyPenaltyLogitsProcessor: "frequency_penalty",
    PresencePenaltyLogitsProcessor: "presence_penalty",
}
every_penalty = pytest.mark.parametrize("kind", PENALTIES)


def random_penalties(chance: random.Random) -> SamplingParams:
    return SamplingParams(
        repetition_penalty=chance.choice([1.0, 1.1, 0.7, 2.0**126, 2.0**-126]),
        frequency_penalty=chance.choice([0.0, -0.0, 0.1, -1.9, 1e-50]),
        presence_penalty=chance.choice([0.0, -0.0, 0.3, -2.0]),
    )


@pytest.mark.parametrize("seed", range(20))
def test_penalties_against_an_oracle_on_lists_that_change(seed: int) -> None:
    chance, vocab, rows = random.Random(seed), (1, 5, 40)[seed % 3], range(4)
    processors = {kind: build(kind) for kind in PENALTIES}
    params: dict[int, SamplingParams] = {}
    prompts: dict[int, list[int] | None] = {}
    outputs: dict[int, list[int]] = {}
    together: dict[int, Any] = {}
    for step in range(60):
        arrivals = [row for row in rows if row not in params or chance.random() < 0.05]
        for row in arrivals:
            params[row] = random_penalties(chance)
            prompts[row] = chance.choice([None, [], [-1, vocab, 0, 0], [chance.randrange(-1, vocab + 2) for _ in rows]])
            outputs[row] = [chance.randrange(-1, vocab + 2) for _ in range(chance.randrange(6))]
            together[row] = penalties(params[row], prompts[row], outputs[row])
        for processor in processors.values():
            added = tuple((row, params[row], prompts[row], outputs[row]) for row in arrivals)
            processor.update_state(update(4, added=added) if arrivals else None)
        for row in rows:
            change_end(outputs[row], vocab + 2, chance)
        if chance.random() < 0.3:
            continue
        logits = odd_logits(4, vocab, step)
        for kind, processor in processors.items():
            alone = [penalised(only(kind, params[row]), prompts[row], outputs[row], logits[row]) for row in rows]
            assert same_bits(processor.apply(logits.clone()), torch.stack(alone))
            assert same_bits(processor.apply(logits.clone()), torch.stack(alone))
        all_three = [penalised(params[row], prompts[row], outputs[row], logits[row]) for row in rows]
        penalise(logits, {row: state for row, state in together.items() if state})
        assert same_bits(logits, torch.stack(all_three))


@every_penalty
def test_penalties_on_a_wide_row_that_has_every_token(kind: type[Any]) -> None:
    params, row = USES[kind], random_logits(1, WIDE)
    processor, outputs = build(kind), [*range(WIDE), 5]
    processor.update_state(update(1, added=((0, params, [], outputs),)))
    factor, step, once = params.repetition_penalty, params.frequency_penalty, params.presence_penalty
    expected = torch.where(row > 0, row / factor, row * factor) - step - once
    expected[0, 5] -= step
    assert same_bits(processor.apply(row.clone()), expected)
    outputs.clear()
    assert touched(processor, row) == [False]


@every_penalty
def test_penalties_leave_a_request_without_any_token(kind: type[Any]) -> None:
    processor = build(kind)
    processor.update_state(update(1, added=((0, USES[kind], None, []),)))
    assert touched(processor, random_logits(1)) == [False]


def test_only_repetition_reads_the_prompt() -> None:
    for kind in PENALTIES:
        processor = build(kind)
        processor.update_state(update(1, added=((0, USES[kind], [3], []),)))
        assert touched(processor, random_logits(1)) == [kind is RepetitionPenaltyLogitsProcessor]


@every_penalty
def test_a_replaced_list_is_counted_from_its_start(kind: type[Any]) -> None:
    processor, logits = started(kind, USES[kind]), random_logits(1)
    processor.apply(logits.clone())
    processor.update_state(update(1, added=((0, USES[kind], None, [2, 3]),)))
    assert processor.apply(logits.clone()).ne(logits).nonzero()[:, 1].tolist() == [2, 3]


class Watched(list[int]):
    """A list that remembers by which positions and slices it was read."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(tokens)
        self.read: list[Any] = []

    def __getitem__(self, key: Any) -> Any:
        self.read.append(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("changed", [*range(1, 18), 1000])
def test_the_common_length_takes_as_many_reads_as_tokens_changed(changed: int) -> None:
    one, other = ([1000 + place for place in range(1000)] + [end] * changed for end in (1, 2))
    watched = Watched(one)
    assert common_length(watched, other) == 1000
    slices = [key for key in watched.read if isinstance(key, slice)]
    assert len(slices) <= 1 + changed.bit_length()
    assert len(watched.read) - len(slices) <= changed


@pytest.mark.parametrize("vocab", [1, VOCAB, WIDE])
@pytest.mark.parametrize("shape", ["one row", "with gaps"])
def test_temperature_is_one_float32_division(vocab: int, shape: str) -> None:
    temperatures = [0.7] if shape == "one row" else [0.7, 1.3, 1.0, 2.0, 0.0, 9e-6, 1e-5, 1.5]
    logits = random_logits(len(temperatures), vocab)
    logits[:, : len(ODD)] = odd_logits(len(temperatures), len(ODD))[:, :vocab]
    processor = started(TemperatureLogitsProcessor, *[SamplingParams(temperature=each) for each in temperatures])
    divisors = np.array([each if each >= 1e-5 else 1.0 for each in temperatures], np.float32)[:, None]
    with np.errstate(over="ignore"):
        expected = torch.from_numpy(logits.numpy() / divisors)
    assert same_bits(processor.apply(logits), expected)
