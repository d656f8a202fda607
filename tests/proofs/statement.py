"""What is shown, and what came of it: a sentence, its clauses, and the errors planted to see that it can fail."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from logitsproc.optimized.table import RowTable, Users
from logitsproc.reference import batch, producer
from logitsproc.reference.row.repetition_penalty import penalised

PROVED, EXHAUSTIVE, EXAMINED = "proved", "exhaustive", "examined"
REFUTED, UNKNOWN = "refuted", "unknown"
SHIPPED: Mapping[str, Any] = {
    "RowTable": RowTable,
    "Users": Users,
    "remove": batch.remove,
    "add": batch.add,
    "move": batch.move,
    "swap": batch.swap,
    "resize": batch.resize,
    "apply_update": batch.apply_update,
    "condense": producer.condense,
    "condense_once": producer.condense_once,
    "trim_once": producer.trim_once,
    "listed": producer.listed,
    "engine_step": producer.engine_step,
    "penalised": penalised,
}
"""The code under proof, by the names under which what is shown speaks of it."""


@dataclass(frozen=True)
class Planted:
    """An error that has to be found: what it puts in place of the shipped code, by name."""

    says: str
    code: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What came of one statement.

    verdict: PROVED, EXHAUSTIVE or EXAMINED where nothing is wrong; else REFUTED or UNKNOWN, and troubles says why, a
    line each. bound: what it is exhaustive to, empty for what holds without one. count: paths or cases, of `unit`.
    refuted: how many of the `planted` errors were refuted.
    """

    name: str
    sentence: str
    clauses: tuple[str, ...]
    verdict: str
    bound: str
    count: int
    unit: str
    refuted: int
    planted: int
    troubles: tuple[str, ...]
    seconds: float


def planted(says: str = "", /, **code: Any) -> Planted:
    """An error: planted("It keeps holes.", remove=lambda ...), or, where its docstring says what is wrong,
    planted(remove=keeps_holes).
    """
    ((_, wrong),) = code.items()
    found = says or " ".join((inspect.getdoc(wrong) or "").partition("\n\n")[0].split())
    assert found, "an error says what is wrong"
    return Planted(found, code)


def code_with(error: Planted | None = None, also: Mapping[str, Any] = SHIPPED) -> SimpleNamespace:
    """The shipped code and what else is spoken of, or the same with an error in it."""
    return SimpleNamespace(**{**SHIPPED, **also, **(error.code if error else {})})
