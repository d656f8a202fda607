"""The track record: every public fault is caught by its command, under its clause, and the page says the same."""

import json
import re
from pathlib import Path

import pytest
import track_record
from marks import replaced
from typer.testing import CliRunner

from logitsproc.conformance.bindings import resolve
from logitsproc.conformance.cli import app
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.track_record import PARAMS_FILE, PARTS, PRODUCER, RECORD, PublicFault
from logitsproc.spec import clauses

SHOWN = [fault for fault in RECORD if fault.command]
NAMED = re.compile(r"[\w.-]+/[\w.-]+#[1-9]\d*|[^#]+")


def name(fault: PublicFault) -> str:
    return fault.miniature.partition(":")[2] or fault.says


@pytest.mark.usefixtures("short_tier")
@pytest.mark.parametrize("fault", SHOWN, ids=name)
def test_the_command_catches_the_fault_and_names_the_clause(
    fault: PublicFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if fault.params:
        Path(PARAMS_FILE).write_text(fault.params)
    result = CliRunner().invoke(app, [*fault.command, "--json", "report.json"])
    assert result.exit_code == 1, result.output
    (report,) = json.loads(Path("report.json").read_text())
    assert [found["clause"] for found in report["results"] if found["status"] == "broken"] == [fault.clause]
    assert report["failure"]["clause"] == fault.clause


@pytest.mark.parametrize("fault", RECORD, ids=name)
def test_every_fault_breaks_a_clause_that_is_there_and_was_seen_somewhere(fault: PublicFault) -> None:
    assert fault.clause in clauses()
    assert fault.part in PARTS
    assert fault.seen
    assert all(NAMED.fullmatch(reference) for reference in fault.seen)
    assert fault.says.endswith(".")
    assert bool(fault.miniature) != bool(fault.unseen)


@pytest.mark.parametrize("fault", SHOWN, ids=name)
def test_the_miniature_is_there_and_its_docstring_opens_with_the_clause(fault: PublicFault) -> None:
    miniature = resolve(fault.target)
    assert isinstance(miniature, type)
    assert clause_of(miniature) == fault.clause
    assert ("--producer" in fault.command) is (fault.part == PRODUCER)
    assert (PARAMS_FILE in fault.command) is bool(fault.params)


def test_no_fault_is_there_twice_and_every_part_has_some() -> None:
    assert len({fault.says for fault in RECORD}) == len(RECORD)
    assert len({fault.target for fault in SHOWN}) == len(SHOWN)
    assert {fault.part for fault in SHOWN} == set(PARTS)


def test_what_no_run_shows_is_the_exception() -> None:
    assert len(RECORD) - len(SHOWN) <= len(RECORD) // 10


def test_a_right_processor_is_not_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_tier: None) -> None:
    monkeypatch.chdir(tmp_path)
    right = "logitsproc.conformance.miniatures.controls:MinP"
    assert CliRunner().invoke(app, ["check", right, "--as", "min_p"]).exit_code == 0


def test_the_page_is_the_one_that_the_program_writes() -> None:
    text = track_record.PAGE.read_text(encoding="utf-8")
    assert replaced(text, "record", track_record.to_markdown()) == text


def test_every_link_to_a_clause_is_an_anchor_of_its_chapter() -> None:
    text = track_record.PAGE.read_text(encoding="utf-8")
    links = re.findall(r"\(([\w-]+\.md)#([\w-]+)\)", text)
    assert len(links) == len(RECORD)
    for chapter, anchor in links:
        assert f'<a id="{anchor}"></a>' in (track_record.PAGE.parent / chapter).read_text(encoding="utf-8")
