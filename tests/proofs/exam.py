"""The executor examined: questions whose answer is known, and errors planted in it that a question has to find.

A question is a body, as a lemma's is, that is also given the executor's module, so that it can be put to a changed one.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from types import ModuleType
from typing import Any, NamedTuple

HOLDS, REFUTED, UNKNOWN = "holds", "refuted", "unknown"
Proof = Any


@dataclass(frozen=True)
class Question:
    """A body, and the answer: that it holds, with so many paths, that it is refuted, or that nothing is known."""

    body: Callable[[Proof, Any], Any]
    answer: str
    paths: int


class Error(NamedTuple):
    """A change to the executor's source, and what is wrong then."""

    says: str
    before: str
    after: str


QUESTIONS: dict[str, Question] = {}


def holds(paths: int) -> Callable[[Callable[[Proof, Any], Any]], None]:
    """Puts a body among the questions: it holds, on so many paths."""
    return asked(HOLDS, paths)


def asked(answer: str, paths: int = 0) -> Callable[[Callable[[Proof, Any], Any]], None]:
    """Puts a body among the questions, with the answer."""

    def put(body: Callable[[Proof, Any], Any]) -> None:
        QUESTIONS[body.__name__] = Question(body, answer, paths)

    return put


def answered(executor: Any, question: Question) -> str:
    """What an executor says: the answer, with the number of paths where it holds."""
    outcome = executor.explore(lambda p: question.body(p, executor), [sys.modules[__name__]])
    if outcome.refuted:
        return REFUTED
    return UNKNOWN if outcome.unknown else f"{HOLDS} {outcome.paths}"


def wrong_answers(executor: Any) -> Iterator[str]:
    """A line for each question that an executor answers wrongly."""
    for name, question in QUESTIONS.items():
        right = question.answer + (f" {question.paths}" if question.answer == HOLDS else "")
        try:
            found = answered(executor, question)
        except Exception as error:
            found = f"raises {type(error).__name__}"
        if found != right:
            yield f"{name}: {found}, where it is {right}"


def errors() -> list[Error]:
    """The planted errors."""
    text = files(__package__).joinpath("planted.toml").read_text(encoding="utf-8")
    return [Error(**each) for each in tomllib.loads(text)["error"]]


def with_error(error: Error) -> ModuleType:
    """The executor with an error in it; raises ValueError where its source has not exactly one such place."""
    source = files(__package__).joinpath("kernel.py").read_text(encoding="utf-8")
    if source.count(error.before) != 1:
        raise ValueError(f"{error.says} is not one place of the executor")
    module = ModuleType("wrong_kernel")
    sys.modules[module.__name__] = module
    exec(compile(source.replace(error.before, error.after), module.__name__, "exec"), module.__dict__)
    return module


def escaped() -> Iterator[str]:
    """A line for each planted error that no question finds."""
    for error in errors():
        if next(wrong_answers(with_error(error)), None) is None:
            yield f"no question finds: {error.says}"


# Numbers and conditions


@holds(1)
def numbers_are_integers(p: Proof, k: Any) -> Any:
    """Between a number and the next there is none."""
    number, other = p.number("number"), p.number("other")
    p.show(k.no(k.both(number < other, other < number + 1)), "none between")
    p.show((number - other) * 2 == 2 * number - other - other, "arithmetic")
    p.show(10 - number + number == 10, "from the other side")
    return number


@asked(REFUTED)
def numbers_may_be_negative(p: Proof, k: Any) -> Any:
    """A number without a bound is not at least 0."""
    p.show(p.number("number") >= 0, "at least 0")


@holds(1)
def numbers_have_their_bound(p: Proof, k: Any) -> Any:
    """A number with a bound is at least that."""
    number = p.number("number", 3)
    p.show(number > 2, "at least 3")
    return number


@holds(3)
def conditions_fork(p: Proof, k: Any) -> Any:
    """A number is below, at or above another; each way is a path of its own."""
    one, other = p.number("one"), p.number("other")
    if one < other:
        p.show(other > one, "below")
        return "below"
    if one == other:
        p.show(k.both(one <= other, one >= other), "at")
        return "at"
    p.show(one != other, "above")
    return "above"


@holds(2)
def impossible_ways_are_not_taken(p: Proof, k: Any) -> Any:
    """Where a condition is decided already no path branches off."""
    number = p.number("number")
    if number > 5:
        return "large" if number > 4 else 1 / 0
    return "small" if number < 6 else 1 / 0


@asked(REFUTED)
def a_raise_is_a_failure(p: Proof, k: Any) -> Any:
    """An exception on one path refutes."""
    if p.number("number") == 7:
        raise KeyError


@asked(UNKNOWN)
def another_raise_is_no_counterexample(p: Proof, k: Any) -> Any:
    """On terms it raises one exception, on plain values another."""
    raise KeyError if p.symbolic else IndexError


@asked(UNKNOWN)
def what_does_not_end_is_unknown(p: Proof, k: Any) -> Any:
    """A loop that goes on for as long as a number is."""
    number, at = p.number("number", 1_000_000), 0
    while at < number:
        at += 1


@asked(UNKNOWN)
def what_supposes_nonsense_shows_nothing(p: Proof, k: Any) -> Any:
    """Nothing follows from what cannot be."""
    number = p.number("number")
    p.suppose(number > 1)
    p.suppose(number < 2)
    p.show(number == 9, "anything")


@asked(UNKNOWN)
def the_end_is_compared(p: Proof, k: Any) -> Any:
    """On terms it ends otherwise than on plain values."""
    return p.number("number") + (1 if p.symbolic else 0)


@asked(UNKNOWN)
def ends_in_lists_are_compared(p: Proof, k: Any) -> Any:
    """On terms a list ends otherwise than on plain values."""
    rows = p.rows("rows", p.number("n", 2), "int")
    rows[1 if p.symbolic else 0] = rows[0] + 1
    return rows


@asked(UNKNOWN)
def plain_values_have_to_agree(p: Proof, k: Any) -> Any:
    """On terms it holds, on plain values it does not."""
    p.show(p.symbolic, "only on terms")


@asked(UNKNOWN)
def a_counterexample_is_run(p: Proof, k: Any) -> Any:
    """On terms it fails, on plain values it holds."""
    p.show(not p.symbolic, "only on plain values")


@holds(4)
def bools_fork(p: Proof, k: Any) -> Any:
    """Two bools have four values; they are equal or not."""
    one, other = p.truth_value("one"), p.truth_value("other")
    p.show(k.either(one == other, one != other), "equal or not")
    return ("yes" if one else "no"), ("yes" if other else "no")


@holds(1)
def logic_does_not_fork(p: Proof, k: Any) -> Any:
    """The connectives, as they are of plain bools."""
    one, other = p.truth_value("one"), p.truth_value("other")
    p.show(k.no(k.both(one, other)) == k.either(k.no(one), k.no(other)), "not both")
    p.show(k.implies(k.both(one, k.implies(one, other)), other), "what follows")
    p.show(k.where(one, 1, 2) + k.where(k.no(one), 1, 2) == 3, "one or the other")
    return one


@asked(REFUTED)
def implication_has_one_direction(p: Proof, k: Any) -> Any:
    """What follows does not lead back."""
    one, other = p.truth_value("one"), p.truth_value("other")
    p.show(k.implies(k.implies(one, other), k.implies(other, one)), "it leads back")


@holds(1)
def reals_are_dense(p: Proof, k: Any) -> Any:
    """Between two reals is their mean."""
    one, other = p.real("one"), p.real("other")
    p.suppose(one < other)
    mean = (one + other) / 2
    p.show(k.both(one < mean, mean < other), "between")
    return mean


@asked(REFUTED)
def nothing_is_divided_by_zero(p: Proof, k: Any) -> Any:
    """A divisor may be 0."""
    return p.real("one") / p.real("other")


@holds(2)
def functions_give_the_same(p: Proof, k: Any) -> Any:
    """Of equals a function gives the same, and never less than none."""
    of, one, other = p.function("of"), p.number("one"), p.number("other")
    p.show(of(one) >= k.NONE, "none at least")
    p.show(k.implies(one == other, of(one) == of(other)), "the same")
    return "none" if p.optional(of(one)) is None else "some"


# Lists


@holds(3)
def cells_are_read(p: Proof, k: Any) -> Any:
    """A row from behind is the row that it is; a row that is not there raises."""
    rows, row = p.rows("rows", p.number("n", 0), "int"), p.number("row")
    try:
        found = rows[row]
    except IndexError:
        p.show(k.either(row >= len(rows), row < 0 - len(rows)), "there is no such row")
        return "raises"
    p.show(k.where(row < 0, p.peek(rows, row + len(rows)), p.peek(rows, row)) == found, "the cell of the row")
    return "read"


@holds(2)
def holes_are_none(p: Proof, k: Any) -> Any:
    """An optional cell is None, or a number from 1 on."""
    rows = p.rows("rows", p.number("n", 1), "optional")
    found = rows[0]
    if found is None:
        p.show(p.peek(rows, 0) == k.NONE, "a hole")
        return None
    p.show(found >= 1, "a request")
    return found


@holds(1)
def cells_are_written(p: Proof, k: Any) -> Any:
    """Only the row that is written changes."""
    rows, row = p.rows("rows", p.number("n", 0), "int"), p.number("row", 0)
    p.suppose(row < len(rows))
    before, value = p.copied(rows), p.number("value")
    rows[row] = value
    p.show(p.peek(rows, row) == value, "what is written")
    p.show_all(len(rows), lambda at: k.either(at == row, p.peek(rows, at) == p.peek(before, at)), "no other")
    p.show(len(rows) == len(before), "as many rows")
    return rows, before


@asked(REFUTED)
def a_write_is_seen(p: Proof, k: Any) -> Any:
    """Not every row is as it was."""
    rows = p.rows("rows", p.number("n", 1), "bool")
    before = p.copied(rows)
    rows[0] = p.truth_value("value")
    p.show_all(len(rows), lambda at: p.peek(rows, at) == p.peek(before, at), "every row as it was")


@holds(1)
def lists_grow(p: Proof, k: Any) -> Any:
    """What is appended is the last."""
    rows, value = p.rows("rows", p.number("n", 0), "optional"), p.number("value", 1)
    size = len(rows)
    rows.append(None)
    rows.extend([value, value])
    p.show(len(rows) == size + 3, "three rows more")
    p.show(k.both(p.peek(rows, size) == k.NONE, p.peek(rows, size + 2) == value), "where they belong")
    return rows


@holds(3)
def lists_shrink(p: Proof, k: Any) -> Any:
    """The last one is popped; there is none in an empty list."""
    rows = p.rows("rows", p.number("n", 0), "optional")
    last, size = p.peek(rows, p.size(rows) - 1), p.size(rows)
    try:
        found = rows.pop()
    except IndexError:
        p.show(size == 0, "there was none")
        return "empty"
    p.show(len(rows) == size - 1, "one row less")
    p.show(last == (k.NONE if found is None else found), "the last")
    return "a hole" if found is None else found


@holds(2)
def lists_are_cut_off(p: Proof, k: Any) -> Any:
    """A list is cut off where it is told, counted from behind where that is negative."""
    rows, start = p.rows("rows", p.number("n", 0), "int"), p.number("start")
    size = len(rows)
    del rows[start:]
    if start >= 0:
        p.show(len(rows) == k.where(start < size, start, size), "as many as are left")
    else:
        p.show(len(rows) == k.where(start + size > 0, start + size, 0), "from behind")
    return rows


@holds(2)
def a_list_is_true(p: Proof, k: Any) -> Any:
    """A list without rows is false."""
    rows = p.rows("rows", p.number("n", 0), "int")
    if rows:
        p.show(len(rows) > 0, "it has rows")
        return "rows"
    p.show(len(rows) == 0, "it has none")
    return "none"


@holds(2)
def the_first_hole_is_found(p: Proof, k: Any) -> Any:
    """A hole is found, the first one, or there is none."""
    rows = p.rows("rows", p.number("n", 0), "optional")
    if None not in rows:
        p.show_all(len(rows), lambda row: p.peek(rows, row) != k.NONE, "there is none")
        return "none"
    first = rows.index(None)
    p.show(k.both(first >= 0, first < len(rows), p.peek(rows, first) == k.NONE), "a hole")
    p.show_all(first, lambda row: p.peek(rows, row) != k.NONE, "the first one")
    return first


@asked(REFUTED)
def there_may_be_no_hole(p: Proof, k: Any) -> Any:
    """Where there is no hole none is found."""
    return p.rows("rows", p.number("n", 1), "optional").index(None)


@holds(2)
def a_tail_is_looked_through(p: Proof, k: Any) -> Any:
    """Some request is in the rows from one on, or none."""
    rows, start = p.rows("rows", p.number("n", 0), "optional"), p.number("start", 0)
    if any(rows[start:]):
        p.show(len(rows) > start, "there are such rows")
        return "some"
    p.show_all(len(rows), lambda row: k.implies(row >= start, p.peek(rows, row) == k.NONE), "none")
    return "none"


@asked(REFUTED)
def a_tail_is_not_the_list(p: Proof, k: Any) -> Any:
    """Where the tail has no request the list may have one."""
    rows = p.rows("rows", p.number("n", 0), "optional")
    if not any(rows[1:]):
        p.show_all(len(rows), lambda row: p.peek(rows, row) == k.NONE, "no request")


@holds(1)
def cells_are_counted(p: Proof, k: Any) -> Any:
    """How often a value is there changes with what is written, appended and popped."""
    rows, value = p.rows("rows", p.number("n", 2), "int"), p.number("value")
    p.watch(rows, value)
    times, first = p.times(rows, value), p.peek(rows, 0)
    rows[0] = value
    rows.append(value)
    twin = p.copied(rows)
    p.show(p.times(rows, value) == times + k.where(first == value, 1, 2), "with what is put")
    rows[0] = value + 1
    p.show(p.times(rows, value) == times + k.where(first == value, 0, 1), "without what is replaced")
    twin.pop()
    p.show(p.times(twin, value) == times + k.where(first == value, 0, 1), "without what is popped")
    return rows


# What is supposed of every row


@holds(1)
def what_is_supposed_is_known(p: Proof, k: Any) -> Any:
    """What holds of every row holds of each that is read."""
    rows, row = p.rows("rows", p.number("n", 1), "int"), p.number("row", 0)
    p.suppose_all(len(rows), lambda at: p.peek(rows, at) > at)
    p.suppose(row < len(rows))
    p.show(rows[row] >= 1, "more than its row")
    p.show_all(len(rows), lambda at: p.peek(rows, at) != 0, "none is 0")
    return rows[row]


@asked(REFUTED)
def what_is_supposed_ends_with_the_list(p: Proof, k: Any) -> Any:
    """What holds of the rows of one list says nothing of another."""
    rows, more = p.rows("rows", p.number("n", 0), "int"), p.rows("more", p.number("m", 1), "int")
    p.suppose_all(len(rows), lambda at: p.peek(more, at) == 5)
    p.suppose(len(rows) <= len(more))
    p.show_all(len(more), lambda at: p.peek(more, at) == 5, "all are 5")


@asked(REFUTED)
def what_is_supposed_is_of_then(p: Proof, k: Any) -> Any:
    """What was supposed before a row was written says nothing of what is written."""
    rows = p.rows("rows", p.number("n", 1), "int")
    p.suppose_all(len(rows), lambda at: p.peek(rows, at) == 1)
    rows[0] = p.number("value")
    p.show_all(len(rows), lambda at: p.peek(rows, at) == 1, "all are 1")


@holds(1)
def names_do_not_clash(p: Proof, k: Any) -> Any:
    """What is supposed of every row says nothing of a number that is called so."""
    rows, row, other = p.rows("rows", p.number("n", 2), "int"), p.number("row", 0), p.number("other", 0)
    p.suppose_all(len(rows), lambda at: p.peek(rows, at) == row)
    p.suppose_pairs(len(rows), lambda at, later: p.peek(rows, at) + p.peek(rows, later) == other)
    p.show(k.both(rows[0] == row, rows[1] == row, other == row + row), "each is the number")
    return rows


@holds(1)
def what_is_supposed_stays(p: Proof, k: Any) -> Any:
    """What was supposed before a row was written holds of what it was, at rows that are touched later too."""
    rows, row = p.rows("rows", p.number("n", 1), "int"), p.number("row", 0)
    before = p.copied(rows)
    p.suppose_all(len(rows), lambda at: p.peek(rows, at) == 1)
    rows[0] = 2
    later = row + 1
    p.suppose(later < len(rows))
    p.show(rows[later] == 1, "as it was")
    p.show(before[0] == 1, "and so was the first")
    return rows


@holds(1)
def pairs_are_supposed(p: Proof, k: Any) -> Any:
    """Where the cells ascend, a later one is larger, and no two are the same."""
    rows, one, other = p.rows("rows", p.number("n", 0), "int"), p.number("one", 0), p.number("other", 0)
    p.suppose_pairs(len(rows), lambda at, later: p.peek(rows, at) < p.peek(rows, later))
    p.suppose(k.both(one < len(rows), other < len(rows), one != other))
    p.show(rows[one] != rows[other], "they differ")
    p.show_pairs(len(rows), lambda at, later: p.peek(rows, later) > p.peek(rows, at), "they ascend")
    return rows[one]


@asked(REFUTED)
def a_row_is_no_pair(p: Proof, k: Any) -> Any:
    """What is supposed of pairs does not say that two rows differ."""
    rows, one, other = p.rows("rows", p.number("n", 1), "int"), p.number("one", 0), p.number("other", 0)
    p.suppose_pairs(len(rows), lambda at, later: p.peek(rows, at) < p.peek(rows, later))
    p.suppose(k.both(one < len(rows), other < len(rows)))
    p.show(one != other, "they differ")


@asked(REFUTED)
def pairs_are_shown(p: Proof, k: Any) -> Any:
    """Two cells may be the same."""
    rows = p.rows("rows", p.number("n", 0), "int")
    p.show_pairs(len(rows), lambda at, later: p.peek(rows, at) != p.peek(rows, later), "they differ")


@asked(REFUTED)
def every_row_is_shown(p: Proof, k: Any) -> Any:
    """A list in which all but the first two may be anything."""
    rows = p.rows("rows", p.number("n", 3), "int")
    p.suppose(k.both(p.peek(rows, 0) == 4, p.peek(rows, 1) == 4))
    p.show_all(len(rows), lambda at: p.peek(rows, at) == 4, "all are 4")


@asked(REFUTED)
def showing_supposes_nothing(p: Proof, k: Any) -> Any:
    """What is shown of every row does not say that there is one."""
    rows = p.rows("rows", p.number("n", 0), "int")
    p.show_all(len(rows), lambda at: at >= 0, "rows are not negative")
    p.show(len(rows) > 0, "there is one")


@holds(1)
def rows_that_nobody_touched(p: Proof, k: Any) -> Any:
    """A model may break what is supposed of a row that nobody touched; then it is asked again."""
    rows = p.rows("rows", p.number("n", 3), "int")
    p.suppose_all(len(rows), lambda at: k.both(p.peek(rows, at) >= 7, p.peek(rows, at) <= 8))
    return rows


@holds(1)
def pairs_that_nobody_touched(p: Proof, k: Any) -> Any:
    """A model may break what is supposed of a pair of rows that nobody touched; then it is asked again."""
    rows = p.rows("rows", p.number("n", 3), "int")
    p.suppose_pairs(len(rows), lambda at, later: p.peek(rows, at) + 5 < p.peek(rows, later))
    return rows


@asked(UNKNOWN)
def what_cannot_be_of_rows_shows_nothing(p: Proof, k: Any) -> Any:
    """No list has three cells that are all different and of two values; to find out, its rows have to be asked for."""
    rows = p.rows("rows", p.number("n", 3), "bool")
    p.suppose_pairs(len(rows), lambda at, later: p.peek(rows, at) != p.peek(rows, later))
    p.show(len(rows) > 0, "there are rows")


# Dicts


@holds(4)
def states_are_kept(p: Proof, k: Any) -> Any:
    """A dict has what was put into it, and nothing that was taken out."""
    states, key, other = p.map("states", p.number("n", 0)), p.number("key", 0), p.number("other", 0)
    had = p.peek(states, other)
    found = states.pop(key, None)
    p.show(k.implies(key == other, had == (k.NONE if found is None else found)), "what was there")
    p.show(p.peek(states, key) == k.NONE, "it is gone")
    states[key] = 5
    p.show(p.peek(states, key) == 5, "what was put")
    p.show(k.implies(key != other, p.peek(states, other) == had), "no other changes")
    if other in states:
        return states[other], "there"
    return states.get(other, 9), "not there"


@holds(2)
def a_key_may_be_missing(p: Proof, k: Any) -> Any:
    """A key that is not there raises."""
    states, key = p.map("states", p.number("n", 0)), p.number("key")
    try:
        states.pop(key)
    except KeyError:
        p.show(p.peek(states, key) == k.NONE, "it is not there")
        return "missing"
    p.show(key >= 0, "a key that there can be")
    return "there"


@asked(REFUTED)
def a_missing_key_has_no_state(p: Proof, k: Any) -> Any:
    """A state that is not there is not read."""
    return p.map("states", p.number("n", 0))[p.number("key")]


@holds(2)
def a_dict_is_true(p: Proof, k: Any) -> Any:
    """A dict without keys is false."""
    states, key = p.map("states", p.number("n", 0)), p.number("key")
    if states:
        return "some"
    p.show(p.peek(states, key) == k.NONE, "no key is there")
    return "none"


@asked(REFUTED)
def a_state_may_be_there(p: Proof, k: Any) -> Any:
    """A dict may have a key."""
    p.show(not p.map("states", p.number("n", 1)), "it is empty")


@holds(1)
def no_key_is_beyond(p: Proof, k: Any) -> Any:
    """No key is beyond the bound, nor below 0, and a key that is put moves the bound."""
    size = p.number("n", 0)
    states = p.map("states", size)
    p.show(k.both(p.peek(states, size) == k.NONE, p.peek(states, 0 - 1) == k.NONE), "none is beyond")
    states[size] = 3
    p.show(p.peek(states, size) == 3, "one is put there")
    return states
