"""A small symbolic executor over Z3: it runs Python functions, as they are shipped, on lists of any length.

A list has a length that is an integer term and cells that are an array term. A condition forks: `if` asks a symbolic
bool for its truth value, and the executor runs the body once for each way that is open. What may be None is read by
forking, so that `is None` is exact. No query has a quantifier: what is supposed of every row is instantiated at the
rows that are touched and at the one that a goal speaks of.

A body runs in two modes: on terms (`Symbolic`), and on the plain values of a model (`Plain`). A path counts when the
plain run ends in the state that the terms say; a counterexample counts when the plain run fails as well. Where the
model breaks what is supposed of some row, that instance is added and the solver is asked again.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any

import z3

NONE = 0
"""The number of None; requests and states are numbers from 1 on."""
MOST_PATHS = 20_000
MOST_DECISIONS = 300
MOST_INSTANCES = 30
SMALL = (1, 2, 3, 4, 8, 64)
"""Bounds on the lengths of lists that a model is first looked for with."""
ROW, OTHER = z3.Ints("?row ?other")
"""What stands for any row in what is supposed of all."""

Body = Callable[[Any], Any]


class Unknown(Exception):
    """No answer that would count; the message says why."""


class Refuted(Exception):
    """A plain run does not show what it should; the message says what."""


class Broken(Exception):
    """Plain values break what is supposed of a row, or of a pair of rows."""


class Unmet(Exception):
    """Plain values break what is supposed of the values themselves."""


class Num:
    """An integer or real term."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: Symbolic, term: z3.ArithRef) -> None:
        self.run = run
        self.term = term

    def __repr__(self) -> str:
        return str(self.term)

    def __add__(self, other: Any) -> Num:
        return Num(self.run, self.term + term_of(other))

    def __radd__(self, other: Any) -> Num:
        return Num(self.run, term_of(other) + self.term)

    def __sub__(self, other: Any) -> Num:
        return Num(self.run, self.term - term_of(other))

    def __rsub__(self, other: Any) -> Num:
        return Num(self.run, term_of(other) - self.term)

    def __mul__(self, other: Any) -> Num:
        return Num(self.run, self.term * term_of(other))

    def __rmul__(self, other: Any) -> Num:
        return Num(self.run, term_of(other) * self.term)

    def __truediv__(self, other: Any) -> Num:
        if self.run.truth(term_of(other) == 0):
            raise ZeroDivisionError
        return Num(self.run, self.term / term_of(other))

    def __lt__(self, other: Any) -> Truth:
        return Truth(self.run, self.term < term_of(other))

    def __le__(self, other: Any) -> Truth:
        return Truth(self.run, self.term <= term_of(other))

    def __gt__(self, other: Any) -> Truth:
        return Truth(self.run, self.term > term_of(other))

    def __ge__(self, other: Any) -> Truth:
        return Truth(self.run, self.term >= term_of(other))

    def __eq__(self, other: Any) -> Any:
        return False if other is None else Truth(self.run, self.term == term_of(other))

    def __ne__(self, other: Any) -> Any:
        return True if other is None else Truth(self.run, self.term != term_of(other))

    def __bool__(self) -> bool:
        return self.run.truth(self.term != 0)


class Truth:
    """A boolean term; its truth value forks."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: Symbolic, term: z3.BoolRef) -> None:
        self.run = run
        self.term = term

    def __bool__(self) -> bool:
        return self.run.truth(self.term)

    def __eq__(self, other: Any) -> Any:
        return Truth(self.run, self.term == term_of(other))

    def __ne__(self, other: Any) -> Any:
        return Truth(self.run, self.term != term_of(other))


def term_of(value: Any) -> Any:
    """The term of a value: of a symbolic one its own, of a plain one a constant."""
    if isinstance(value, Num | Truth):
        return value.term
    if value is None:
        return z3.IntVal(NONE)
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.RealVal(str(value)) if isinstance(value, Fraction | float) else z3.IntVal(value)


def at(fact: z3.BoolRef, *rows: z3.ArithRef) -> z3.BoolRef:
    """What is supposed of every row, or pair of rows, of these."""
    return z3.substitute(fact, *zip((ROW, OTHER), rows, strict=False))


def both(*conditions: Any) -> Any:
    """Whether all of them hold; it does not fork."""
    run = run_of(*conditions)
    return Truth(run, z3.And(*map(term_of, conditions))) if run else all(conditions)


def either(*conditions: Any) -> Any:
    """Whether one of them holds; it does not fork."""
    run = run_of(*conditions)
    return Truth(run, z3.Or(*map(term_of, conditions))) if run else builtins.any(conditions)


def no(condition: Any) -> Any:
    """Whether it does not hold; it does not fork."""
    run = run_of(condition)
    return Truth(run, z3.Not(term_of(condition))) if run else not condition


def implies(condition: Any, other: Any) -> Any:
    """Whether the other holds where the first does; it does not fork."""
    return either(no(condition), other)


def where(condition: Any, one: Any, other: Any) -> Any:
    """The one number where the condition holds, else the other; it does not fork."""
    run = run_of(condition)
    return Num(run, z3.If(term_of(condition), term_of(one), term_of(other))) if run else one if condition else other


def run_of(*values: Any) -> Symbolic | None:
    """The run of symbolic values; None where all are plain."""
    return next((value.run for value in values if isinstance(value, Num | Truth)), None)


class Rows:
    """A list. kind: "int", "bool", "real", or "optional", whose cells may be None.

    times: of a value that is watched, how many cells hold it; kept by the rule that `counts` in lemmas.py proves.
    """

    def __init__(self, run: Symbolic, length: z3.ArithRef, cells: z3.ArrayRef, kind: str) -> None:
        self.run = run
        self.length = length
        self.cells = cells
        self.kind = kind
        self.watched: z3.ArithRef | None = None
        self.times: z3.ArithRef = z3.IntVal(0)

    def __bool__(self) -> bool:
        return self.run.truth(self.length > 0)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Tail(self, self.start(index))
        return self.run.read(self.at(self.place(index)), self.kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.store(self.place(index), term_of(value))

    def __delitem__(self, index: slice) -> None:
        start = self.start(index)
        self.run.require(self.watched is None, "cells of a list that is watched are not cut off")
        self.length = z3.If(start < self.length, start, self.length)

    def __contains__(self, value: Any) -> bool:
        self.run.require(value is None, "only None is looked for in a list")
        return self.run.some(0, self.length, lambda row: self.at(row) == NONE)

    def index(self, value: Any) -> Num:
        """The first row that holds None."""
        if value not in self:
            raise ValueError
        first = self.run.fresh("first")
        self.touched(first)
        self.run.learn(z3.And(first >= 0, first < self.length, self.at(first) == NONE))
        self.run.always(lambda row: z3.Implies(z3.And(row >= 0, row < first), self.at(row) != NONE))
        return Num(self.run, first)

    def append(self, value: Any) -> None:
        """As a list does it."""
        self.length = self.length + 1
        self.cells = z3.Store(self.cells, self.touched(self.length - 1), term_of(value))
        self.counted(term_of(value), 1)

    def extend(self, values: Sequence[Any]) -> None:
        """As a list does it."""
        for value in values:
            self.append(value)

    def pop(self) -> Any:
        """As a list does it."""
        if not self:
            raise IndexError
        last = self.at(self.touched(self.length - 1))
        self.length = self.length - 1
        self.counted(last, -1)
        return self.run.read(last, self.kind)

    def at(self, row: z3.ArithRef) -> Any:
        """The term of a cell, in range or not."""
        return z3.Select(self.cells, row)

    def store(self, row: z3.ArithRef, value: Any) -> None:
        """Another value in a cell that is there."""
        self.counted(self.at(row), -1)
        self.cells = z3.Store(self.cells, row, value)
        self.counted(value, 1)

    def counted(self, value: Any, more: int) -> None:
        """Keeps the count of what is watched."""
        if self.watched is not None:
            self.times = self.times + z3.If(value == self.watched, more, 0)

    def place(self, index: Any) -> z3.ArithRef:
        """The row that an index means; raises IndexError as a list does."""
        row = self.touched(term_of(index))
        if self.run.truth(z3.And(row >= 0, row < self.length)):
            return row
        if self.run.truth(z3.And(row < 0, row >= -self.length)):
            return self.touched(row + self.length)
        raise IndexError

    def start(self, index: slice) -> z3.ArithRef:
        """Where a slice begins that ends with the list."""
        self.run.require(index.stop is None and index.step is None, "a slice goes on to the end")
        start = self.touched(term_of(index.start))
        if self.run.truth(start >= 0):
            return start
        return z3.If(start + self.length > 0, start + self.length, z3.IntVal(0))

    def touched(self, row: z3.ArithRef) -> z3.ArithRef:
        """The row, at which all that is supposed of every row is now instantiated."""
        self.run.touch(row)
        return row


@dataclass(frozen=True)
class Tail:
    """The cells of a list from a row on."""

    rows: Rows
    start: z3.ArithRef


class Map:
    """A dict from numbers to states. cells: NONE where there is no such key; no key is outside 0..length-1."""

    def __init__(self, run: Symbolic, length: z3.ArithRef, cells: z3.ArrayRef) -> None:
        self.run = run
        self.length = length
        self.cells = cells

    def at(self, key: z3.ArithRef) -> Any:
        """The term of a value, NONE where there is none."""
        return z3.Select(self.cells, key)

    def __bool__(self) -> bool:
        return self.run.some(0, self.length, lambda key: self.at(key) != NONE)

    def __contains__(self, key: Any) -> bool:
        return self.run.truth(self.at(term_of(key)) != NONE)

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError
        return Num(self.run, self.at(term_of(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.run.touch(term_of(key))
        self.cells = z3.Store(self.cells, term_of(key), term_of(value))
        self.length = z3.If(term_of(key) >= self.length, term_of(key) + 1, self.length)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError
        self.cells = z3.Store(self.cells, term_of(key), z3.IntVal(NONE))

    def get(self, key: Any, default: Any = None) -> Any:
        """As a dict does it."""
        there = key in self
        return self[key] if there else default

    def pop(self, key: Any, *default: Any) -> Any:
        """As a dict does it."""
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value


class Ended(Exception):
    """The path is impossible."""


@dataclass
class Symbolic:
    """One path: the decisions that lead to it, and what is known on it.

    trail: the decisions to take; where it ends, the way that is open is taken and the other put into `others`.
    instances: rows, and pairs of rows, at which what is supposed of all is instantiated because a model broke it there.
    most: how long a list may be, if there is a bound.
    """

    trail: tuple[bool, ...]
    instances: Sequence[tuple[int, ...]] = ()
    keep: Callable[[str], None] | None = None
    most: int | None = None
    solver: z3.Solver = field(default_factory=z3.Solver)
    terms: dict[int, z3.ArithRef] = field(default_factory=dict)
    facts: list[z3.BoolRef] = field(default_factory=list)
    paired: list[z3.BoolRef] = field(default_factory=list)
    taken: list[bool] = field(default_factory=list)
    others: list[tuple[bool, ...]] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    numbers: list[z3.ArithRef] = field(default_factory=list)
    named: int = 0
    symbolic = True

    # What a body asks for

    def number(self, name: str, least: int | None = None) -> Num:
        """An integer, of at least so much."""
        term = self.inputs[name] = z3.Int(name)
        if least is not None:
            self.learn(term >= least)
        self.bound(term, 1)
        self.touch(term)
        return Num(self, term)

    def real(self, name: str) -> Num:
        """A real number."""
        term = self.inputs[name] = z3.Real(name)
        return Num(self, term)

    def truth_value(self, name: str) -> Truth:
        """A bool."""
        term = self.inputs[name] = z3.Bool(name)
        return Truth(self, term)

    def rows(self, name: str, length: Any, kind: str) -> Rows:
        """A list of any cells."""
        sorts = {"int": z3.IntSort(), "bool": z3.BoolSort(), "real": z3.RealSort(), "optional": z3.IntSort()}
        rows = Rows(self, term_of(length), z3.Array(name, z3.IntSort(), sorts[kind]), kind)
        self.inputs[name] = Rows(self, rows.length, rows.cells, kind)
        self.bound(rows.length, 0)
        self.learn(rows.length >= 0)
        if kind == "optional":
            self.always(lambda row: rows.at(row) >= NONE)
        return rows

    def copied(self, rows: Rows) -> Rows:
        """A list with the same cells."""
        twin = Rows(self, rows.length, rows.cells, rows.kind)
        twin.watched, twin.times = rows.watched, rows.times
        return twin

    def map(self, name: str, length: Any) -> Map:
        """A dict of any states, with keys from 0 to length - 1."""
        found = Map(self, term_of(length), z3.Array(name, z3.IntSort(), z3.IntSort()))
        self.inputs[name] = Map(self, found.length, found.cells)
        self.always(lambda key: found.at(key) >= NONE)
        self.always(lambda key: z3.Or(z3.And(key >= 0, key < found.length), found.at(key) == NONE))
        return found

    def function(self, name: str) -> Callable[[Any], Num]:
        """A function from numbers to NONE and the numbers from 1 on; `optional` reads what it gives."""
        function = self.inputs[name] = z3.Function(name, z3.IntSort(), z3.IntSort())

        def of(argument: Any) -> Num:
            value = function(term_of(argument))
            return Num(self, z3.If(value >= NONE, value, NONE))

        return of

    def optional(self, number: Num) -> Num | None:
        """None for NONE, else the number."""
        return self.read(number.term, "optional")  # type: ignore[no-any-return]

    def watch(self, rows: Rows, value: Num) -> None:
        """Counts the cells that hold the value from now on, from a number that is anything."""
        rows.watched, rows.times = value.term, self.fresh("times")
        self.learn(rows.times >= 0)

    def times(self, rows: Rows, value: Num) -> Num:
        """How many cells hold the watched value, less than how many there were when the watching began."""
        return Num(self, rows.times)

    def peek(self, rows: Any, row: Any) -> Any:
        """A cell without forking: NONE where it holds none, anything where there is no such row."""
        cell = rows.at(term_of(row))
        return Truth(self, cell) if isinstance(rows, Rows) and rows.kind == "bool" else Num(self, cell)

    def size(self, rows: Any) -> Num:
        """How many rows, or keys, there are."""
        return Num(self, rows.length)

    def suppose(self, condition: Any, says: str = "") -> None:
        """From here on the condition holds."""
        self.learn(term_of(condition))

    def suppose_all(self, length: Any, holds: Callable[[Num], Any], says: str = "") -> None:
        """From here on it holds of every row below the length."""
        most = term_of(length)
        self.always(lambda row: z3.Implies(z3.And(row >= 0, row < most), term_of(holds(Num(self, row)))))

    def suppose_pairs(self, length: Any, holds: Callable[[Num, Num], Any], says: str = "") -> None:
        """From here on it holds of every two rows below the length, the first being the lesser."""
        most = term_of(length)
        self.always_pairs(
            lambda row, other: z3.Implies(
                z3.And(row >= 0, row < other, other < most), term_of(holds(Num(self, row), Num(self, other)))
            )
        )

    def show(self, condition: Any, says: str) -> None:
        """The condition holds on this path; raises Refuted with a candidate otherwise."""
        self.prove(term_of(condition), says)

    def show_all(self, length: Any, holds: Callable[[Num], Any], says: str) -> None:
        """It holds of every row below the length."""
        with self.aside():
            row = self.fresh("any")
            self.touch(row)
            self.learn(z3.And(row >= 0, row < term_of(length)))
            self.prove(term_of(holds(Num(self, row))), says)

    def show_pairs(self, length: Any, holds: Callable[[Num, Num], Any], says: str) -> None:
        """It holds of every two rows below the length, the first being the lesser."""
        with self.aside():
            row, other = self.fresh("any"), self.fresh("other")
            self.touch(row)
            self.touch(other)
            self.learn(z3.And(row >= 0, row < other, other < term_of(length)))
            self.prove(term_of(holds(Num(self, row), Num(self, other))), says)

    # How it is answered

    def bound(self, number: z3.ArithRef, more: int) -> None:
        """The number is kept small, where it can be, or where it has to be."""
        self.numbers.append(number)
        if self.most is not None:
            self.learn(number <= self.most + more)

    def truth(self, condition: z3.BoolRef) -> bool:
        """Decides a condition: the way that is open, or that the trail takes, or both, one after the other."""
        if len(self.taken) < len(self.trail):
            way = self.trail[len(self.taken)]
        else:
            way = not self.is_open(z3.Not(condition))
            if not way and self.is_open(condition):
                self.others.append((*self.taken, True))
        self.taken.append(way)
        self.require(len(self.taken) < MOST_DECISIONS, "a path does not end")
        self.learn(condition if way else z3.Not(condition))
        return way

    def is_open(self, condition: z3.BoolRef) -> bool:
        """Whether the condition may hold here."""
        self.solver.push()
        self.solver.add(condition)
        found = self.answer()
        self.solver.pop()
        return bool(found == z3.sat)

    def answer(self) -> z3.CheckSatResult:
        """The solver's answer, which is not unknown; what is unsatisfiable is kept."""
        found = self.solver.check()
        if found == z3.unknown:
            raise Unknown(f"the solver does not know: {self.solver.reason_unknown()}")
        if found == z3.unsat and self.keep is not None:
            self.keep(self.solver.to_smt2())
        return found

    def prove(self, condition: z3.BoolRef, says: str) -> None:
        """Raises Refuted where the condition may fail, with the solver left where it does."""
        self.solver.push()
        self.solver.add(z3.Not(condition))
        if self.answer() == z3.sat:
            raise Refuted(says)
        self.solver.pop()

    def learn(self, condition: z3.BoolRef) -> None:
        """Adds to what is known."""
        self.solver.add(condition)

    def touch(self, row: z3.ArithRef) -> None:
        """Instantiates all that is supposed of every row, and pair of rows, at this one."""
        row = z3.simplify(row)
        if row.get_id() in self.terms:
            return
        self.terms[row.get_id()] = row
        self.solver.add(*(at(fact, row) for fact in self.facts))
        for fact in self.paired:
            self.learn_pairs(fact, row)

    def always(self, fact: Callable[[z3.ArithRef], z3.BoolRef]) -> None:
        """The fact, as things now are, holds of every number."""
        self.facts.append(fact(ROW))
        rows = [*self.terms.values(), *(z3.IntVal(one) for instance in self.instances for one in instance)]
        self.solver.add(*(at(self.facts[-1], row) for row in rows))

    def always_pairs(self, fact: Callable[[z3.ArithRef, z3.ArithRef], z3.BoolRef]) -> None:
        """The fact, as things now are, holds of every two numbers."""
        self.paired.append(fact(ROW, OTHER))
        for row in self.terms.values():
            self.learn_pairs(self.paired[-1], row)
        for instance in self.instances:
            self.learn(at(self.paired[-1], z3.IntVal(instance[0]), z3.IntVal(instance[-1])))

    def learn_pairs(self, fact: z3.BoolRef, row: z3.ArithRef) -> None:
        """The fact, of a row and every one that is touched."""
        others = [other for other in self.terms.values() if not other.eq(row)]
        self.solver.add(*(at(fact, *pair) for other in others for pair in ((row, other), (other, row))))

    def some(self, start: Any, end: z3.ArithRef, holds: Callable[[z3.ArithRef], z3.BoolRef]) -> bool:
        """Whether it holds somewhere from start to end: there, at a row, or nowhere."""
        there = z3.Bool(f"there.{self.named}")
        found = self.fresh("found")
        if self.truth(there):
            self.touch(found)
            self.learn(z3.And(found >= start, found < end, holds(found)))
            if not self.is_open(z3.BoolVal(True)):
                raise Ended
            return True
        self.always(lambda row: z3.Implies(z3.And(row >= start, row < end), z3.Not(holds(row))))
        if not self.is_open(z3.BoolVal(True)):
            raise Ended
        return False

    def read(self, cell: Any, kind: str) -> Any:
        """What a cell holds; what may be None forks."""
        if kind == "bool":
            return Truth(self, cell)
        if kind == "optional" and self.truth(cell == NONE):
            return None
        return Num(self, cell)

    def fresh(self, name: str) -> z3.ArithRef:
        """An integer that stands nowhere else."""
        self.named += 1
        return z3.Int(f"{name}.{self.named}")

    def require(self, condition: bool, trouble: str) -> None:
        """Raises Unknown where the executor cannot follow the code."""
        if not condition:
            raise Unknown(trouble)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is touched and learnt of it is forgotten again, unless it ends in a refutation."""
        terms = dict(self.terms)
        self.solver.push()
        yield
        self.solver.pop()
        self.terms = terms

    def small_model(self) -> z3.ModelRef | None:
        """A model with lists as short, and numbers as small, as one of SMALL, if there is one, else any; None where the
        path is impossible.
        """
        for most in SMALL:
            self.solver.push()
            self.solver.add(*(z3.And(number >= -most, number <= most) for number in self.numbers))
            found = self.solver.check()
            model = self.solver.model() if found == z3.sat else None
            self.solver.pop()
            if model is not None:
                return model
        return None if self.answer() == z3.unsat else self.solver.model()

    def broken(self, model: z3.ModelRef) -> list[tuple[int, ...]]:
        """The rows at which the model breaks what holds of every row, of those that its lists have and one beside."""
        most = max(
            (end_of(each.length, model) for each in self.inputs.values() if isinstance(each, Rows | Map)), default=0
        )
        return [(row,) for row in range(-1, min(most, SMALL[-1]) + 1) if not self.holds_at(row, model)]

    def holds_at(self, row: int, model: z3.ModelRef) -> bool:
        """Whether in the model all that holds of every row holds of this one."""
        return all(z3.is_true(model.eval(at(fact, z3.IntVal(row)), model_completion=True)) for fact in self.facts)


class Plain:
    """A run on the plain values of a model."""

    symbolic = False

    def __init__(self, model: z3.ModelRef, inputs: dict[str, Any]) -> None:
        self.model = model
        self.given = inputs

    def value(self, term: Any) -> Any:
        """The plain value of a term: an int, a bool or a Fraction."""
        return plain(self.model.eval(term, model_completion=True))

    def number(self, name: str, least: int | None = None) -> int:
        """An integer of the model."""
        return self.value(self.given[name])  # type: ignore[no-any-return]

    def real(self, name: str) -> Fraction:
        """A real number of the model."""
        return Fraction(self.value(self.given[name]))

    def truth_value(self, name: str) -> bool:
        """A bool of the model."""
        return self.value(self.given[name])  # type: ignore[no-any-return]

    def rows(self, name: str, length: Any, kind: str) -> list[Any]:
        """A list of the model."""
        return end_of(self.given[name], self.model)  # type: ignore[no-any-return]

    def copied(self, rows: list[Any]) -> list[Any]:
        """A list with the same cells."""
        return list(rows)

    def map(self, name: str, length: Any) -> dict[int, int]:
        """A dict of the model."""
        return end_of(self.given[name], self.model)  # type: ignore[no-any-return]

    def function(self, name: str) -> Callable[[int], int]:
        """A function of the model."""
        return lambda argument: max(NONE, self.value(self.given[name](argument)))

    def optional(self, number: int) -> int | None:
        """None for NONE, else the number."""
        return None if number == NONE else number

    def watch(self, rows: list[Any], value: int) -> None:
        """Nothing: plain cells are counted when it is asked."""

    def times(self, rows: list[Any], value: int) -> int:
        """How many cells hold the value."""
        return rows.count(value)

    def peek(self, rows: Any, row: int) -> Any:
        """A cell: NONE where it holds none, or where there is no such row."""
        if isinstance(rows, dict):
            return rows.get(row, NONE)
        cell = rows[row] if 0 <= row < len(rows) else NONE
        return NONE if cell is None else cell

    def size(self, rows: Any) -> int:
        """How many rows there are, or one more than the largest key."""
        return max(rows, default=-1) + 1 if isinstance(rows, dict) else len(rows)

    def suppose(self, condition: bool, says: str = "") -> None:
        """Raises Unmet where it does not hold."""
        if not condition:
            raise Unmet

    def suppose_all(self, length: int, holds: Callable[[int], Any], says: str = "") -> None:
        """Raises Broken, with a row of which it does not hold."""
        for row in range(length):
            if not holds(row):
                raise Broken(row)

    def suppose_pairs(self, length: int, holds: Callable[[int, int], Any], says: str = "") -> None:
        """Raises Broken, with a pair of rows of which it does not hold."""
        for other in range(length):
            for row in range(other):
                if not holds(row, other):
                    raise Broken(row, other)

    def show(self, condition: bool, says: str) -> None:
        """Raises Refuted where it does not hold."""
        if not condition:
            raise Refuted(says)

    def show_all(self, length: int, holds: Callable[[int], Any], says: str) -> None:
        """Raises Refuted where it does not hold of a row."""
        for row in range(length):
            self.show(holds(row), says)

    def show_pairs(self, length: int, holds: Callable[[int, int], Any], says: str) -> None:
        """Raises Refuted where it does not hold of a pair of rows."""
        for other in range(length):
            for row in range(other):
                self.show(holds(row, other), says)


@dataclass
class Outcome:
    """What came of a body: how many paths it has, and the first trouble, if any, with the word for it."""

    paths: int = 0
    refuted: str = ""
    unknown: str = ""


def explore(
    body: Body, modules: Sequence[ModuleType], keep: Callable[[str], None] | None = None, most: int | None = None
) -> Outcome:
    """Runs the body on every path, each with a witness that is run on plain values; stops at the first trouble.

    modules: those whose `len` and `any` have to take symbolic lists. keep: takes each unsatisfiable query as SMT-LIB.
    most: how long a list may be, if there is a bound.
    """
    outcome = Outcome()
    waiting: list[tuple[bool, ...]] = [()]
    known = set(waiting)
    while waiting and not outcome.refuted and not outcome.unknown:
        trail = waiting.pop()
        try:
            found, others = follow(
                body, lambda trail, instances: Symbolic(trail, instances, keep, most), trail, modules
            )
            outcome.paths += found
        except Refuted as refuted:
            outcome.refuted, others = str(refuted), []
        except Unknown as unknown:
            outcome.unknown, others = str(unknown), []
        fresh = [other for other in others if other not in known]
        known.update(fresh)
        waiting += fresh
        if outcome.paths > MOST_PATHS:
            outcome.unknown = "there are too many paths"
    if not outcome.paths and not outcome.refuted and not outcome.unknown:
        outcome.unknown = "no path is possible"
    return outcome


def follow(
    body: Body, start: Callable[..., Symbolic], trail: tuple[bool, ...], modules: Sequence[ModuleType]
) -> tuple[bool, list[tuple[bool, ...]]]:
    """Whether there is such a path, and the ways that branch off; raises Refuted or Unknown."""
    instances: list[tuple[int, ...]] = []
    others: list[tuple[bool, ...]] = []
    for _ in range(MOST_INSTANCES):
        run = start(trail, instances)
        end, trouble, possible = on_terms(body, run, modules)
        others += run.others
        model = run.small_model() if possible else None
        if model is None:
            return False, others
        broken = run.broken(model) or compare(body, Plain(model, run.inputs), end_of(end, model), trouble)
        if not broken:
            return True, others
        instances += broken
        trail = tuple(run.taken)
    raise Unknown("what is supposed of every row is broken at ever more rows")


def on_terms(body: Body, run: Symbolic, modules: Sequence[ModuleType]) -> tuple[Any, str, bool]:
    """How the body ends, or the trouble in which it ends, and whether the path may be possible."""
    try:
        with shadowed(modules):
            return body(run), "", True
    except Ended:
        return None, "", False
    except Refuted as refuted:
        return None, str(refuted), True
    except Unknown:
        raise
    except Exception as error:
        return None, raised(error), True


def compare(body: Body, run: Plain, end: Any, trouble: str) -> list[tuple[int, ...]]:
    """Runs the body on plain values; raises Refuted where both runs fail, and Unknown where they differ.

    Gives the rows of which plain values break what is supposed, if they do.
    """
    found, said = None, ""
    try:
        found = body(run)
    except Broken as broken:
        return [broken.args]
    except Refuted as refuted:
        said = str(refuted)
    except Unmet:
        raise Unknown("a model does not have what was supposed") from None
    except Exception as error:
        said = raised(error)
    if trouble and said and kind_of(trouble) == kind_of(said):
        raise Refuted(f"{said}: {story(run)}")
    if trouble or said:
        raise Unknown(f"on terms {trouble or 'it holds'}, on plain values {said or 'it holds'}: {story(run)}")
    if found != end:
        raise Unknown(f"on terms it ends with {end}, on plain values with {found}: {story(run)}")
    return []


def raised(error: Exception) -> str:
    """An exception as a trouble."""
    return f"raises {type(error).__name__} {error}".rstrip()


def kind_of(trouble: str) -> str:
    """Of a trouble that is an exception its name; libraries word the same one differently."""
    return " ".join(trouble.split()[:2]) if trouble.startswith("raises ") else ""


def story(run: Plain) -> str:
    """The values that a plain run was given."""
    shown = {name: end_of(given, run.model) for name, given in run.given.items() if not callable(given)}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def end_of(value: Any, model: z3.ModelRef) -> Any:
    """The plain value of what a body ends with, or is given."""
    if isinstance(value, tuple):
        return tuple(end_of(each, model) for each in value)
    if isinstance(value, Num | Truth):
        return end_of(value.term, model)
    if isinstance(value, Rows):
        cells = [end_of(value.at(z3.IntVal(row)), model) for row in range(end_of(value.length, model))]
        return [cell if value.kind != "optional" or cell != NONE else None for cell in cells]
    if isinstance(value, Map):
        states = [end_of(value.at(z3.IntVal(key)), model) for key in range(end_of(value.length, model))]
        return {key: state for key, state in enumerate(states) if state != NONE}
    return plain(model.eval(value, model_completion=True)) if isinstance(value, z3.ExprRef) else value


def plain(value: z3.ExprRef) -> Any:
    """The Python value of a constant term."""
    if z3.is_bool(value):
        return z3.is_true(value)
    if z3.is_int_value(value):
        return value.as_long()
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return Fraction(value.as_fraction())


@contextmanager
def shadowed(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Within, `len` and `any` of the modules take symbolic lists as well."""
    for module in modules:
        module.__dict__.update({"len": length_of, "any": any_of})
    try:
        yield
    finally:
        for module in modules:
            for name in ("len", "any"):
                del module.__dict__[name]


def length_of(value: Any) -> Any:
    """The length of a list, symbolic or plain."""
    return Num(value.run, value.length) if isinstance(value, Rows) else builtins.len(value)


def any_of(values: Any) -> bool:
    """Whether a cell is not None, of a symbolic tail; of anything else what the builtin says."""
    if not isinstance(values, Tail):
        return builtins.any(values)
    rows = values.rows
    return rows.run.some(values.start, rows.length, lambda row: rows.at(row) != NONE)
