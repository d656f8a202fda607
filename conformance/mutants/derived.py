"""The denominator that nobody picks by hand: one thing changed in the reference, and one fault beside the list law."""

from __future__ import annotations

import ast
import functools
import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from logitsproc.conformance.bindings import CannotRun, Subject, load_subject
from logitsproc.conformance.faults import FAULTS, Belief, ReadsEarly, account, clause_of
from logitsproc.conformance.history import Added, Arrival, History, Step
from logitsproc.conformance.kinds import KINDS, Kind, Pool
from logitsproc.conformance.miniatures import catalogue, controls
from logitsproc.conformance.mutants.operators import Change, changes
from logitsproc.conformance.mutants.reference import MODULES, Reference, executed, parsed, tree
from logitsproc.conformance.mutants.subjects import believing, modelled, producing
from logitsproc.conformance.player import Player, Violation
from logitsproc.conformance.producers.suite import load_producer
from logitsproc.conformance.suite import accepted
from logitsproc.conformance.watch import WATCH
from logitsproc.reference.producer import ELIDED
from logitsproc.spec import clauses

ARGUED = "argued.toml"
NAMED = re.compile(r"[A-Z]+(?:-[A-Z]+)+")
HAND, REFERENCE, PLAIN, BELIEF = "miniature", "reference", "plain", "belief"
RAISES = ("PROC-EXCEPTION", "VAL-LATER", "PROD-EXCEPTION")
"""What a mutant that raises breaks, wherever it was changed."""
ANY_ROW = ("PROC-ARGMAX", "PROC-PROMPT-NONE", "PROC-UNTOUCHED")
"""What any row function owes, beside what is its own."""
INTERVALS = ("min_p", "top_k", "top_p")
"""Transformations whose reference says how far an answer may be off: what is changed is a plain one of theirs."""
CHANGED = tuple(
    module for module in MODULES if module not in ("numerics", "expectation", *(f"row.{each}" for each in INTERVALS))
)
"""The modules of the reference that are changed."""
NOT_RUN = ("require", "keeps_argmax", "keeps_arguments", "is_idle", "named_tokens", "in_vocabulary")
"""Functions of the reference that say what others owe: no subject of the reference's own runs them."""
PROBED = 8
AT_ONCE = 1.0
"""The seconds that a first step may take."""


@dataclass(frozen=True)
class Mutant:
    """A subject with one thing wrong.

    `origin`: a miniature, one thing changed in the reference or in a plain processor, or a fault beside the list law.
    `clauses`: one of them is to be named. `kind`: what judges it; None for a producer, and for what only the solo law
    can judge, with `params`.
    """

    name: str
    origin: str
    change: str
    clauses: tuple[str, ...]
    factory: type = field(repr=False)
    kind: Kind | None = None
    producer: bool = False
    params: tuple[dict[str, Any], ...] = ()

    @property
    def pool(self) -> Pool | None:
        """The params that its requests draw from, if they are not those of its kind."""
        return list(self.params) or None

    @property
    def elsewhere(self) -> bool:
        """Whether what it breaks is nothing that a MUST asks for on reachable updates."""
        named = [clauses()[clause] for clause in self.clauses if clause not in RAISES]
        return bool(named) and not any(clause.is_must for clause in named)

    @property
    def place(self) -> str:
        """Module and function; the lines change with every edit above them."""
        return self.name.partition("#")[0]

    @property
    def argument(self) -> str:
        """Why it lives, or is named otherwise, if there is a reason."""
        return argued().get((self.place, self.change), "")

    def subject(self) -> Subject:
        """What is judged."""
        return load_producer(self.factory) if self.producer else load_subject(self.factory)


@functools.cache
def argued() -> dict[tuple[str, str], str]:
    """Why a mutant lives, or is named otherwise, by place and change."""
    text = files(__package__).joinpath(ARGUED).read_text()
    arguments = tomllib.loads(text)["argument"]
    return {(place, change): each["reason"] for each in arguments for place, change in each["mutants"]}


def opened(docstring: str | None) -> tuple[str, ...]:
    """The clauses that a docstring opens with."""
    found = tuple(NAMED.findall((docstring or "").partition(":")[0]))
    return found if set(found) <= set(clauses()) else ()


def functions(module: str) -> list[ast.FunctionDef]:
    """The functions of a module of the reference that are a clause's line and that a subject runs."""
    defined = [node for node in tree(module).body if isinstance(node, ast.FunctionDef)]
    return [node for node in defined if opened(ast.get_docstring(node)) and node.name not in NOT_RUN]


@functools.cache
def spoken_of(module: str) -> dict[str, tuple[str, ...]]:
    """The clauses of every function of a module."""
    return {node.name: opened(ast.get_docstring(node)) for node in functions(module)}


def owing(module: str, change: Change, kind: Kind | None) -> tuple[str, ...]:
    """The clauses of which a change breaks one.

    Of the list law those of the function and of what is called in the statement; of any other module all that its
    functions are, for a row, or an update, that is wrong in one way may be so in another.
    """
    spoken = spoken_of(module)
    if module == "batch":
        found = [*spoken[change.function], *(clause for name in change.called for clause in spoken.get(name, ()))]
    else:
        found = [clause for each in spoken.values() for clause in each]
    if module == "producer":
        found += chapter("producer")
    if module == "loading":
        found += ANY_ROW
    if kind is not None and module.startswith(("row.", "processor", "pipeline")):
        found += of_rows(kind)
    return tuple(dict.fromkeys((*found, *RAISES)))


def chapter(name: str) -> list[str]:
    """The clauses of a chapter."""
    return [clause.id for clause in clauses().values() if clause.chapter == name]


def of_rows(kind: Kind) -> list[str]:
    """The clauses that speak of a transformation's rows."""
    return [*(clause for name in kind.chapters for clause in chapter(name)), *kind.numerics, *ANY_ROW]


def judge_of(module: str, function: str) -> Kind:
    """What judges a module of the reference: its own transformation, or one that runs it."""
    if module.startswith("row."):
        return KINDS[module.removeprefix("row.")]
    if function == "adapted":
        return KINDS["adapter"]
    judges = {"batch": "min_p", "processor": "frequency_penalty"}
    return KINDS[judges.get(module, "pipeline")]


def from_reference() -> Iterator[Mutant]:
    """Every change of one thing in the reference, as a subject; those that nobody has run are left out."""
    return (mutant for module in CHANGED for mutant in from_module(module))


def from_module(module: str) -> Iterator[Mutant]:
    """The changes of one module of the reference; the producer speaks the elided dialect."""
    for function in functions(module):
        for number, change in enumerate(changes(tree(module), function)):
            name, reference = f"{module}.{function.name}#{number}", Reference(module, change.tree)
            if module == "producer":
                factory, owed = producing(reference, ELIDED), owing(module, change, None)
                yield Mutant(name, REFERENCE, change.says, owed, factory, producer=True)
            else:
                kind = judge_of(module, function.name)
                owed = owing(module, change, kind)
                yield from born(Mutant(name, REFERENCE, change.says, owed, modelled(kind, reference), kind))


def born(mutant: Mutant) -> Iterator[Mutant]:
    """The mutant, unless it is stillborn."""
    assert mutant.kind is not None
    if not is_stillborn(mutant.factory, mutant.kind):
        yield mutant


def is_stillborn(factory: type, kind: Kind) -> bool:
    """Whether it raises, hangs or refuses them all as soon as requests come: a program that nobody has ever run."""
    arrivals = [{}, *kind.users(random.Random(0))[:PROBED]]
    requests = {chr(ord("A") + place): Arrival(params) for place, params in enumerate(arrivals)}
    step = Step(added=tuple(Added(row, name) for row, name in enumerate(requests)))
    try:
        with WATCH.limit(AT_ONCE):
            accepted(load_subject(factory), arrivals, kind)
            Player(kind.prepare(load_subject(factory)), History(requests, kind=kind.field)).play(step)
    except (Violation, CannotRun):
        return True
    return False


def from_plain() -> Iterator[Mutant]:
    """Every change of one thing in the plain transformations of which the reference gives intervals."""
    module = parsed(controls)
    for transformation in INTERVALS:
        kind, control = KINDS[transformation], controls.CONTROLS[transformation]
        owed = (*of_rows(kind), *RAISES)
        for function in methods(module, control.__name__):
            for number, change in enumerate(changes(module, function)):
                name = f"{control.__name__}.{function.name}#{number}"
                factory = executed(change.tree, controls)[control.__name__]
                yield from born(Mutant(name, PLAIN, change.says, owed, factory, kind))


def methods(module: ast.Module, name: str) -> list[ast.FunctionDef]:
    """The methods of a class that say whom it changes, and how."""
    cls = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)
    return [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name in ("wants", "transform")]


def from_beliefs() -> Iterator[Mutant]:
    """Every fault beside the list law as a subject of its own: state kept, read stale, shared, counted."""
    for fault in FAULTS:
        if fault is not ReadsEarly:
            for kind in judges_of(fault):
                factory = believing(kind, fault)
                owed = (clause_of(fault), *RAISES)
                yield Mutant(f"{fault.__name__} {kind.field}", BELIEF, account(fault), owed, factory, kind)


def judges_of(fault: type[Belief]) -> list[Kind]:
    """The transformations that show a fault: of how many outputs there are, or of whatever a row is."""
    return [KINDS["min_tokens"]] if fault.reads_outputs else [KINDS["min_p"], KINDS["logit_bias"]]


def from_miniatures() -> Iterator[Mutant]:
    """The miniatures, which are written by hand."""
    for miniature in (*catalogue.CONSUMERS, *catalogue.ROWS, *catalogue.PIPELINES, *catalogue.PRODUCERS):
        producer, kind = miniature in catalogue.PRODUCERS, catalogue.kind_of(miniature)
        params = () if producer or kind else tuple(catalogue.NO_REPEAT)
        clause, says = clause_of(miniature), account(miniature)
        yield Mutant(miniature.__name__, HAND, says, (clause,), miniature, kind, producer, params)


@functools.cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant: the hand-written ones, and those that are derived."""
    return (*from_miniatures(), *from_reference(), *from_plain(), *from_beliefs())
