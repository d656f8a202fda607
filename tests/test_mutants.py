"""Every mutant dies under a clause of what was changed, or there is an argument why it lives; the record says so."""

import ast
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
from again import KILLS, differing
from page import PAGE, pages

from logitsproc.conformance import cli
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.history import Step
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.miniatures.consumers import ShiftsOnRemove
from logitsproc.conformance.miniatures.controls import MinP
from logitsproc.conformance.mutants.campaign import NOT_RUN, SHORT, Part, attempt, fates, settings_for, shortest_known
from logitsproc.conformance.mutants.derived import CHANGED, HAND, Mutant, all_mutants, argued, functions
from logitsproc.conformance.mutants.matrix import ALIVE, EQUIVALENT, OTHERWISE, RIGHT, matrix, outcome
from logitsproc.conformance.mutants.operators import changes
from logitsproc.conformance.mutants.reference import Reference
from logitsproc.conformance.mutants.shortest import events, histories, pieces_of, shortest
from logitsproc.conformance.mutants.subjects import modelled, producing
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.suite import CONFORMANT, Run, Settings, run, same_kind
from logitsproc.reference.producer import ELIDED, EXPLICIT
from logitsproc.spec import clauses

README = Path(__file__).parent.parent / "README.md"
RECORD = json.loads(KILLS.read_text(encoding="utf-8"))
TOLD = {each["name"]: each for each in RECORD["mutants"]}
OF_MUTANTS = ("name", "origin", "change", "clauses", "argued")
LEAST_SEEDS = 100
SOME = 16
"""One of so many that die soon is run again; `make mutants-again` runs all."""
SOON = 30
"""Histories."""
HOSTS_OWN = {"VAL-VOCABULARY"}
"""What no subject can break: a host that lets requests in is looked at in test_findings."""
RIGHT_ONE = Mutant("Right", HAND, "nothing is wrong.", ("UPD-REMOVE",), MinP, KINDS["min_p"])
WRONG_ONE = Mutant("Wrong", HAND, "it shifts.", ("UPD-REMOVE",), ShiftsOnRemove, KINDS["min_p"])
STILLBORN = {"processor.expected_rows", "validation.or_none"}
"""What raises for the first request whatever is changed."""


@pytest.fixture(scope="module")
def mutants() -> tuple[Mutant, ...]:
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


def test_the_record_is_of_these_mutants(mutants: tuple[Mutant, ...]) -> None:
    now = [(each.name, each.origin, each.change, list(each.clauses), each.argument) for each in mutants]
    assert [tuple(each[name] for name in OF_MUTANTS) for each in TOLD.values()] == now


def test_every_mutant_dies_under_a_clause_of_what_was_changed_or_there_is_a_reason() -> None:
    assert [each["name"] for each in TOLD.values() if each["outcome"] not in (RIGHT, EQUIVALENT)] == []
    assert [each["name"] for each in TOLD.values() if each["outcome"] == RIGHT and each["argued"]] == []
    assert RECORD["seeds"] >= LEAST_SEEDS


def test_the_first_seed_gives_what_the_record_says(mutants: tuple[Mutant, ...]) -> None:
    dying = [each for each in mutants if TOLD[each.name]["killed"] and TOLD[each.name]["first"]["histories"] <= SOON]
    assert list(differing([TOLD[each.name] for each in dying[::SOME]], dying[::SOME], 1)) == []


def test_a_shown_history_is_within_one_event_of_the_shortest() -> None:
    assert {each["name"]: each["events"] for each in TOLD.values() if each["events"]["over"] > 1} == {}


def test_the_tables_are_those_of_the_records() -> None:
    texts = (README.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"))
    assert pages(*texts) == texts


@pytest.mark.parametrize("name", ["MovesFirst", "MovesFromSnapshot", "CountsApplies", "CountsEverybody"])
def test_the_search_finds_a_history_as_short_as_the_shown_one_and_none_that_is_shorter(
    name: str, mutants: tuple[Mutant, ...]
) -> None:
    mutant = next(each for each in mutants if each.name == name)
    kill = attempt(mutant, 0, Part(SHORT))
    assert kill.shown is not None
    judge, wrong = Run(settings_for(mutant, 0)), []
    told = judge.replay(kill.shown)
    for count in range(1, kill.events + 1):
        found = map(judge.replay, histories(kill.shown, pieces_of(kill.shown), count))
        wrong += [count for violation in found if violation and told and same_kind(violation, told)][:1]
    assert shortest_known(mutant, [kill]) == {kill.check: wrong[0]}
    assert kill.events <= wrong[0] + 1


def test_a_shown_history_with_too_much_is_made_short() -> None:
    kill = attempt(WRONG_ONE, 0, Part(SHORT))
    assert kill.shown is not None
    longer = replace(kill.shown, steps=(*kill.shown.steps, Step(), Step()))
    assert events(longer.steps) == kill.events + 2
    assert shortest(Run(settings_for(WRONG_ONE, 0)), longer) == kill.events


def test_every_function_of_the_reference_that_is_run_is_changed(mutants: tuple[Mutant, ...]) -> None:
    ran = {f"{module}.{function.name}" for module in CHANGED for function in functions(module)}
    assert ran - {mutant.place for mutant in mutants} == STILLBORN


def test_every_clause_has_a_mutant(mutants: tuple[Mutant, ...]) -> None:
    assert {clause for mutant in mutants if mutant.origin == HAND for clause in mutant.clauses} == set(
        clauses()
    ) - HOSTS_OWN


def test_every_argument_is_about_a_mutant(mutants: tuple[Mutant, ...]) -> None:
    assert set(argued()) <= {(mutant.place, mutant.change) for mutant in mutants}
    assert all(reason.endswith(".") for reason in argued().values())


def test_names_are_unique(mutants: tuple[Mutant, ...]) -> None:
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


def test_what_is_piped_is_a_line_for_each_mutant_with_nothing_left_out() -> None:
    lines = invoked("--only", "ForgetsReplacement").stdout.splitlines()
    named = TOLD["ForgetsReplacement"]["change"]
    assert lines[1].split()[0] == "ForgetsReplacement"
    assert named in lines[1]
    assert "PROC-STATE-DEPARTED 1" in lines[1]


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


def test_processes_find_the_same(mutants: tuple[Mutant, ...]) -> None:
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

    kill = attempt(Mutant("Refuses", HAND, "", ("VAL-ACCEPT",), Refuses, KINDS["min_p"]), 0, Part(SHORT))
    assert kill.clauses == (NOT_RUN,)
    assert "refuses all" in kill.check
