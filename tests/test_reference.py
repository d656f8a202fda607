"""The model: the worked examples, the engine's algorithm against the list law, the row functions' edges."""

import math
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch, IllFormed, Update, apply_update
from logitsproc.reference.expectation import Expectation, admits
from logitsproc.reference.numerics import MASKED, band, f32, mass_band, rounded
from logitsproc.reference.pipeline import pipeline
from logitsproc.reference.processor import expected_rows, keeps_argmax
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step
from logitsproc.reference.request import Request
from logitsproc.reference.row.allowed_token_ids import allowed_token_ids
from logitsproc.reference.row.bad_words import bad_words, completing_tokens
from logitsproc.reference.row.frequency_penalty import frequency_penalty
from logitsproc.reference.row.logit_bias import logit_bias
from logitsproc.reference.row.min_p import keep_likely, min_p
from logitsproc.reference.row.min_tokens import min_tokens
from logitsproc.reference.row.presence_penalty import presence_penalty
from logitsproc.reference.row.repetition_penalty import repetition_penalty
from logitsproc.reference.row.temperature import temperature
from logitsproc.reference.row.top_k import keep_largest, top_k
from logitsproc.reference.row.top_p import keep_mass, top_p

A, B, C, D, E, F = (Request(name) for name in "ABCDEF")


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
