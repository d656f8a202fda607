"""Every mutant dies under a clause of what was changed, or there is an argument why it lives; the record says so."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from logitsproc.conformance import cli
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.miniatures.consumers import ShiftsOnRemove
from logitsproc.conformance.miniatures.controls import MinP
from logitsproc.conformance.mutants.campaign import NOT_RUN, Kill, attempt, fates
from logitsproc.conformance.mutants.derived import (
    CHANGED,
    HAND,
    Mutant,
    all_mutants,
    argued,
    from_module,
    functions,
)
from logitsproc.conformance.mutants.matrix import ALIVE, EQUIVALENT, OTHERWISE, RIGHT, matrix, outcome
from logitsproc.conformance.mutants.operators import changes
from logitsproc.conformance.mutants.reference import Reference
from logitsproc.conformance.mutants.subjects import modelled, producing
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.suite import CONFORMANT, Settings, run
from logitsproc.reference.producer import ELIDED, EXPLICIT
from logitsproc.spec import clauses

HOSTS_OWN = {"VAL-VOCABULARY"}
"""What no subject can break: a host that lets requests in is looked at in test_findings."""
STILLBORN = {"processor.expected_rows", "validation.or_none"}
"""What raises for the first request whatever is changed."""


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return all_mutants()


@pytest.mark.usefixtures("short_tier")
@pytest.mark.parametrize("field", ["min_p", "bad_words", "pipeline", "adapter"])
def test_the_reference_itself_keeps_the_contract(field: str) -> None:
    report = run(Settings(load_subject(modelled(KINDS[field], Reference())), KINDS[field]))
    assert report.failure is None
    assert (report.verdict, report.scope) == (CONFORMANT, "every well-formed update")


@pytest.mark.parametrize("dialect", [ELIDED, EXPLICIT])
def test_the_reference_producer_does_too(dialect: str) -> None:
    assert run_producer(Settings(load_producer(producing(Reference(), dialect)))).verdict == CONFORMANT


def undecided(found: Iterator[Mutant]) -> list[tuple[str, str, Kill]]:
    """The mutants that the first seed does not kill under one of their clauses, and that no argument excuses."""
    kills = [(mutant, attempt(mutant, 0)) for mutant in found if not mutant.argument]
    return [(mutant.name, mutant.change, kill) for mutant, kill in kills if not set(mutant.clauses) & set(kill.clauses)]


@pytest.mark.parametrize("module", ["batch", "row.logit_bias", "row.min_tokens", "row.presence_penalty"])
def test_one_thing_changed_in_the_reference_is_seen(module: str) -> None:
    assert undecided(from_module(module)) == []


def test_every_function_of_the_reference_that_is_run_is_changed(mutants: list[Mutant]) -> None:
    ran = {f"{module}.{function.name}" for module in CHANGED for function in functions(module)}
    assert ran - {mutant.place for mutant in mutants} == STILLBORN


def test_every_clause_has_a_mutant(mutants: list[Mutant]) -> None:
    assert {clause for mutant in mutants if mutant.origin == HAND for clause in mutant.clauses} == set(
        clauses()
    ) - HOSTS_OWN


def test_every_argument_is_about_a_mutant(mutants: list[Mutant]) -> None:
    assert set(argued()) <= {(mutant.place, mutant.change) for mutant in mutants}
    assert all(reason.endswith(".") for reason in argued().values())


def test_names_are_unique(mutants: list[Mutant]) -> None:
    assert len({mutant.name for mutant in mutants}) == len(mutants)


def changed(source: str) -> list[str]:
    """What the operators make of a function."""
    module = ast.parse(source)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    return [change.says for change in changes(module, function)]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(a, b):\n    return a < b", ["boundary: a < b -> a <= b"]),
        ("def f(a, b):\n    return a == b", ["negated: a == b -> a != b"]),
        ("def f(a, b):\n    return a and b", ["conjunct: a and b -> b", "conjunct: a and b -> a"]),
        ("def f(a, b, c):\n    return a if c else b", ["branch: a if c else b -> a", "branch: a if c else b -> b"]),
        ("def f(a):\n    return [*a, *a]", []),
        (
            "def f(a, b):\n    return (*a, *b)",
            ["dropped: (*a, *b) -> (*b,)", "dropped: (*a, *b) -> (*a,)", "order: (*a, *b) -> (*b, *a)"],
        ),
        ("def f(a, b):\n    return g(a, b)", ["order: g(a, b) -> g(b, a)"]),
        ("def f(a: int | None = 1) -> int | None:\n    '''Text.'''\n    require(a < 1)", []),
        ("def f(a):\n    return a[1]", ["boundary: 1 -> 0 in return a[1]", "boundary: 1 -> 2 in return a[1]"]),
    ],
)
def test_operators(source: str, says: list[str]) -> None:
    assert changed(source) == says


def test_a_change_leaves_the_tree_it_was_made_of() -> None:
    module = ast.parse("def f(a, b):\n    a.append(b)\n    b.append(a)")
    before = ast.dump(module)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len({ast.dump(change.tree) for change in changes(module, function)} | {before}) == 4
    assert ast.dump(module) == before


@pytest.mark.parametrize(
    ("killed", "right", "argument", "is_what"),
    [(100, 99, "", RIGHT), (100, 98, "", OTHERWISE), (98, 98, "", ALIVE), (0, 0, "so", EQUIVALENT), (0, 0, "", ALIVE)],
)
def test_ninety_nine_of_a_hundred(killed: int, right: int, argument: str, is_what: str) -> None:
    assert outcome({"killed": killed, "right": right, "argued": argument}, 100) == is_what


RIGHT_ONE = Mutant("Right", HAND, "nothing is wrong.", ("UPD-REMOVE",), MinP, KINDS["min_p"])
WRONG_ONE = Mutant("Wrong", HAND, "it shifts.", ("UPD-REMOVE",), ShiftsOnRemove, KINDS["min_p"])


def invoked(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["mutants", *arguments])


def test_the_command_writes_what_it_finds(tmp_path: Path) -> None:
    table, picture = tmp_path / "kills.json", tmp_path / "kills.svg"
    result = invoked("--only", "ShiftsOnRemove", "--seeds", "2", "--json", str(table), "--picture", str(picture))
    assert result.exit_code == 0
    told = json.loads(table.read_text())
    assert [(each["name"], each["outcome"], each["killed"]) for each in told["mutants"]] == [
        ("ShiftsOnRemove", RIGHT, 2)
    ]
    assert told["mutants"][0]["named"] == {"UPD-REMOVE": 2}
    assert "<svg" in picture.read_text()


def test_a_mutant_that_lives_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "all_mutants", lambda: [RIGHT_ONE, WRONG_ONE])
    result = invoked()
    assert result.exit_code == 1
    assert "alive" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "Nobody"), "no mutant matches 'Nobody'"),
        (("--json", "/no/such/folder/k.json"), "/no/such/folder/k.json cannot be written"),
        (("--picture", "kills.jpg"), "kills.jpg: a picture is .svg or .png"),
    ],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    result = invoked(*arguments)
    assert (result.exit_code, result.stderr) == (2, f"logitsproc: {says}\n")


def test_processes_find_the_same(mutants: list[Mutant]) -> None:
    few = [mutant for mutant in mutants if mutant.name in ("ShiftsOnRemove", "MasksTheAllowed", "ForgetsAMove")]

    def told(jobs: int) -> list[Any]:
        lines = matrix(few, fates(few, range(1), jobs), 1)["mutants"]
        return [{**each, "seconds": None} for each in lines]

    assert told(1) == told(2)


def test_a_mutant_that_cannot_be_run_is_told() -> None:
    class Refuses(MinP):
        @classmethod
        def validate_params(cls, params: Any) -> None:
            raise ValueError("no")

    kill = attempt(Mutant("Refuses", HAND, "", ("VAL-ACCEPT",), Refuses, KINDS["min_p"]), 0)
    assert kill.clauses == (NOT_RUN,)
    assert "refuses all" in kill.check
