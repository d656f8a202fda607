"""The model: the worked examples, the engine's algorithm against the list law, the row functions' edges."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch, IllFormed, Update, apply_update
from logitsproc.reference.expectation import Expectation, admits, refused, untouched
from logitsproc.reference.loading import Refused, loaded
from logitsproc.reference.numerics import MASKED, band, f32, lowered, mass_band, rounded, scaled
from logitsproc.reference.pipeline import pipeline, skips_invariant
from logitsproc.reference.processor import expected_rows, keeps_argmax, keeps_arguments
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step, listed
from logitsproc.reference.request import Request
from logitsproc.reference.row.allowed_token_ids import allowed_token_ids
from logitsproc.reference.row.bad_words import bad_words, completing_tokens
from logitsproc.reference.row.frequency_penalty import frequency_penalty
from logitsproc.reference.row.logit_bias import logit_bias
from logitsproc.reference.row.min_p import keep_likely, min_p, narrowed, without_order
from logitsproc.reference.row.min_tokens import min_tokens, stop_tokens
from logitsproc.reference.row.presence_penalty import presence_penalty
from logitsproc.reference.row.repetition_penalty import repetition_penalty
from logitsproc.reference.row.temperature import is_greedy, temperature
from logitsproc.reference.row.top_k import keep_largest, top_k
from logitsproc.reference.row.top_p import fewest, keep_mass, larger_masses, rival_masses, share, top_p
from logitsproc.reference.validation import (
    DOMAINS,
    has_floats,
    in_vocabulary,
    is_minus_one,
    is_number,
    named_tokens,
    validate,
)

A, B, C, D, E, F, Z = (Request(name) for name in "ABCDEFZ")


def test_fewer_arrivals_than_departures_in_both_dialects() -> None:
    moved = ((3, 2, UNIDIRECTIONAL), (0, 1, SWAP))
    for dialect, removed in ((EXPLICIT, (2,)), (ELIDED, ())):
        batch: Batch = [A, B, C, D]
        update = engine_step(batch, [0, 2], [E], [(0, 1)], dialect)
        assert update == Update(3, removed, ((0, E),), moved)
        assert batch == [B, E, D]


def test_more_arrivals_than_departures_in_both_dialects() -> None:
    for dialect in (EXPLICIT, ELIDED):
        batch: Batch = [A, B, C, D]
        update = engine_step(batch, [2], [E, F], [(0, 1)], dialect)
        assert update == Update(5, (), ((2, E), (4, F)), ((0, 1, SWAP),))
        assert batch == [B, A, E, D, F]


@given(st.data(), st.integers(0, 6), st.sampled_from([EXPLICIT, ELIDED]))
def test_following_the_engines_update_gives_the_engines_batch(data: st.DataObject, size: int, dialect: str) -> None:
    before: Batch = [Request(f"R{row}") for row in range(size)]
    vacated = data.draw(st.sets(st.sampled_from(range(size))) if size else st.just(set()))
    arrivals = [Request(f"N{place}") for place in range(data.draw(st.integers(0, 3)))]
    after = size - len(vacated) + len(arrivals)
    pairs = st.tuples(st.integers(0, after - 1), st.integers(0, after - 1)) if after else st.nothing()
    swaps = data.draw(st.lists(pairs, max_size=3) if after else st.just([]))
    engine, follower = list(before), list(before)
    update = engine_step(engine, vacated, arrivals, swaps, dialect)
    apply_update(follower, update)
    assert follower == engine
    assert None not in engine
    assert (update is None) == (not vacated and not arrivals and not swaps)


@pytest.mark.parametrize(
    "update",
    [
        Update(1, removed=(1,)),
        Update(0, removed=(0, 0)),
        Update(3, added=((2, B),)),
        Update(1, moved=((0, 0, UNIDIRECTIONAL),)),
        Update(1, moved=((1, 0, UNIDIRECTIONAL),)),
        Update(1, moved=((0, 1, UNIDIRECTIONAL),)),
        Update(1, moved=((0, 1, SWAP),)),
        Update(0),
        Update(1, removed=(-1,)),
    ],
)
def test_what_the_list_law_has_no_meaning_for_is_ill_formed(update: Update) -> None:
    with pytest.raises(IllFormed):
        apply_update([A], update)


SPARSE = [[A if live else None for live in bits] for size in range(4) for bits in product((0, 1), repeat=size)]
LONG: Batch = [*[A] * 298, None, B]


def listed_meaning(batch: Batch, kind: str, row: int, other: int) -> Batch | None:
    """What a list has after the operation; None when it names a row that it cannot."""
    rows, after = range(len(batch)), list(batch)
    holds = row in rows and batch[row] is not None
    match kind:
        case "removed" if holds:
            after[row] = None
        case "added" if row in range(len(batch) + 1):
            after[row : row + 1] = [Z]
        case "UNIDIRECTIONAL" if holds and other in rows and other != row:
            after[row], after[other] = None, batch[row]
        case "SWAP" if row in rows and other in rows:
            after[row], after[other] = batch[other], batch[row]
        case _:
            return None
    return after


def telling(kind: str, row: int, other: int, size: int) -> Update:
    """The update that has this operation alone; its direction is a string of its own, as one that was read."""
    told = {"removed": (row,), "added": ((row, Z),)}.get(kind, ((row, other, kind.lower().upper()),))
    return Update(size, **{kind if kind in ("removed", "added") else "moved": told})


@pytest.mark.parametrize("kind", ["removed", "added", UNIDIRECTIONAL, SWAP])
def test_every_operation_has_the_lists_meaning_or_is_ill_formed(kind: str) -> None:
    for batch, rows in [*((batch, range(-2, len(batch) + 3)) for batch in SPARSE), (LONG, range(297, 303))]:
        for row, other in product(rows, rows):
            wanted, got = listed_meaning(batch, kind, row, other), list(batch)
            if wanted is None:
                with pytest.raises(IllFormed):
                    apply_update(got, telling(kind, row, other, len(batch)))
            else:
                apply_update(got, telling(kind, row, other, len(wanted)))
                assert got == wanted


def test_updates_and_expectations_are_values_and_requests_are_themselves() -> None:
    for value, field in ((Update(1), "batch_size"), (untouched([1.0]), "untouched")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field, 2)
    assert Update(1) == Update(1)
    assert Request("A") != Request("A")
    assert len({Request("A"), Request("A")}) == 2


def test_a_dialect_that_was_read_is_the_same_dialect() -> None:
    assert listed([1, 4], 3, EXPLICIT.upper().lower()) == [1, 4]


def test_overlap_has_its_documented_meaning() -> None:
    batch: Batch = [A]
    apply_update(batch, Update(1, removed=(0,), added=((0, B),)))
    assert batch == [B]


@given(st.data(), st.lists(st.sampled_from([None, {}, {"min_p": 0.5}, {"min_p": 0.1}]), max_size=5))
def test_a_row_is_the_same_alone_and_among_others(data: st.DataObject, params: list) -> None:
    batch: Batch = [None if one is None else Request("A", one) for one in params]
    rows = data.draw(
        st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=len(batch), max_size=len(batch))
    )
    together = expected_rows(batch, min_p, rows)
    assert together == [expected_rows([held], min_p, [row])[0] for held, row in zip(batch, rows, strict=True)]


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=8), st.floats(1e-3, 1))
def test_min_p_in_logits_is_min_p_in_probabilities(logits: list[float], share: float) -> None:
    largest = max(logits)
    expectation = min_p({"min_p": share}, None, [], logits)
    for token, logit in enumerate(logits):
        if token in expectation.either:
            assert abs(logit - largest - math.log(share)) <= band(math.log(share), largest + math.log(share))
        else:
            stays = math.exp(logit - largest) >= share or logit == largest
            assert (expectation.low[token] != MASKED) == stays
    assert keeps_argmax(logits, list(expectation.low))


@pytest.mark.parametrize("row", [[math.nan, 1.0], [math.inf, 1.0], [MASKED, MASKED], [math.nan, MASKED]])
def test_min_p_leaves_rows_without_a_finite_maximum_alone(row: list[float]) -> None:
    assert min_p({"min_p": 0.5}, None, [], row).untouched


@given(st.floats(width=32, allow_nan=False), st.floats(-100, 100))
def test_an_edit_is_one_rounding_wide(logit: float, parameter: float) -> None:
    low, high = rounded(logit, parameter)
    assert low <= high
    for exact in (logit + parameter, logit + f32(parameter)):
        assert low <= f32(exact) <= high


@pytest.mark.parametrize("value", [MASKED, math.inf, math.nan])
def test_a_bias_on_what_is_not_finite_changes_nothing(value: float) -> None:
    expectation = logit_bias({"logit_bias": {0: 3.0}}, None, [], [value, 0.0])
    assert admits(expectation, [value, 0.0])
    assert not admits(expectation, [3.0, 0.0])


@pytest.mark.parametrize(("count", "blocked"), [(1, True), (2, False), (3, False)])
def test_min_tokens_at_its_boundary(count: int, blocked: bool) -> None:
    params = {"min_tokens": 2, "stop_token_ids": [0], "eos_token_id": 2}
    expectation = min_tokens(params, None, [7] * count, [1.0, 1.0, 1.0])
    assert list(expectation.low) == ([MASKED, 1.0, MASKED] if blocked else [1.0, 1.0, 1.0])
    assert expectation.untouched is not blocked


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ([], [], True),
        ([MASKED, MASKED], [MASKED, MASKED], True),
        ([1.0, 1.0], [MASKED, 0.5], True),
        ([1.0, 0.0], [0.0, 1.0], False),
        ([math.nan, 1.0], [math.nan, MASKED], True),
        ([1.5, float("1.5"), 0.0], [MASKED, 2.5, float("2.5")], True),
        ([0.0, 1.0], [float("2.5"), 2.5], True),
    ],
)
def test_argmax_is_kept_when_one_of_the_largest_stays_largest(
    before: list[float], after: list[float], kept: bool
) -> None:
    assert keeps_argmax(before, after) is kept


FLOATS = st.floats(-1e4, 1e4, width=32)
TOKENS = st.lists(st.integers(0, 3), max_size=6)


def test_allowed_ids_fill_what_is_not_listed_and_leave_the_rest_its_bits() -> None:
    row = [math.nan, math.inf, MASKED, -0.0]
    expectation = allowed_token_ids({"allowed_token_ids": [3, 2, 3]}, None, [], row)
    assert list(expectation.low) == [MASKED, MASKED, MASKED, 0.0]
    assert math.copysign(1, expectation.low[3]) == -1
    assert admits(allowed_token_ids({"allowed_token_ids": [3, 2, 1, 0]}, None, [], row), row)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), max_size=4), TOKENS)
def test_a_word_is_complete_where_the_outputs_and_its_last_token_end_with_it(words: list, output: list[int]) -> None:
    completing = completing_tokens({"bad_words_token_ids": words}, output)
    for token in range(3):
        text = "".join(map(str, [*output, token]))
        assert (token in completing) == any(text.endswith("".join(map(str, word))) for word in words)


@pytest.mark.parametrize("prompt", [None, [], [1, 2]])
def test_the_prompt_begins_no_bad_word(prompt: list[int] | None) -> None:
    assert bad_words({"bad_words_token_ids": [[2, 0], [1, 2, 3]]}, prompt, [], [1.0] * 4).untouched


@given(FLOATS, st.floats(0.01, 100))
def test_every_way_to_scale_in_float32_is_admitted(logit: float, factor: float) -> None:
    single = f32(factor)
    divided = [f32(logit / factor), f32(logit / single), f32(logit * f32(1 / single))]
    multiplied = [f32(logit * factor), f32(logit * single)]
    expectation = repetition_penalty({"repetition_penalty": factor}, [0], [], [logit])
    assert all(admits(expectation, [value]) for value in (divided if logit > 0 else multiplied))
    if factor != 1:
        assert all(admits(temperature({"temperature": factor}, None, [], [logit]), [value]) for value in divided)


@given(FLOATS, st.floats(-2, 2), st.integers(1, 50))
def test_every_way_to_take_a_penalty_in_float32_is_admitted(logit: float, penalty: float, count: int) -> None:
    one_by_one, single = logit, f32(penalty)
    for _ in range(count):
        one_by_one = f32(one_by_one - single)
    at_once = [f32(logit - penalty * count), f32(logit - f32(single * count))]
    expectation = frequency_penalty({"frequency_penalty": penalty}, None, [0] * count, [logit])
    assert all(admits(expectation, [value]) for value in (one_by_one, *at_once))


@given(TOKENS, TOKENS, st.lists(FLOATS, min_size=4, max_size=4))
def test_penalties_are_of_what_was_said(prompt: list[int], output: list[int], row: list[float]) -> None:
    frequency = frequency_penalty({"frequency_penalty": 0.5}, prompt, output, row)
    presence = presence_penalty({"presence_penalty": 0.5}, prompt, output, row)
    repetition = repetition_penalty({"repetition_penalty": 2.0}, prompt, output, row)
    counts = Counter(output)
    assert admits(frequency, [f32(logit - 0.5 * counts[token]) for token, logit in enumerate(row)])
    assert admits(presence, [f32(logit - 0.5 * (token in output)) for token, logit in enumerate(row)])
    seen = {*prompt, *output}
    halved = [(logit / 2 if logit > 0 else logit * 2) if token in seen else logit for token, logit in enumerate(row)]
    assert admits(repetition, halved)
    for expectation, named in ((frequency, counts), (presence, counts), (repetition, seen)):
        others = [token for token in range(4) if token not in named]
        assert all(expectation.low[token] == expectation.high[token] == row[token] for token in others)


@pytest.mark.parametrize("value", [MASKED, math.inf, math.nan])
def test_scaling_and_penalties_leave_what_is_not_finite(value: float) -> None:
    for expectation in (
        repetition_penalty({"repetition_penalty": 0.5}, [0], [], [value]),
        frequency_penalty({"frequency_penalty": -2.0}, [], [0, 0], [value]),
        presence_penalty({"presence_penalty": 2.0}, [], [0], [value]),
        temperature({"temperature": 2.0}, [], [], [value]),
    ):
        assert not expectation.untouched
        assert admits(expectation, [value])
        assert not admits(expectation, [1.0])


def test_penalties_do_without_a_prompt_and_with_ids_that_the_vocabulary_does_not_have() -> None:
    assert repetition_penalty({"repetition_penalty": 2.0}, None, [], [1.0]).untouched
    assert repetition_penalty({"repetition_penalty": 2.0}, [7], [-1], [1.0]).untouched
    assert admits(frequency_penalty({"frequency_penalty": 2.0}, None, [7, -1], [1.0]), [1.0])
    assert admits(presence_penalty({"presence_penalty": 2.0}, None, [7, -1], [1.0]), [1.0])


@pytest.mark.parametrize(
    ("divisor", "row", "scaled"), [(0.5, 3e38, math.inf), (0.5, -3e38, MASKED), (0.7, 0.0, 0.0), (0.7, -0.0, 0.0)]
)
def test_temperature_at_the_ends_of_float32(divisor: float, row: float, scaled: float) -> None:
    expectation = temperature({"temperature": divisor}, None, [], [row])
    assert (expectation.low[0], expectation.high[0]) == (scaled, scaled)


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0}, {"temperature": 0.0}, {"temperature": 9e-6}])
def test_temperature_1_and_greedy_requests_leave_the_row_alone(params: dict) -> None:
    assert temperature(params, None, [], [1.0, math.nan]).untouched


@given(st.lists(st.sampled_from([MASKED, -0.0, 0.0, 1.0, 2.0, math.inf]), min_size=1, max_size=8), st.integers(1, 9))
def test_top_k_keeps_what_fewer_than_k_exceed(row: list[float], k: int) -> None:
    expectation = top_k({"top_k": k}, None, [], row)
    assert not expectation.either
    assert list(expectation.low) == list(expectation.high) == largest_tokens(row, k)
    assert expectation.untouched == (k >= len(row))


@pytest.mark.parametrize("kept", [[1.0, math.nan, MASKED], [MASKED, math.nan, 2.0], [MASKED, math.nan, MASKED]])
def test_beside_nan_top_k_may_keep_or_mask(kept: list[float]) -> None:
    expectation = top_k({"top_k": 1}, None, [], [1.0, math.nan, 2.0])
    assert admits(expectation, kept)
    assert not admits(expectation, [1.0, MASKED, 2.0])
    assert not admits(expectation, [1.5, math.nan, 2.0])


@given(st.lists(FLOATS.map(lambda value: value / 2000), min_size=1, max_size=8), st.floats(1e-6, 1, exclude_max=True))
def test_top_p_keeps_what_those_before_it_do_not_reach_p(row: list[float], p: float) -> None:
    expectation = top_p({"top_p": p}, None, [], row)
    total = math.fsum(map(math.exp, row))
    for token, logit in enumerate(row):
        before = math.fsum(math.exp(other) for other in row if other > logit) / total
        if row.count(logit) == 1 and abs(before - p) > 2 * mass_band(len(row)):
            assert (expectation.low[token] != MASKED) == (before < p)
            assert token not in expectation.either
    assert admits(expectation, prefix_of_mass(row, p, list(range(len(row)))))
    assert not admits(expectation, [MASKED] * len(row))


def test_top_p_keeps_as_many_equals_as_it_takes_and_any_of_them() -> None:
    expectation = top_p({"top_p": 0.6}, None, [], [1.0, 1.0, 1.0, 1.0, MASKED])
    assert admits(expectation, [1.0, MASKED, 1.0, 1.0, MASKED])
    assert admits(expectation, [MASKED, 1.0, 1.0, 1.0, MASKED])
    for wrong in ([1.0, MASKED, MASKED, 1.0, MASKED], [1.0, 1.0, 1.0, 1.0, MASKED]):
        assert not admits(expectation, wrong)


@pytest.mark.parametrize("row", [[math.nan, 1.0], [math.inf, 1.0], [MASKED, MASKED], [math.nan, MASKED]])
def test_top_p_leaves_rows_without_a_finite_maximum_alone(row: list[float]) -> None:
    assert top_p({"top_p": 0.5}, None, [], row).untouched


def interval(centre: Fraction, width: Fraction) -> tuple[float, float]:
    """The float32 at both ends."""
    return f32(float(centre - width)), f32(float(centre + width))


@pytest.mark.parametrize("value", [3.0, -5.5, 1.0, 1e30, 2.0**-126, 2.0**-140, -(2.0**-148)])
def test_a_product_is_as_exact_as_the_spec_says(value: float) -> None:
    x = Fraction(value)
    assert scaled(value) == interval(x, abs(x) / 2**22 + Fraction(1, 2**149))


@pytest.mark.parametrize(
    ("logit", "penalty", "count"),
    [(1.0, 0.5, 1), (1.0, 0.5, 3), (-3.0, 0.25, 7), (0.0, 2.0**-145, 4), (1e6, -2.0, 100), (0.0, 2.0**-149, 2)],
)
def test_a_penalty_taken_several_times_is_as_exact_as_the_spec_says(logit: float, penalty: float, count: int) -> None:
    x, taken = Fraction(logit), Fraction(penalty) * count
    width = Fraction(count + 2, 2**24) * (abs(x) + abs(taken)) + Fraction(count, 2**149)
    assert lowered(logit, penalty, count) == interval(x - taken, width)


def test_the_bands_are_as_wide_as_the_spec_says() -> None:
    assert band(-0.5, 2.0) == band(0.5, -2.0) == 6.5 * 2.0**-23
    assert band(0.0, 0.0) == 2.0**-21
    assert mass_band(64) == 2.0**-18 + 6 * 2.0**-24
    assert mass_band(1) == 2.0**-18


def test_a_sum_is_between_that_with_the_parameter_as_given_and_that_with_its_float32() -> None:
    one = 0.10000000149011612
    assert rounded(-one, 0.1) == (f32(0.1 - one), 0.0)
    assert rounded(one, -0.1) == (0.0, f32(one - 0.1))


def test_what_is_refused_of_a_row_that_keeps_too_few_or_too_many() -> None:
    row = Expectation([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], frozenset({1, 2, 3}), kept=(2, 2))
    masked = float("-inf")
    assert refused(row, [0.0, 1.0, masked, masked]) == [2, 3]
    assert refused(row, [0.0, 1.0, 2.0, 3.0]) == [1, 2, 3]
    assert refused(row, [0.0, masked, 2.0, 3.0]) == []


@pytest.mark.parametrize("target", ["one:two:three", "one", ":two", "one:"])
def test_a_name_that_is_not_of_two_parts_is_refused(target: str) -> None:
    with pytest.raises(Refused, match="is not module:Class"):
        loaded([target], [], {"one": object()}.__getitem__)


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(Refused, match=r"^one cannot be imported: 'one'$"):
        loaded([], ["one:Two"], {}.__getitem__)


STAGES: list[tuple[Any, dict[str, Any]]] = [
    (allowed_token_ids, {"allowed_token_ids": [0, 2]}),
    (bad_words, {"bad_words_token_ids": [[1], [2, 0]]}),
    (min_tokens, {"min_tokens": 3, "stop_token_ids": [1]}),
    (logit_bias, {"logit_bias": {0: 0.1, 3: -2.0}}),
    (repetition_penalty, {"repetition_penalty": 1.5}),
    (frequency_penalty, {"frequency_penalty": 0.3}),
    (presence_penalty, {"presence_penalty": 0.3}),
    (temperature, {"temperature": 0.7}),
    *((min_p, {"min_p": share}) for share in (0.0, 0.3, 1.0)),
    *((top_k, {"top_k": k}) for k in (-1, 0, 1, 3, 4, 9)),
    *((top_p, {"top_p": p}) for p in (0.5, 1.0)),
    (temperature, {}),
]


@pytest.mark.parametrize(("stage", "params"), STAGES)
def test_a_pipeline_of_which_one_stage_is_used_is_that_stage(stage: Any, params: dict[str, Any]) -> None:
    given = [3], [2, 1, 2], [0.5, 2.0, -1.0, 1.5]
    alone, row = stage(params, *given), pipeline(params, *given, skipped=False)
    assert [list(row.low), list(row.high)] == [list(alone.low), list(alone.high)]
    assert (row.either, row.untouched, row.kept, row.signs) == (alone.either, alone.untouched, alone.kept, alone.signs)


@pytest.mark.parametrize("stage", [stage for stage, _ in STAGES])
def test_a_stage_that_is_not_asked_for_leaves_the_row_alone(stage: Any) -> None:
    assert stage({}, [0], [0, 1], [1.0, 2.0]).untouched
    assert stage({"stop_token_ids": [0]}, [0], [], [1.0, 2.0]).untouched


def test_the_sign_of_a_zero_that_one_stage_drops_stays_dropped() -> None:
    params = {"presence_penalty": 0.5, "temperature": 0.5}
    assert not pipeline(params, [], [0], [0.5, 1.0], skipped=False).signs
    assert untouched([0.5]).signs


def test_a_custom_stage_that_keeps_the_largest_comes_between_min_p_and_top_k() -> None:
    seen: list[tuple[list[float], Any]] = []

    def first_only(params: Any, row: Expectation) -> Expectation:
        seen.append((list(row.low), params))
        return narrowed(row, {1, 2}, {0}, 1, 3)

    params = {"min_p": 0.3, "top_k": 2}
    got = pipeline(params, [], [], [1.0, 2.0, -9.0], skipped=False, invariant=[first_only])
    assert seen == [([1.0, 2.0, MASKED], params)]
    assert list(got.low) == [1.0, MASKED, MASKED]
    assert pipeline(params, [], [], [1.0, 2.0, -9.0], skipped=True, invariant=[first_only]).untouched


@pytest.mark.parametrize(
    ("batch", "skips"),
    [
        ([None], True),
        ([Request("A", {"temperature": 0.0}), None], True),
        ([Request("A", {"temperature": 0.0}), Request("B")], False),
        ([None, Request("B")], False),
    ],
)
def test_stages_are_skipped_when_nobody_draws(batch: Batch, skips: bool) -> None:
    assert skips_invariant(batch) is skips


def test_as_many_rows_of_logits_as_the_batch_has() -> None:
    with pytest.raises(ValueError, match="shorter"):
        expected_rows([A, B], min_p, [[1.0]])
    assert not keeps_arguments([1], [2])


def test_a_token_one_beyond_the_vocabulary_is_nobodys() -> None:
    for stage in (repetition_penalty, frequency_penalty, presence_penalty):
        assert list(stage({stage.__name__: 1.5}, [1], [1, 1], [1.0]).low) == [1.0]


def test_penalties_drop_the_sign_of_a_zero_and_no_other_stage_does() -> None:
    drops = [stage for stage, params in STAGES if not stage(params, [0], [0], [1.0, 2.0, 3.0, 4.0]).signs]
    assert drops == [frequency_penalty, presence_penalty]


def test_a_stop_token_that_is_the_end_of_sequence_too_is_one() -> None:
    assert stop_tokens({"stop_token_ids": [1, 2], "eos_token_id": 1}) == {1, 2}


def test_greedy_is_below_the_edge() -> None:
    assert not is_greedy({"temperature": 1e-5})
    assert is_greedy({"temperature": 0.99e-5})


@pytest.mark.parametrize(("bands", "low"), [(-2, "gone"), (-1, "gone"), (-0.5, "either"), (0.5, "either"), (1, "sure")])
def test_a_token_beside_the_edge_of_min_p(bands: float, low: str) -> None:
    edge = math.log(0.3)
    row = keep_likely(untouched([0.0, edge + bands * band(edge, edge)]), 0.3)
    assert low == ("gone" if row.low[1] == MASKED else "either" if 1 in row.either else "sure")


def test_where_no_token_is_sure_one_is_kept() -> None:
    assert keep_likely(Expectation([0.0, 0.0], [1.0, 1.0]), 0.5).kept == (1, 2)
    assert without_order(Expectation([0.0, 0.0], [math.inf, math.inf])).kept == (0, 2)
    surely_infinite = Expectation([float("inf")], [float("inf")])
    assert without_order(surely_infinite) is surely_infinite


def test_what_is_narrowed_counts_what_is_kept_for_sure() -> None:
    masked = float("-inf")
    values = [0.0, 1.0, 2.0, 3.0, masked, masked, masked, math.nan]
    row = Expectation(values, values)
    got = narrowed(row, {0}, {1, 4, 5, 7}, 3, 3)
    assert (list(got.low)[:4], got.either, got.kept) == ([MASKED, 1.0, 2.0, 3.0], {2, 3}, (1, 1))
    assert narrowed(row, {0}, {1}, 0, 2).kept == (0, 1)
    assert narrowed(row, set(), {0, 1, 2, 7}, 0, 8).kept == (0, 1)
    assert narrowed(row, set(), {0, 1, 2, 3, 7}, 0, 8).kept is None


def rows_admitted(row: Expectation) -> Iterator[tuple[float, ...]]:
    """Every row whose tokens are at an end of their interval, or masked where that is allowed."""
    ends = zip(row.low, row.high, strict=True)
    return product(*({*both, MASKED} if token in row.either else {*both} for token, both in enumerate(ends)))


INTERVALS = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0), (MASKED, MASKED)]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("either", [{0}, set()])
def test_top_k_leaves_open_only_what_is_open(k: int, either: set[int]) -> None:
    for pairs in product(INTERVALS, repeat=3):
        low, high = zip(*pairs, strict=True)
        row = Expectation(low, high, frozenset(either))
        after = keep_largest(row, k)
        kept = [largest_tokens(list(each), k) for each in rows_admitted(row)]
        for token in range(3):
            fates = {each[token] == MASKED for each in kept}
            assert (after.high[token] == MASKED, token in after.either) == (fates == {True}, len(fates) == 2)


def test_top_k_keeps_k_or_as_many_as_there_are_for_sure() -> None:
    masked = float("-inf")
    row = Expectation([masked, 0.0, 0.0, 0.0], [masked, 1.0, 1.0, 1.0], frozenset({2, 3}))
    assert keep_largest(row, 2).kept == (1, 3)
    assert keep_largest(Expectation(row.low, row.high), 2).kept == (2, 3)


NAN, INF = math.nan, math.inf
NO_NUMBERS = ["1", None, [1]]
PENALTY = ([-2, -2.0, 0, 0.5, 2, 2.0], [-3, -2.001, 2.001, 3, NAN, INF, *NO_NUMBERS])
EDGES: dict[str, tuple[list[Any], list[Any]]] = {
    "allowed_token_ids": ([None, [0], (0, 7), {3}, [1, 1]], [[], (), [-1], [0, -1], [1.0], "1", 3, {0: 1}]),
    "bad_words_token_ids": ([None, [], (), [[0]], [(1, 2), [3]]], [[[]], [[1], [-1]], [1, 2], [{1}], "1", 3, {1}]),
    "min_tokens": ([0, 1, 10**6], [-1, 1.0, *NO_NUMBERS]),
    "stop_token_ids": ([None, [], [0], (1,), {2}], [[-1], [0, -1], [1.5], "1", 3]),
    "logit_bias": (
        [None, {}, {0: 0}, {7: -1.5, 1: INF}],
        [{-1: 1.0}, {0: 1.0, -1: 1.0}, {1.0: 1.0}, {0: 1.0, 1: "1"}, {0: None}, [0], "1"],
    ),
    "repetition_penalty": ([1, 0.5, 1e-300, 1e38], [0, 0.0, -1, INF, NAN, *NO_NUMBERS]),
    "frequency_penalty": PENALTY,
    "presence_penalty": PENALTY,
    "temperature": ([0, 0.0, 0.5, 2, 2.0], [-1, -0.1, 2.1, 3, NAN, INF, *NO_NUMBERS]),
    "min_p": ([0, 0.0, 0.5, 1, 1.0], [-1, -0.001, 1.001, 2, NAN, INF, *NO_NUMBERS]),
    "top_k": ([-1, 0, 1, 2**40], [-2, 1.5, -1.0, *NO_NUMBERS]),
    "top_p": ([1, 1.0, 0.5, 1e-300], [0, 0.0, -0.1, 1.001, 2, NAN, INF, *NO_NUMBERS]),
}


def test_every_domain_has_edges() -> None:
    assert set(EDGES) == set(DOMAINS)


@pytest.mark.parametrize("field", EDGES)
def test_a_field_takes_what_is_in_its_domain_and_refuses_the_rest(field: str) -> None:
    inside, outside = EDGES[field]
    for value in inside:
        validate({"another": "1", field: value})
    for value in outside:
        with pytest.raises(ValueError, match=f"^{field} must be "):
            validate({"another": "1", field: value})


def test_what_is_a_number_and_what_is_minus_one() -> None:
    assert [is_number(value) for value in (-1e308, 10**400, -INF, INF, NAN)] == [True, True, False, False, False]
    assert [is_minus_one(value) for value in (-2, -1, 0, 1)] == [False, True, False, False]


@pytest.mark.parametrize(
    ("params", "floats"),
    [
        ({}, True),
        ({"logit_bias": None}, True),
        ({"logit_bias": {0: 0.0, 1: 1.1754943508222875e-38, 2: -3.4028234663852886e38}}, True),
        ({"logit_bias": {0: 1.0, 1: 1.17e-38}}, False),
        ({"logit_bias": {0: 1.0, 1: -3.403e38}}, False),
        ({"logit_bias": {0: math.nextafter(3.4028234663852886e38, math.inf)}}, False),
        ({"temperature": 0.0, "repetition_penalty": 1.1754943508222875e-38}, True),
        ({"repetition_penalty": 8.507059173023462e37}, True),
        ({"repetition_penalty": 8.508e37}, False),
        ({"repetition_penalty": 1.17e-38}, False),
        ({"repetition_penalty": 1.0, "temperature": 1.17e-38}, False),
        ({"temperature": 2}, True),
    ],
)
def test_what_is_calculated_with_is_a_normal_float(params: dict[str, Any], floats: bool) -> None:
    assert has_floats(params) is floats


def test_every_token_that_is_named_is_looked_up() -> None:
    names = {"allowed_token_ids": [4], "stop_token_ids": [5], "logit_bias": {6: 1.0}, "bad_words_token_ids": [[7], [8]]}
    assert sorted(named_tokens(names)) == [4, 5, 6, 7, 8]
    assert not list(named_tokens(dict.fromkeys(names)))
    known = [token for token in range(-1, 5) if in_vocabulary({"allowed_token_ids": [0, token]}, 2)]
    assert known == [0, 1]


def likely_tokens(row: list[float], share: float) -> list[float]:
    """min-p, exactly."""
    edge = max(row) + math.log(share)
    return [logit if logit >= edge else MASKED for logit in row]


def largest_tokens(row: list[float], k: int) -> list[float]:
    """top-k, exactly."""
    return [logit if sum(other > logit for other in row) < k else MASKED for logit in row]


def prefix_of_mass(row: list[float], p: float, order: list[int]) -> list[float]:
    """top-p, exactly, with equals in this order."""
    left, kept = [*row], [MASKED] * len(row)
    masses = [math.exp(logit - max(row)) for logit in row]
    taken = 0.0
    while taken < p * math.fsum(masses):
        token = max(order, key=left.__getitem__)
        taken += masses[token]
        kept[token], left[token] = row[token], MASKED
    return kept


@st.composite
def rows_known_in_part(draw: st.DrawFn, with_either: bool = True) -> tuple[Expectation, list[float]]:
    """A row of intervals, in which some tokens are masked and some may be, and one of the rows that it admits."""
    low, high, row = [], [], []
    either: set[int] = set()
    for token in range(draw(st.integers(1, 6))):
        least = draw(st.sampled_from([MASKED, 0.0, 0.5, 1.0, 3.0]) | st.floats(-9, 9, width=32))
        width = draw(st.sampled_from([0.0, 0.0, 1e-6, 0.1, 1.0]))
        low.append(least)
        high.append(least + width)
        row.append(least + width * draw(st.sampled_from([0.0, 0.5, 1.0])))
        if with_either and least != MASKED and draw(st.integers(0, 3)) == 0:
            either.add(token)
            row[token] = draw(st.sampled_from([MASKED, row[token]]))
    assume(max(row) != MASKED or max(high) == MASKED)
    return Expectation(low, high, frozenset(either)), row


WEIGHTS = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=4)


@given(rows_known_in_part())
def test_the_mass_before_a_token_is_between_what_is_surely_and_what_may_be_larger(known) -> None:
    row, _ = known
    low, high = [math.exp(value) for value in row.low], [math.exp(value) for value in row.high]
    least, tokens = [0.0 if t in row.either else low[t] for t in range(len(low))], range(len(low))
    for t, (larger, rivals) in enumerate(
        zip(larger_masses(row, least, high), rival_masses(row, least, high), strict=True)
    ):
        over = {s for s in tokens if row.low[s] > row.high[t]}
        beside = {s for s in tokens if row.high[s] >= row.low[t]} - {t}
        sums = [
            math.fsum(weights[s] for s in chosen)
            for weights, chosen in [
                (least, over),
                (high, {*tokens} - over),
                (high, beside),
                (least, {*tokens} - beside),
            ]
        ]
        assert larger == pytest.approx(share(sums[0], sums[1]), abs=1e-9)
        assert rivals == pytest.approx(share(sums[2], sums[3]), abs=1e-9)


@given(WEIGHTS, WEIGHTS, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
@example([2.0, 0.0], [0.0, 3.0], 0.25)
def test_the_fewest_tokens_are_the_fewest_of_any_choice(part: list[float], rest: list[float], wanted: float) -> None:
    size = min(len(part), len(rest))
    part, rest = part[:size], rest[:size]

    def margin(chosen: tuple[int, ...]) -> float:
        taken = math.fsum(part[t] for t in chosen)
        return share(taken, math.fsum(rest[t] for t in range(size) if t not in chosen)) - wanted

    best = [max(map(margin, combinations(range(size), count))) for count in range(1, size + 1)]
    assert fewest(part, rest, wanted) == next((count for count, each in enumerate(best, start=1) if each >= 0), size)


def test_a_share_is_of_the_whole() -> None:
    assert (share(1.0, 3.0), share(2.0, 0.0), share(0.0, 1.0), share(0.5, -1e-9)) == (0.25, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(("bands", "fate"), [(-2, "gone"), (-0.9, "either"), (0.9, "either"), (2, "sure")])
def test_a_token_beside_the_edge_of_top_p(bands: float, fate: str) -> None:
    before = 0.75
    row = keep_mass(untouched([math.log(3.0), 0.0]), before + bands * mass_band(2))
    assert fate == ("gone" if row.low[1] == MASKED else "either" if 1 in row.either else "sure")
    assert row.kept == ((0, 1) if fate == "either" else None)


def test_top_p_of_many_equals_and_of_what_comes_after_all_the_mass() -> None:
    assert keep_mass(untouched([0.0] * 300), 0.499).kept == (150, 150)
    assert keep_mass(untouched([0.0, 0.0, 0.0, -1000.0]), 1 - mass_band(4)).low[3] == MASKED


def test_a_mass_below_the_band_keeps_one() -> None:
    row = keep_mass(untouched([1.0, 1.0, 0.0]), 1e-9)
    assert (row.low[2], row.either, row.kept) == (MASKED, {0, 1}, (1, 1))


SHARES = st.sampled_from([1.0, 0.5, 0.1, 1e-3])
MASSES = st.sampled_from([0.9, 0.5, 0.25, 1e-9])


@settings(max_examples=500)
@given(rows_known_in_part(), SHARES, st.integers(1, 6), MASSES, st.randoms(use_true_random=False))
def test_what_a_stage_makes_of_any_row_it_may_get_is_what_it_may_give(known, share, k, p, chance) -> None:
    expectation, row = known
    order = chance.sample(range(len(row)), len(row))
    assert admits(keep_likely(expectation, share), likely_tokens(row, share))
    assert admits(keep_largest(expectation, k), largest_tokens(row, k))
    if max(row) != MASKED:
        assert admits(keep_mass(expectation, p), prefix_of_mass(row, p, order))


@settings(max_examples=500)
@given(rows_known_in_part(with_either=False), SHARES, st.integers(1, 6), MASSES, st.randoms(use_true_random=False))
def test_what_all_stages_make_of_any_row_is_what_they_may_give(known, share, k, p, chance) -> None:
    expectation, row = known
    assume(max(row) != MASKED)
    order = chance.sample(range(len(row)), len(row))
    got = prefix_of_mass(largest_tokens(likely_tokens(row, share), k), p, order)
    assert admits(keep_mass(keep_largest(keep_likely(expectation, share), k), p), got)


def test_a_row_that_may_reach_infinity_may_come_out_either_way() -> None:
    largest = 3.4028234663852886e38
    params = {"frequency_penalty": 0.5, "min_p": 0.5}
    row = pipeline(params, [], [0], [largest, 0.0, 1.0], skipped=False)
    assert admits(row, [f32(largest - 0.5), MASKED, MASKED])
