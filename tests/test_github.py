"""What a check says in GitHub Actions: annotations, escaped, at the subject's class, and the summary of the job."""

import inspect
from pathlib import Path

import pytest
import subjects
from test_cli import call
from test_known import RIGHT, WRONG, entry, known

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.github import command, markdown, place_of
from logitsproc.conformance.suite import TIERS, Tier
from logitsproc.spec import clauses

HERE = Path(__file__).parent
TARGET = "subjects:SwapsAndRemovesWrongly"


@pytest.fixture(autouse=True)
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of GitHub Actions in this folder; the file of its summary."""
    monkeypatch.chdir(HERE)
    monkeypatch.setitem(TIERS, "quick", Tier(40, 2, 90))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def commands(stdout: str) -> list[str]:
    """The workflow commands."""
    return [line for line in stdout.splitlines() if line.startswith("::")]


def test_a_command_is_escaped_as_github_reads_it() -> None:
    told = command("error", {"file": "a:b,c%.py", "line": "3"}, "A,B:C", "50%, so:\r\nyes")
    assert told == "::error file=a%3Ab%2Cc%25.py,line=3,title=A%2CB%3AC::50%25, so:%0D%0Ayes"
    assert command("warning", {}, "A", "b") == "::warning title=A::b"


def test_a_violation_is_an_error_at_the_class_of_the_subject() -> None:
    result = call("check", TARGET, "--as", "min_p")
    assert result.exit_code == 1
    (line,) = commands(result.stdout)
    number = inspect.getsourcelines(subjects.SwapsAndRemovesWrongly)[1]
    assert line.startswith(f"::error file=subjects.py,line={number},title=UPD-SWAP::{TARGET}: ")
    assert line.endswith(f"%0A{clauses()['UPD-SWAP'].link}")
    assert "%0ATo fix: On SWAP pop both states" in line


def test_files_are_named_from_the_workspace_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(HERE.parent))
    (line,) = commands(call("check", TARGET, "--as", "min_p").stdout)
    assert line.startswith(f"::error file={HERE.name}/subjects.py,line=")


def test_a_class_elsewhere_and_what_is_no_class_have_no_place() -> None:
    assert place_of(load_subject(WRONG), HERE) == {}
    assert place_of(load_subject(lambda vllm_config, device, is_pin_memory: None), HERE.parent / "spec") == {}
    made = type("Made", (subjects.MinP,), {"__module__": "subjects"})
    assert place_of(load_subject(made), HERE) == {}


def test_the_summary_has_verdict_clause_history_and_evidence_and_is_appended(summary: Path) -> None:
    summary.write_text("# before\n\n")
    call("check", TARGET, "--as", "min_p")
    call("check", "subjects:RaisesInValidation", "--as", "min_p")
    text = summary.read_text()
    assert text.startswith(
        f"# before\n\n### {TARGET}: violation of UPD-SWAP\n\n[UPD-SWAP]({clauses()['UPD-SWAP'].link}): "
    )
    assert "\n\n    vocab 8\n" in text
    assert "; judged by reference min\\_p; " in text
    assert "\n### subjects:RaisesInValidation: violation of VAL-ERROR\n" in text
    assert text.count("    vocab 8\n") == 1


def test_what_is_known_is_a_warning_and_what_is_stale_an_error(tmp_path: Path, summary: Path) -> None:
    result = call("check", WRONG, RIGHT, "--as", "min_p", "--known", known(tmp_path, entry(), entry(RIGHT)))
    warning, error = commands(result.stdout)
    assert warning == f"::warning title=PROC-STATE-DEPARTED::{WRONG}: known: PROC-STATE-DEPARTED, issue 12"
    assert error.startswith(f"::error title=PROC-STATE-DEPARTED::{RIGHT}: stale: PROC-STATE-DEPARTED, issue 12: its ")
    link = clauses()["PROC-STATE-DEPARTED"].link
    assert f"- [PROC-STATE-DEPARTED]({link}) known: PROC-STATE-DEPARTED, issue 12\n" in summary.read_text()


def test_unproven_is_an_error_for_it_fails_the_job(summary: Path) -> None:
    result = call("check", "subjects:TargetToken")
    assert result.exit_code == 3
    (line,) = commands(result.stdout)
    assert line.startswith("::error file=subjects.py,line=")
    assert ",title=unproven::subjects:TargetToken: unproven, " in line
    assert summary.read_text().startswith("### subjects:TargetToken: unproven, ")


def test_a_right_subject_has_no_annotation(summary: Path) -> None:
    assert commands(call("check", RIGHT, "--as", "min_p").stdout) == []
    assert "conformant on " in summary.read_text()


@pytest.mark.parametrize("told", ["false", ""])
def test_nothing_is_said_elsewhere(monkeypatch: pytest.MonkeyPatch, summary: Path, told: str) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", told)
    assert commands(call("check", TARGET, "--as", "min_p").stdout) == []
    assert not summary.exists()


def test_without_a_file_there_is_no_summary_and_one_that_cannot_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert call("check", TARGET, "--as", "min_p").exit_code == 1
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    result = call("check", TARGET, "--as", "min_p")
    assert result.exit_code == 2
    assert result.stderr == f"logitsproc: {tmp_path} cannot be written: Is a directory\n"


def test_markdown_says_what_the_text_says() -> None:
    assert markdown("a_b <i>*x*</i> [1, 2] `c` | #1") == r"a\_b \<i\>\*x\*\</i\> \[1, 2\] \`c\` \| \#1"
