"""The notation: what is printed reads back the same, what is not in it is refused in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logitsproc.conformance.history import OPTIONS, Added, Arrival, Growth, History, Sight, Step
from logitsproc.conformance.notation import NotationError, format_history, parse
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL
from logitsproc.reference.numerics import f32

names = st.sampled_from(["A", "B", "C1", "Long_name"])
rows = st.integers(0, 20)
ids = st.lists(st.integers(0, 99), max_size=4).map(tuple)
floats = st.floats(width=32) | st.sampled_from([0.1, -0.0]).map(f32)
params = st.fixed_dictionaries(
    {},
    optional={
        "min_p": st.floats(0, 1),
        "logit_bias": st.dictionaries(st.integers(0, 7), st.floats(-9, 9), max_size=2),
        "extra_args": st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.text(max_size=3), max_size=2),
    },
)
arrivals = st.builds(Arrival, params, st.none() | ids, ids)
moves = st.tuples(rows, rows, st.sampled_from([SWAP, UNIDIRECTIONAL]))


@st.composite
def growths(draw: st.DrawFn) -> Growth:
    tokens = draw(ids)
    late = draw(st.integers(0, len(tokens)))
    return Growth(draw(names), tokens, late, draw(st.integers(0 if tokens else 1, 3)))


@st.composite
def sights(draw: st.DrawFn) -> Sight:
    row = draw(st.lists(floats, min_size=1, max_size=4))
    return Sight(draw(names), tuple(row), draw(st.none() | st.permutations(row).map(tuple)))


steps = st.builds(
    Step,
    growth=st.lists(growths(), max_size=2).map(tuple),
    removed=st.lists(rows, max_size=2).map(tuple),
    added=st.lists(st.builds(Added, rows, names, st.booleans()), max_size=2).map(tuple),
    moved=st.lists(moves, max_size=2).map(tuple),
    size=st.none() | rows,
    applies=st.integers(0, 2),
    sights=st.lists(sights(), max_size=1).map(tuple),
)
histories = st.builds(
    History,
    st.fixed_dictionaries(dict.fromkeys(["A", "B", "C1", "Long_name"], arrivals)),
    st.lists(steps, min_size=1, max_size=4).map(tuple),
    st.integers(1, 128),
    st.sampled_from(["dense", "ties", "mixed"]),
    st.integers(0, 99),
    st.sets(st.sampled_from(OPTIONS)).map(frozenset),
    st.none() | st.just("min_p"),
)


@given(histories)
def test_what_is_printed_reads_back_the_same(history: History) -> None:
    text = format_history(history)
    again = parse(text)
    assert format_history(again) == text
    assert again.requests == history.requests
    assert (again.vocab, again.palette, again.offset, again.options, again.kind) == (
        history.vocab,
        history.palette,
        history.offset,
        history.options,
        history.kind,
    )
    for given_step, read_step in zip(history.steps, again.steps, strict=True):
        assert (given_step.removed, given_step.added, given_step.moved) == (
            read_step.removed,
            read_step.added,
            read_step.moved,
        )
        assert repr(given_step.sights) == repr(read_step.sights)
        assert (given_step.size, given_step.applies) == (read_step.size, read_step.applies)


def test_a_row_may_be_shown_without_what_comes_out() -> None:
    assert parse("[A]\nlogits A = [1, nan]").steps[0].sights[0].expected is None


def test_a_drawing_adds_everybody() -> None:
    assert parse("[A, B]").steps == parse("add A@0; add B@1").steps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add A", "line 1: 'add A' is none of"),
        ("[A]\nadd B@0; remove 1", "line 2: an update lists removals first, then additions, then moves"),
        ("[A]\nmove 0->1; add B@1", "line 2: an update lists removals first"),
        ("[a]", "line 1: 'a' is not a request's name"),
        ("[A, x]", "line 1: a drawing that starts a history has no holes"),
        ("A: min_p=open('x')", "line 1: \"min_p=open('x')\" is not a list of field=value"),
        ("A: **{}", "line 1: '**{}' is not a list of field=value"),
        ("A: 1", "line 1: '1' is not a list of field=value"),
        ("A: min_p=0.5\nA: min_p=0.5", "line 2: A is declared twice"),
        ("A: prompt=3", "line 1: prompt is a list of token ids, or None"),
        ("A: output=[-1]", "line 1: output is a list of token ids"),
        ("vocab 0", "line 1: '0' is not a number from 1 to"),
        ("vocab 99999999999999999999999999", "is not a number from 1 to"),
        ("vocab ²", "'²' is not a number from 1 to"),
        ("logits sparse 0", "line 1: no logits 'sparse'; there are dense, ties, mixed"),
        ("with luck", "line 1: no option 'luck'; there are shared, strided, warm-up"),
        ("logits A = [1] => [1]", "line 1: logits of a request belong to the step above, and there is none"),
        ("[A]\nlogits A = [1] => [1, 2]", "line 2: the row in and the row out have different lengths"),
        ("[A]\nlogits A = [one] => [1]", "line 2: '[one]' is not a list of numbers"),
        ("[A]\nlogits A = 1", "line 2: a row is shown as: logits A = [0, 1] => [-inf, 1]"),
        ("[A]\nlogits A = [1] =>", "line 2: a row is shown as: logits A = [0, 1] => [-inf, 1]"),
        ("[A]\nA += [?1, 2]", "line 2: placeholders (?5) come last"),
        ("[A]\nB += [1]", "request B never arrives"),
        ("[A] => A", "line 1: 'A' is not a drawing such as [A, x, C]"),
    ],
)
def test_what_is_not_in_it_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except NotationError as error:
        assert str(error)
