"""The field: the page is what the program makes of what was found, and a failure is a history that breaks a clause."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from marks import replaced

from logitsproc.conformance.notation import format_history, parse
from logitsproc.conformance.params import checked_params
from logitsproc.conformance.replaying import first_breach
from logitsproc.spec import clauses

FIELD = Path(__file__).parent / "field"
PAGE = FIELD.parent.parent / "spec" / "field.md"
sys.path.insert(0, str(FIELD))
from lineup import FIELD as LINEUP  # noqa: E402
from lineup import Subject  # noqa: E402

FOUND: list[dict[str, Any]] = json.loads((FIELD / "field.json").read_text(encoding="utf-8"))
BROKEN = [(subject, said) for subject, said in zip(LINEUP, FOUND, strict=True) if said.get("history")]


@pytest.fixture(scope="module")
def table() -> Any:
    """The program, under a name that no other table has."""
    spec = spec_from_file_location("field_table", FIELD / "table.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name(subject: Subject) -> str:
    return f"{subject.package.name}:{subject.target.partition(':')[2]}:{subject.way}"


def test_the_page_is_the_one_that_the_program_writes(table: Any) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replaced(text, "field", table.to_markdown(FOUND)) == text, "run `make field`"


def test_what_was_found_is_of_the_subjects_that_are_listed() -> None:
    listed = [(each.package.name, each.package.version, each.shows, each.way) for each in LINEUP]
    assert [(said["package"], said["version"], said["class"], said["way"]) for said in FOUND] == listed
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("subject", "said"), BROKEN, ids=[name(subject) for subject, _ in BROKEN])
def test_a_failing_history_is_well_formed_and_its_clause_is_there(subject: Subject, said: dict[str, Any]) -> None:
    history = parse(said["history"])
    assert first_breach(history) is None
    assert history.steps
    assert format_history(history).strip() == said["history"].strip()
    assert said["verdict"] == "violation"
    assert said["broken"]
    assert set(said["broken"]) <= set(clauses())
    assert set(said["broken"]) <= set(subject.causes), "it is not said why"


@pytest.mark.parametrize("said", FOUND, ids=map(name, LINEUP))
def test_every_subject_has_a_verdict_and_what_goes_with_it(said: dict[str, Any]) -> None:
    if said["verdict"] == "not judged":
        assert said["why"]
        assert "\n" not in said["why"]
        return
    assert (said["verdict"] == "violation") is bool(said["broken"]) is bool(said["history"])
    assert (said["verdict"] == "unproven") is (not said["broken"] and bool(said["unproven"]))
    assert {*said["unproven"], *said["not met"]} <= set(clauses())
    assert said["histories"] > 0


@pytest.mark.parametrize("file", sorted({subject.params for subject in LINEUP if subject.params}))
def test_the_params_are_params(file: str) -> None:
    assert checked_params(json.loads((FIELD / "params" / file).read_text(encoding="utf-8")), file)


def test_a_cause_stands_only_where_its_clause_was_seen_broken() -> None:
    named = {(name(subject), clause) for subject in LINEUP for clause in subject.causes}
    seen = {(name(subject), clause) for subject, said in BROKEN for clause in said["broken"]}
    assert {who for who, _ in named} == {who for who, _ in seen}


def test_a_command_that_does_not_end_is_ended(table: Any) -> None:
    with pytest.raises(table.NotJudged, match="did not end within"):
        table.finished([sys.executable, "-c", "import time; time.sleep(60)"], None, 0.2)


def test_what_cannot_be_judged_says_why_in_one_line(table: Any) -> None:
    done = table.finished([sys.executable, "-c", "raise SystemExit('noise\\nlogitsproc: no such thing')"], None, 60)
    assert done.returncode == 1
    assert table.told(done, "logitsproc: ") == "no such thing"


def test_a_clause_that_nobody_has_looked_into_is_not_published(table: Any) -> None:
    found = {"results": [{"status": "broken", "clause": "UPD-ORDER"}]}
    with pytest.raises(SystemExit, match="UPD-ORDER"):
        table.summary(LINEUP[0], found)
