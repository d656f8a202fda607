"""What guards the proofs: what fails is said to fail, the executor answers rightly, and the spec tells of it."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import verdicts
import z3
from typer.testing import CliRunner

from logitsproc.conformance import cli
from logitsproc.proofs import exam, kernel, prove
from logitsproc.proofs.exhaustive import CHECKS
from logitsproc.proofs.lemmas import LEMMAS, Lemma
from logitsproc.proofs.prove import EXECUTOR, proved, refutes, result_of
from logitsproc.proofs.statement import EXHAUSTIVE, PROVED, REFUTED, UNKNOWN, planted
from logitsproc.spec import VERDICTS, clauses

QUICK = ("base", "remove", "users_swap", "gather_add", "condenses_once", "min_p_forms", "repetition_keeps_order")
ERRORS = exam.errors()


def call(*arguments: str) -> Any:
    """The command, run in this process."""
    return CliRunner().invoke(cli.app, ["prove", *arguments])


# Lemmas


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=lambda lemma: lemma.name)
def test_a_lemma_is_a_sentence_of_clauses_with_errors_to_refute(lemma: Lemma) -> None:
    assert set(lemma.clauses) <= set(clauses())
    assert lemma.sentence.endswith(".")
    assert lemma.planted
    assert all(error.says.endswith(".") for error in lemma.planted)


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_lemma_is_proved_and_refutes_its_errors(name: str) -> None:
    result = result_of(name)
    assert result.troubles == ()
    assert (result.verdict, result.refuted) == (PROVED, result.planted)
    assert result.count > 0


def test_what_an_error_breaks_is_refuted_with_values_that_show_it() -> None:
    lemma = LEMMAS["remove"]
    (error,) = lemma.planted
    result = proved(replace(lemma, also={**lemma.also, **error.code}))
    assert result.verdict == REFUTED
    assert result.troubles[0].startswith("the same rows hold a request: size 1, slots [0], live [True], rows 1,")


def test_an_error_that_is_none_is_not_refuted() -> None:
    lemma = LEMMAS["remove"]
    result = proved(replace(lemma, planted=(planted("It is as it should be.", RowTable=prove.table.RowTable),)))
    assert (result.verdict, result.troubles) == (REFUTED, ("not refuted: It is as it should be.",))


def test_a_lemma_without_planted_errors_fails() -> None:
    assert proved(replace(LEMMAS["remove"], planted=())).troubles == ("no error is planted",)


def test_a_lemma_without_a_path_fails() -> None:
    def body(p: Any, code: Any) -> None:
        p.suppose(p.number("number") != p.number("number"))

    result = proved(replace(LEMMAS["remove"], body=body))
    assert result.verdict == UNKNOWN
    assert "no path is possible" in result.troubles


def test_what_the_solver_does_not_know_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3.Solver, "check", lambda solver, *_: z3.unknown)
    result = proved(LEMMAS["swap"])
    assert result.verdict == UNKNOWN
    assert result.troubles[0].startswith("the solver does not know")


def number_of(name: str, story: str) -> int:
    """A number of a counterexample."""
    found = re.search(rf"\b{name} (-?\d+)", story)
    assert found
    return int(found[1])


def test_orders_with_moves_before_additions_are_refuted_on_the_shortest_list() -> None:
    lemma = LEMMAS["orders_agree"]
    for error in lemma.planted[:3]:
        story = refutes(lemma, error).refuted
        assert "adds True, moves True" in story
        assert (number_of("rows", story), number_of("added", story)) == (0, 0)


def test_overlap_is_refuted_on_one_row() -> None:
    lemma = LEMMAS["orders_agree"]
    story = refutes(lemma, lemma.planted[3]).refuted
    assert [number_of(name, story) for name in ("rows", "removed", "added")] == [1, 0, 0]


# The executor


def test_the_executor_answers_every_question() -> None:
    assert list(exam.wrong_answers(kernel)) == []


@pytest.mark.parametrize("error", ERRORS[:: len(ERRORS) // 6], ids=lambda error: error.says)
def test_an_error_in_the_executor_is_found(error: exam.Error) -> None:
    assert next(exam.wrong_answers(exam.with_error(error)))


def test_an_error_that_has_no_place_in_the_executor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Nothing\. is not one place of the executor"):
        exam.with_error(exam.Error("Nothing.", "there is no such text", ""))


def test_unsatisfiable_queries_are_kept_as_text() -> None:
    kept: list[str] = []
    prove.explored(LEMMAS["remove"], keep=kept.append)
    assert kept
    assert all("(assert" in text and "(check-sat)" in text for text in kept)


def test_a_shadowed_module_is_left_as_it_was() -> None:
    module = prove.batch
    with kernel.shadowed([module]):
        assert module.__dict__["len"] is kernel.length_of
    assert not {"len", "any"} & set(module.__dict__)


# The command


def test_the_table_has_what_was_asked_for() -> None:
    result = call("--only", "users_s*", "--jobs", "1")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:3]] == ["users_swap", "users_shrink"]
    assert "2 proved, 0 exhaustive, 0 examined; 2 of 2 planted errors refuted; 0 not shown" in result.output


def test_results_are_written_in_their_order_whichever_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    assert call("--only", "gather_*", "--json", str(file)).exit_code == 0
    found = json.loads(file.read_text())
    assert [each["name"] for each in found] == [name for name in LEMMAS if name.startswith("gather_")]
    assert {each["verdict"] for each in found} == {PROVED}


def test_what_is_not_shown_is_said_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LEMMAS, "remove", replace(LEMMAS["remove"], planted=()))
    result = call("--only", "remove", "--jobs", "1")
    assert result.exit_code == 1
    assert "remove: no error is planted\n" in result.output
    assert "0 of 0 planted errors refuted; 1 not shown" in result.output


def test_a_name_that_nothing_has_cannot_run() -> None:
    result = call("--only", "nothing*")
    assert result.exit_code == 2
    assert result.output == "logitsproc: nothing that is proved matches 'nothing*'\n"


def missing(name: str) -> Callable[[str], Any]:
    """An import that fails for want of a module."""

    def importing(_: str) -> Any:
        raise ModuleNotFoundError(name=name)

    return importing


def test_without_the_solver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", missing("z3"))
    result = call()
    assert result.exit_code == 2
    assert result.output == "logitsproc: prove needs Z3: pip install 'logitsproc[proofs]'\n"


def test_a_module_of_ours_that_is_missing_is_no_want_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", missing("logitsproc.proofs.lemmas"))
    assert isinstance(call().exception, ModuleNotFoundError)


# What is told


def declared() -> Iterator[tuple[str, str, list[str], str, int]]:
    """Name, sentence, clauses, bound and number of errors of every statement, as the code has them."""
    for each in (*LEMMAS.values(), *CHECKS):
        yield each.name, each.sentence, list(each.clauses), each.bound, len(each.planted)
    yield EXECUTOR, prove.SENTENCE, [], "", len(ERRORS)


def test_the_record_has_every_statement_as_it_is() -> None:
    kept = [
        tuple(each[field] for field in ("name", "sentence", "clauses", "bound", "planted"))
        for each in verdicts.read_record()
    ]
    assert kept == list(declared())


def test_the_record_has_no_trouble() -> None:
    for each in verdicts.read_record():
        assert each["troubles"] == []
        assert each["refuted"] == each["planted"] > 0
        assert each["count"] > 0
    assert {each["name"]: each["count"] for each in verdicts.read_record() if each["verdict"] == EXHAUSTIVE} == {
        check.name: check.count for check in CHECKS
    }


def test_spec_page_and_readme_tell_what_the_record_has() -> None:
    assert list(verdicts.stale(verdicts.read_record())) == []


def test_a_clause_has_the_strongest_word() -> None:
    record = verdicts.read_record()
    assert {clause.id: clause.verdict for clause in clauses().values()} == {
        clause: verdicts.word_of(clause, record) for clause in clauses()
    }
    assert {clause.verdict for clause in clauses().values()} == set(VERDICTS)


def test_another_result_and_one_that_is_gone_are_told() -> None:
    kept = verdicts.read_record()
    lines = list(verdicts.differing([{**kept[0], "count": 0}, *kept[2:]], kept))
    assert [line.partition(":")[0] for line in lines] == [kept[0]["name"], kept[1]["name"]]
    assert list(verdicts.differing([{**each, "seconds": 9} for each in kept], kept)) == []


def told(**parts: Any) -> verdicts.Told:
    """A result that proves UPD-ADD, otherwise in these parts."""
    return {"name": "add", "clauses": ["UPD-ADD"], "verdict": PROVED, "bound": "", **parts}


@pytest.mark.parametrize(
    ("results", "line"),
    [
        ([], "tested."),
        ([told()], "proved ([add](proofs.md#add))."),
        ([told(bound="two rows")], "proved to two rows ([add](proofs.md#add))."),
        (
            [told(verdict=EXHAUSTIVE, bound="3 rows"), told(name="users_add")],
            "proved ([users_add](proofs.md#users-add)); exhaustive to 3 rows ([add](proofs.md#add)).",
        ),
        (
            [told(name=f"histories {kind}", verdict=EXHAUSTIVE, bound="n") for kind in ("min_p", "top_k")],
            "exhaustive to the histories of 2 kinds ([histories](proofs.md#histories)).",
        ),
        ([told(verdict=REFUTED)], "tested."),
    ],
)
def test_the_line_of_a_clause(results: list[verdicts.Told], line: str) -> None:
    assert verdicts.verdict_of("UPD-ADD", results) == f"*Verdict.* {line}"


def test_a_verdict_takes_the_place_of_the_one_before() -> None:
    part = "### UPD-ADD: a title\n\n*Upstream.* none\nat all\n\n*Verdict.* tested.\n\n<a id"
    once = verdicts.with_verdict(part, [told()])
    assert once == part.replace("tested", "proved ([add](proofs.md#add))")
    assert verdicts.with_verdict(once, []) == part
