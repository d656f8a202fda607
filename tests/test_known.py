"""Known failures: what a file of them excuses, when an entry is stale, and how entries are written."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from jsonschema import Draft202012Validator
from test_cli import call, refused

from logitsproc.conformance import NotConformant, check_processor
from logitsproc.conformance.known import lines, read_known
from logitsproc.conformance.suite import TIERS, Tier

HERE = Path(__file__).parent
SCHEMA = json.loads(files("logitsproc.conformance").joinpath("report.schema.json").read_text())
WRONG = "logitsproc.conformance.miniatures.consumers:ForgetsReplacement"
RIGHT = "logitsproc.conformance.miniatures.controls:MinP"
CLAUSE = "PROC-STATE-DEPARTED"
HISTORY = "vocab 8\nas min_p\nA: min_p=1.0\n\nadd A@0 => [A]\nadd B@0 => [B]"

FAILURE = {"clause": CLAUSE, "history": HISTORY, "reproduced": True}
REPORT = {"version": 1, "target": WRONG, "verdict": "violation", "binding": "plain", "device": "cpu", "known": []}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets of tests/subjects.py are found from the working directory; time decides nothing."""
    monkeypatch.chdir(HERE)
    monkeypatch.setitem(TIERS, "quick", Tier(40, 2, 90))


def entry(target: str = WRONG, **others: str) -> str:
    """An entry as its author may write it."""
    fields = {"target": target, "clause": CLAUSE, "reason": "issue 12", "history": HISTORY} | others
    return "[[known]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


def known(folder: Path, *entries: str) -> str:
    """A file of entries."""
    path = folder / "known.toml"
    path.write_text("\n".join(entries))
    return str(path)


def report_of(folder: Path, *arguments: str, exit_code: int = 1) -> Path:
    """The JSON report of a check."""
    path = folder / "report.json"
    result = call("check", *arguments, "--json", str(path))
    assert result.exit_code == exit_code, result.output
    return path


def test_what_is_known_is_excused_told_and_never_called_conformant_alone(tmp_path: Path) -> None:
    result = call("check", WRONG, "--as", "min_p", "--known", known(tmp_path, entry()))
    assert result.exit_code == 0, result.output
    first, *others = result.stdout.splitlines()
    assert first.startswith(f"{WRONG}: conformant on ")
    assert first.endswith(f" but for known failures: {CLAUSE}")
    assert f"  known: {CLAUSE}, issue 12" in others
    assert "conformant" not in "\n".join(others)


def test_the_rest_is_judged_as_if_the_known_clause_were_kept(tmp_path: Path) -> None:
    report = check_processor(WRONG, implements="min_p", known=known(tmp_path, entry()))
    plain = check_processor(RIGHT, implements="min_p")
    assert report.verdict == "known failures"
    assert report.evidence.histories == plain.evidence.histories
    assert report.evidence.steps > 0.8 * plain.evidence.steps
    told, held = ({result.clause.id: result.status for result in each.results} for each in (report, plain))
    assert told == held | {CLAUSE: "known"}


def test_an_entry_is_stale_when_the_processor_is_repaired(tmp_path: Path) -> None:
    result = call("check", RIGHT, "--as", "min_p", "--known", known(tmp_path, entry(RIGHT)))
    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[0] == f"{RIGHT}: stale known failures: {CLAUSE}"
    assert f"  stale: {CLAUSE}, issue 12: its history passes, so take the entry out" in result.stdout
    assert "conformant" not in result.stdout.splitlines()[0]


def test_an_entry_is_stale_and_excuses_nothing_when_its_history_breaks_another_clause(tmp_path: Path) -> None:
    result = call("check", WRONG, "--as", "min_p", "--known", known(tmp_path, entry(clause="UPD-SWAP")))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{WRONG}: violation of {CLAUSE}\n")
    assert f"  stale: UPD-SWAP, issue 12: its history breaks {CLAUSE}, so take the entry out" in result.stdout


def test_an_entry_is_stale_when_its_history_cannot_be_played(tmp_path: Path) -> None:
    beyond = entry("subjects:WrongOnOneDevice", history=HISTORY.replace("as min_p\n", ""), clause="PROC-UNTOUCHED")
    assert "not on cpu" in refused("check", "subjects:WrongOnOneDevice", "--known", known(tmp_path, beyond))


def test_a_violation_of_another_clause_is_not_excused_nor_hidden(tmp_path: Path) -> None:
    target, path = "subjects:SwapsAndRemovesWrongly", tmp_path / "known.toml"
    for clause in ("UPD-SWAP", "UPD-REMOVE"):
        told = tmp_path / "report.json"
        options = ["--known", str(path)] if path.exists() else []
        result = call("check", target, "--as", "min_p", *options, "--json", str(told))
        assert result.exit_code == 1
        assert f"breaks {clause}:" in result.stdout
        assert call("known", "add", str(told), str(path), "--reason", "one of two").exit_code == 0
    assert [each.clause for each in read_known(path)] == ["UPD-SWAP", "UPD-REMOVE"]


def test_an_exception_is_known_by_what_is_raised_and_where(tmp_path: Path) -> None:
    params = tmp_path / "params.json"
    params.write_text('[{"extra_args": {"target_token": 40}}, {"extra_args": {"target_token": 3}}]')
    arguments = ["subjects:StrictAndSwapRaises", "--params", str(params)]
    path = tmp_path / "known.toml"
    call("known", "add", str(report_of(tmp_path, *arguments)), str(path), "--reason", "swaps are off")
    (entry,) = read_known(path)
    assert entry.clause == "PROC-EXCEPTION"
    result = call("check", *arguments, "--known", str(path))
    assert "known: PROC-EXCEPTION, swaps are off" in result.stdout
    assert "violation" not in result.stdout


def test_params_that_are_let_in_and_refused_later_can_be_known(tmp_path: Path) -> None:
    arguments = ["logitsproc.conformance.miniatures.validators:RaisesWhenAdded", "--as", "min_p"]
    path = tmp_path / "known.toml"
    call("known", "add", str(report_of(tmp_path, *arguments)), str(path), "--reason", "tiny")
    result = call("check", *arguments, "--known", str(path))
    assert result.exit_code == 0, result.output
    assert "  known: VAL-LATER, tiny" in result.stdout


def test_what_is_broken_in_every_step_leaves_nothing_shown(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    call(
        "known", "add", str(report_of(tmp_path, "subjects:RaisesInUpdate", "--as", "min_p")), str(path), "--reason", "-"
    )
    result = call("check", "subjects:RaisesInUpdate", "--as", "min_p", "--known", str(path))
    assert result.exit_code == 3
    assert "unproven" in result.stdout.splitlines()[0]
    assert "  known: PROC-EXCEPTION, -" in result.stdout


@pytest.mark.parametrize(
    "others",
    [
        {"target": RIGHT},
        {"device": "cuda:0"},
        {"binding": "vllm"},
        {"history": HISTORY.replace("as min_p\n", "")},
    ],
)
def test_an_entry_of_another_run_is_not_played_and_excuses_nothing(tmp_path: Path, others: dict[str, str]) -> None:
    result = call("check", WRONG, "--as", "min_p", "--known", known(tmp_path, entry(**others)))
    assert result.exit_code == 1
    assert f"violation of {CLAUSE}" in result.stdout
    assert "stale" not in result.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[[known]", "is not TOML: "),
        ('[[known]]\ntarget = "a"\ntarget = "b"\n', "is not TOML: "),
        ("known = []", "has something else than [[known]] entries"),
        ("[known]", "has something else than [[known]] entries"),
        (entry() + "[other]", "has something else than [[known]] entries"),
        (entry().replace("reason = ", "why = "), "entry 1 has why, and there are target, clause, reason, history, "),
        (entry() + entry().replace('reason = "issue 12"\n', ""), "entry 2 has no reason"),
        (entry(reason=" "), "entry 1: reason is not a text"),
        (entry().replace('"issue 12"', "12"), "entry 1: reason is not a text"),
        (entry(clause="UPD-NOSUCH"), "entry 1: no clause 'UPD-NOSUCH'; `logitsproc spec` lists them"),
        (entry(history="add A@0\nfly"), "entry 1: history: line 2: "),
        (entry(history="vocab 8\n"), "entry 1: history holds no history: there is no step in it"),
        (entry(history="add A@0\nremove 4"), "entry 1: history: "),
        (entry(history="A: min_p=7\nadd A@0"), "entry 1: history: request A: min_p must be"),
        (entry(clause="TOPK-TIES"), f"{WRONG} is known to break TOPK-TIES, by which it is not judged"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    assert says in refused("check", WRONG, "--as", "min_p", "--known", known(tmp_path, content))


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert (
        refused("check", WRONG, "--known", "nowhere.toml") == "nowhere.toml cannot be read: No such file or directory"
    )
    (tmp_path / "known.toml").write_bytes(b"\xff\xfe")
    assert refused("check", WRONG, "--known", str(tmp_path / "known.toml")).endswith("known.toml is not UTF-8 text")


def test_producers_have_no_known_failures(tmp_path: Path) -> None:
    says = refused("check", "--producer", "logitsproc.conformance.producers.reference:Elided", "--known", "known.toml")
    assert says.startswith("--known is for processors: ")


def test_an_entry_is_added_behind_what_is_there(tmp_path: Path) -> None:
    told, path = report_of(tmp_path, WRONG, "--as", "min_p"), tmp_path / "known.toml"
    before = "# what we live with\n\n" + entry("other.module:Class").replace('"\nreason', '" # for now\nreason')
    path.write_text(before)
    result = call("known", "add", str(told), str(path), "--reason", "issue 12")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{path}: {WRONG}, {CLAUSE}\n"
    text = path.read_text()
    assert text.startswith(before + "\n[[known]]\n")
    assert 'history = """\nvocab 8\n' in text
    first, second = read_known(path)
    assert (first.target, first.reason) == ("other.module:Class", "issue 12")
    assert (second.target, second.clause, second.binding, second.device) == (WRONG, CLAUSE, "plain", "cpu")
    assert call("check", WRONG, "--as", "min_p", "--known", str(path)).exit_code == 0


def test_an_entry_is_not_added_twice(tmp_path: Path) -> None:
    told, path = report_of(tmp_path, WRONG, "--as", "min_p"), tmp_path / "known.toml"
    assert call("known", "add", str(told), str(path), "--reason", "issue 12").exit_code == 0
    before = path.read_bytes()
    assert refused("known", "add", str(told), str(path), "--reason", "13") == f"{path} has {CLAUSE} of {WRONG} already"
    doubled = tmp_path / "doubled.json"
    doubled.write_text(json.dumps(json.loads(told.read_text()) * 2))
    other = tmp_path / "other.toml"
    assert refused("known", "add", str(doubled), str(other), "--reason", "13").endswith(" already")
    assert path.read_bytes() == before
    assert not other.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["subjects:RaisesInValidation", "--as", "min_p"],
            "VAL-ERROR of subjects:RaisesInValidation cannot be known: no history shows it",
        ),
        (
            ["--producer", "logitsproc.conformance.miniatures.producers:SaysTheOldSize"],
            "cannot be known: its history is ",
        ),
        (["subjects:MisbehavesOnce", "--as", "min_p"], "it does not fail when it is played again"),
    ],
)
def test_what_no_history_shows_again_cannot_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.setattr("subjects.MisbehavesOnce.made", 0)
    told, path = report_of(tmp_path, *arguments), tmp_path / "known.toml"
    assert says in refused("known", "add", str(told), str(path), "--reason", "issue 12")
    assert not path.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a report of `logitsproc check --json`"),
        ('[{"version": 1, "known": []}]', "is not a report of `logitsproc check --json`"),
        ('{"version": 1}', "is not a report of `logitsproc check --json`"),
        (json.dumps([REPORT | {"verdict": "fine"}]), "is not a report of `logitsproc check --json`"),
        (json.dumps([REPORT | {"failure": FAILURE | {"clause": "UPD-NOSUCH"}}]), "is not a report of "),
        (json.dumps([REPORT | {"failure": FAILURE | {"history": "fly"}}]), "report.json: history: line 1: "),
        (json.dumps([REPORT | {"failure": FAILURE | {"history": "add A@0\nremove 4"}}]), "report.json: history: "),
    ],
)
def test_what_is_no_report_adds_nothing(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "report.json").write_text(content)
    assert says in refused("known", "add", str(tmp_path / "report.json"), str(tmp_path / "k.toml"), "--reason", "12")


def test_a_report_without_a_failure_and_a_reason_that_says_nothing_add_nothing(tmp_path: Path) -> None:
    told, path = report_of(tmp_path, RIGHT, "--as", "min_p", exit_code=0), str(tmp_path / "known.toml")
    assert refused("known", "add", str(told), path, "--reason", "issue 12") == f"{told} has no failure"
    assert refused("known", "add", str(told), path, "--reason", " ") == "--reason says nothing"
    says = refused("known", "add", str(told), str(tmp_path / "no" / "known.toml"), "--reason", "issue 12")
    assert says.endswith("known.toml cannot be written")


@pytest.mark.parametrize("text", ['A: x=\'"""\'', "A: x='\\\\'", "A: x='é\\n'", "A: x='\\u0007'"])
def test_a_history_is_written_as_it_is(text: str) -> None:
    assert tomlkit.parse(f"history = {lines(text).as_string()}")["history"] == text + "\n"


def told_by(tmp_path: Path, target: str, *entries: str) -> tuple[dict[str, Any], str]:
    """The report of a check with known failures, as JSON data and as JUnit XML."""
    told, junit = tmp_path / "report.json", tmp_path / "report.xml"
    files = ["--json", str(told), "--junit", str(junit), "--report", str(tmp_path / "report.html")]
    call("check", target, "--as", "min_p", "--known", known(tmp_path, *entries), *files)
    (report,) = json.loads(told.read_text())
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors([report])] == []
    return report, junit.read_text()


def test_reports_tell_what_is_known(tmp_path: Path) -> None:
    report, junit = told_by(tmp_path, WRONG, entry())
    assert (report["verdict"], report["exit_status"], report["failure"]) == ("known failures", 0, None)
    assert report["known"] == [{"clause": CLAUSE, "reason": "issue 12", "stale": False}]
    assert '<skipped message="known: issue 12" />' in junit
    assert "<failure" not in junit
    assert f"<p>known: {CLAUSE}, issue 12.</p>" in (tmp_path / "report.html").read_text()


def test_reports_tell_what_is_stale(tmp_path: Path) -> None:
    report, junit = told_by(tmp_path, RIGHT, entry(RIGHT))
    assert (report["verdict"], report["exit_status"], report["failure"]) == ("stale known failures", 1, None)
    assert report["known"] == [{"clause": CLAUSE, "reason": "issue 12", "stale": True}]
    assert '<failure message="stale known failure: its history passes" type="stale" />' in junit


def test_a_test_fails_when_what_is_known_is_stale(tmp_path: Path) -> None:
    with pytest.raises(NotConformant, match=f"stale: {CLAUSE}, issue 12: its history passes"):
        check_processor(RIGHT, implements="min_p", known=Path(known(tmp_path, entry(RIGHT))))


def test_the_plugin_expects_what_is_known_to_fail(pytester: pytest.Pytester) -> None:
    options = ["--lp-as", "min_p", "--lp-known", known(pytester.path, entry()), "-rx", "-p", "no:cacheprovider"]
    result = pytester.runpytest_inprocess("--logits-processor", WRONG, *options)
    assert result.ret == 0
    assert result.parseoutcomes()["xfailed"] == 1
    result.stdout.fnmatch_lines([f"XFAIL *{CLAUSE} - *issue 12*"])


def test_the_plugin_fails_for_what_is_stale(pytester: pytest.Pytester) -> None:
    options = ["--lp-as", "min_p", "--lp-known", known(pytester.path, entry(RIGHT)), "-p", "no:cacheprovider"]
    result = pytester.runpytest_inprocess("--logits-processor", RIGHT, *options)
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines([f"*{CLAUSE} was known to be broken, and its history passes: take the entry out*"])


def test_a_bad_file_is_one_line_in_pytest(pytester: pytest.Pytester) -> None:
    options = ["--lp-known", known(pytester.path, "[[known]"), "-p", "no:cacheprovider"]
    result = pytester.runpytest_inprocess("--logits-processor", RIGHT, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: logitsproc: *known.toml is not TOML: *"])
