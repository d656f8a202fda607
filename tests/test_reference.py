"""The model: the worked examples, the engine's algorithm against the list law, the row functions' edges."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch, IllFormed, Update, apply_update
from logitsproc.reference.expectation import admits
from logitsproc.reference.numerics import MASKED, band, f32, rounded
from logitsproc.reference.processor import expected_rows, keeps_argmax
from logitsproc.reference.producer import ELIDED, EXPLICIT, engine_step
from logitsproc.reference.request import Request
from logitsproc.reference.row.logit_bias import logit_bias
from logitsproc.reference.row.min_p import min_p
from logitsproc.reference.row.min_tokens import min_tokens

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
