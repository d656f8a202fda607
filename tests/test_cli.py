"""The command line: what it prints, what it writes, how it ends; bad input is one line and never a traceback."""

import json
import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from logitsproc.conformance.cli import app
from logitsproc.conformance.suite import TIERS
from logitsproc.spec import clauses

HERE = Path(__file__).parent
WRONG = "logitsproc.conformance.miniatures.consumers:ForgetsReplacement"
RIGHT = "logitsproc.optimized:MinPLogitsProcessor"
COMMAND = [sys.executable, "-c", "from logitsproc.conformance.cli import main; main()"]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, short_tier: None) -> None:
    """The targets of tests/subjects.py are found from the working directory."""
    monkeypatch.chdir(HERE)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> str:
    """What a call that cannot run says: one line, exit 2, no traceback."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("logitsproc: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("logitsproc: ").rstrip()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nonsense", "'nonsense' is not module:Class"),
        ("no_such_module:Thing", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("subjects:Missing", "subjects has no Missing"),
        ("subjects:not_a_class", "subjects:not_a_class is function, not a class"),
        ("subjects:NoMethods", "subjects:NoMethods is not a logits processor: it has no update_state()"),
        ("subjects:RaisesInInit", "raised ValueError: no such model"),
        ("subjects:UnsureOfInvariance", "subjects:UnsureOfInvariance.is_argmax_invariant() returned 'yes', not a bool"),
        ("subjects:RefusesEverything", "validate_params refuses all"),
        ("exits_on_import:Thing", "exits_on_import cannot be imported: SystemExit"),
        ("subjects:ExitsInInit", "raised SystemExit: 0"),
    ],
)
def test_a_target_that_cannot_be_run_is_one_line(target: str, says: str) -> None:
    assert says in refused("check", target, "--as", "min_p")


def test_a_validate_params_that_raises_is_a_violation_where_the_domain_is_known() -> None:
    assert "raised KeyError: 'extra_args'" in refused("check", "subjects:RaisesInValidation")
    result = call("check", "subjects:RaisesInValidation", "--as", "min_p")
    assert result.exit_code == 1
    assert "breaks VAL-ERROR" in result.stdout


def test_a_processor_is_told_its_device_and_so_is_the_script_of_a_failure() -> None:
    assert "raised ValueError: not on cpu" in refused("check", "subjects:WrongOnOneDevice", "--as", "min_p")
    result = call("check", "subjects:WrongOnOneDevice", "--as", "min_p", "--device", "cpu:0")
    assert result.exit_code == 1
    assert "torch.set_default_device('cpu:0')" in result.stdout
    assert "(config, torch.device('cpu:0'), False)" in result.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--as", "top_q"], "no reference for 'top_q'; there are allowed_token_ids, bad_words, "),
        (["--tier", "slow"], "--tier slow: there are quick, ci, deep"),
        (["--scope", "all"], "--scope all: there are reachable, literal"),
        (["--binding", "jax"], "--binding jax: there are auto, vllm, plain"),
        (["--clauses", "UPD-NOSUCH"], "no clause matches 'UPD-NOSUCH'"),
        (["--params", "nowhere.json"], "nowhere.json cannot be read: No such file or directory"),
        (["--oracle", "subjects:Missing"], "subjects has no Missing"),
        (["--oracle", "subjects:SHARED"], "the oracle subjects:SHARED is not a function"),
        (["--oracle", "subjects:raising_oracle"], "the oracle subjects:raising_oracle raised ZeroDivisionError: oops"),
        (["--oracle", "subjects:shapeless_oracle"], "must return a float32 row of 8 logits"),
        (["--as", "min_p", "--oracle", "subjects:target_token"], "--as and --oracle both say what is right; give one"),
        (["--json", "no/such/folder/report.json"], "no/such/folder/report.json cannot be written"),
        (["--junit", "."], ". cannot be written"),
        (["--device", "warp"], "there is no device 'warp' here: RuntimeError: "),
        (["--device", "cuda:99"], "there is no device 'cuda:99' here: "),
        (["--device", "meta"], "there is no device 'meta' here: "),
    ],
)
def test_an_option_that_cannot_be_met_is_one_line(options: list[str], says: str) -> None:
    assert says in refused("check", RIGHT, *options)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b"[]", "is not a list of objects"),
        (b'{"min_p": 1}', "is not a list of objects"),
        (b"[1]", "is not a list of objects"),
        (b"\xff\xfe", "cannot be read: not UTF-8 text"),
        (b"[" * 100_000, "is not JSON"),
        (b'[{"logit_bias": {"a": 1}}]', "logit_bias is not an object of token id: number"),
        (b'[{"extra_args": 5}]', "extra_args must be a mapping, not 5"),
        (b'[{"min_p": NaN}]', "min_p must be a number from 0 to 1, not nan"),
        (b'[{"min_tokens": "3"}]', "min_tokens must be a number of tokens, not '3'"),
        (b'[{"min_q": 1}]', "no such SamplingParams field: min_q"),
        (b'[{"logit_bias": {"99999999": 1}}]', "the params name token 99999999"),
    ],
)
def test_a_params_file_that_is_wrong_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "params.json"
    path.write_bytes(content)
    assert says in refused("check", RIGHT, "--params", str(path))


@pytest.mark.parametrize(
    ("target", "clause", "says"),
    [
        ("WrongShape", "PROC-SHAPE", "returned torch.float32 [0, 7] on cpu"),
        ("WrongDtype", "PROC-SHAPE", "returned torch.float64"),
        ("ReturnsNone", "PROC-SHAPE", "apply returned NoneType, not a tensor"),
        ("ReturnsNaN", "PROC-UNTOUCHED", "row 0 is wrong"),
        ("RaisesInUpdate", "PROC-EXCEPTION", "update_state raised RuntimeError: out of cheese (subjects.py:"),
        ("ExitsInUpdate", "PROC-EXCEPTION", "update_state raised SystemExit: 0"),
        ("MisbehavesOnce", "PROC-FUNCTION", "Played again alone, the history does not fail"),
        ("SharesState", "PROC-", "Step "),
    ],
)
def test_a_subject_that_breaks_crudely_is_a_violation(target: str, clause: str, says: str) -> None:
    result = call("check", f"subjects:{target}", "--as", "min_p")
    assert result.exit_code == 1, result.output
    assert f"violation of {clause}" in result.stdout
    assert says in result.stdout
    assert "Traceback" not in result.output


def test_a_subject_that_loops_for_ever_is_a_violation_and_not_a_hang() -> None:
    result = call("check", "subjects:LoopsInApply", "--as", "min_p", "--step-seconds", "0.3")
    assert result.exit_code == 1
    assert "violation of PROC-EXCEPTION" in result.stdout
    assert "apply did not return in time" in result.stdout


def test_a_constructor_that_loops_for_ever_is_one_line() -> None:
    assert "did not return in time" in refused(
        "check", "subjects:HangsInInit", "--as", "min_p", "--step-seconds", "0.3"
    )


def test_a_subject_that_will_not_be_interrupted_ends_the_process() -> None:
    arguments = ["check", "subjects:SwallowsTheInterrupt", "--as", "min_p", "--step-seconds", "0.2"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "logitsproc: the subject does not return and cannot be interrupted\n"


def test_a_violation_says_everything(tmp_path: Path) -> None:
    result = call("check", WRONG, "--as", "min_p")
    assert result.exit_code == 1
    for part in (
        f"{WRONG} breaks PROC-STATE-DEPARTED",
        "The history, 2 steps:",
        "add B@0  => [B]",
        "token    logit in    expected         got",
        clauses()["PROC-STATE-DEPARTED"].sentence,
        clauses()["PROC-STATE-DEPARTED"].link,
        "To fix: ",
        "processor.update_state(BatchUpdate(",
    ):
        assert part in result.stdout
    script = tmp_path / "script.py"
    script.write_text(dedented(result.stdout.partition("As a script:\n\n")[2]))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("tensor(") == 2
    assert "-inf" in done.stdout.rpartition("tensor(")[2]


def dedented(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.splitlines()) + "\n"


def test_the_same_seed_gives_the_same_report_and_another_seed_another() -> None:
    first, again, other = (call("check", WRONG, "--as", "min_p", "--seed", seed).stdout for seed in ("5", "5", "6"))
    timeless = [re.sub(r"[\d.]+ s$", "", text, flags=re.MULTILINE) for text in (first, again, other)]
    assert timeless[0] == timeless[1]
    assert timeless[0] != timeless[2]


def test_reports_for_machines(tmp_path: Path) -> None:
    written, junit = tmp_path / "report.json", tmp_path / "report.xml"
    result = call("check", WRONG, RIGHT, "--as", "min_p", "--json", str(written), "--junit", str(junit))
    assert result.exit_code == 1
    wrong, right = json.loads(written.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (wrong["verdict"], wrong["failure"]["clause"]) == ("violation", "PROC-STATE-DEPARTED")
    assert (right["verdict"], right["scope"], right["exit_status"]) == ("conformant", "every well-formed update", 0)
    musts = [entry for entry in right["results"] if entry["level"] == "MUST" and entry["status"] != "n/a"]
    assert musts
    assert all(entry["witnessed"] > 0 for entry in musts)
    suites = ElementTree.parse(junit).getroot()
    failures = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failures == ["PROC-STATE-DEPARTED"]


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "report.json"
    written.write_text("before")

    def full(**_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    result = call("check", WRONG, "--as", "min_p", "--json", str(written))
    assert result.exit_code == 2
    assert result.stderr == f"logitsproc: {written} cannot be written: No space left on device\n"
    assert written.read_text() == "before"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    assert call("check", WRONG, "--as", "min_p", "--json", str(pipe)).exit_code == 1
    assert json.loads(reader.communicate(timeout=30)[0])[0]["verdict"] == "violation"
    assert pipe.is_fifo()
    link = tmp_path / "link"
    link.symlink_to(os.devnull)
    assert call("check", WRONG, "--as", "min_p", "--json", str(link)).exit_code == 1
    assert link.is_symlink()
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize(
    ("target", "clause"),
    [
        ("PopsTheParams", "PROC-READONLY"),
        ("SortsThePrompt", "PROC-READONLY"),
        ("ForgetsHighRows", "PROC-INDEPENDENT"),
        ("CachesByLength", "PROC-SHRINK"),
    ],
)
def test_faults_that_only_some_histories_show(tmp_path: Path, target: str, clause: str) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"extra_args": {"target_token": 3}}, {"extra_args": {"target_token": 5}}]')
    result = call("check", f"subjects:{target}", "--params", str(path), "--scope", "literal")
    assert result.exit_code == 1, result.output
    assert f"violation of {clause}" in result.stdout


def test_a_processor_that_acts_on_repeated_outputs_is_used_and_proven(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"extra_args": {"ngram": 2}}]')
    result = call("check", "subjects:NoRepeatedPairs", "--params", str(path))
    assert result.exit_code == 0, result.output
    assert "1 of 2 params use the processor" in result.stdout


def test_the_literal_scope_judges_what_reachable_only_reports() -> None:
    target = "logitsproc.conformance.miniatures.consumers:AddsFirst"
    reachable = call("check", target, "--as", "min_p")
    assert reachable.exit_code == 0
    assert "conformant on reachable updates" in reachable.stdout
    assert "does not hold on updates with overlap (an index removed and added): UPD-OVERLAP, " in reachable.stdout
    literal = call("check", target, "--as", "min_p", "--scope", "literal")
    assert literal.exit_code == 1
    assert "violation of UPD-OVERLAP" in literal.stdout


def test_the_deep_tier_ends_when_its_minutes_are_over() -> None:
    result = call("check", RIGHT, "--as", "min_p", "--tier", "deep", "--minutes", "0.1")
    assert result.exit_code == 0
    assert float(re.search(r"; ([\d.]+) s$", result.stdout, re.MULTILINE)[1]) < 12


def test_clauses_outside_the_glob_do_not_decide() -> None:
    outside = call("check", WRONG, "--as", "min_p", "--clauses", "MINP-*")
    assert "outside --clauses: PROC-STATE-DEPARTED" in outside.stdout
    assert outside.exit_code == 0
    assert call("check", WRONG, "--as", "min_p", "--clauses", "PROC-*").exit_code == 1


def test_params_that_the_reference_has_no_meaning_for_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"min_p": -0.5}]')
    says = refused("check", RIGHT, "--as", "min_p", "--params", str(path))
    assert says.startswith("SamplingParams refuses {'min_p': -0.5}: ValueError: min_p must be a number from 0 to 1")
    path.write_text('[{"logit_bias": {"0": "much"}}]')
    assert "logit_bias is not an object of token id: number" in refused("check", RIGHT, "--params", str(path))
    path.write_text('[{"temperature": "hot"}]')
    assert "temperature must be a number from 0 to 2, not 'hot'" in refused("check", RIGHT, "--params", str(path))
    path.write_text('[{"extra_args": {"shift": 3}}]')
    target = "logitsproc.conformance.miniatures.pipelines:Pipeline"
    says = refused("check", target, "--as", "pipeline", "--params", str(path))
    assert says.startswith("the reference has no meaning for extra_args={'shift': 3}: TypeError")


def test_a_right_processor_that_indexes_by_output_ids_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"extra_args": {"penalty": 2.0}}]')
    result = call("check", "subjects:Penalises", "--params", str(path))
    assert result.exit_code == 0, result.output


def test_a_subject_that_loops_is_no_traceback_without_a_kind_either() -> None:
    result = call("check", "subjects:LoopsInApply", "--step-seconds", "0.3")
    assert result.exit_code == 1
    assert "PROC-EXCEPTION" in result.stdout


def test_shrinking_keeps_to_params_and_vocabularies_that_may_be(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"extra_args": {"target_token": 40}}]')
    result = call("check", "subjects:StrictAndSwapRaises", "--params", str(path))
    assert result.exit_code == 1
    assert "KeyError" in result.stdout
    assert "vocab 41" in result.stdout


def test_a_glob_that_leaves_nothing_to_judge_is_unproven() -> None:
    for glob in ("PROD-*", "BIAS-*"):
        result = call("check", RIGHT, "--as", "min_p", "--clauses", glob)
        assert result.exit_code == 3
        assert "unproven, no MUST was judged" in result.stdout


def test_time_that_is_up_is_no_conformance_on_every_update() -> None:
    target = "logitsproc.conformance.miniatures.consumers:AddsFirst"
    result = call("check", target, "--as", "min_p", "--scope", "literal", "--tier", "deep", "--minutes", "0.1")
    assert result.exit_code == 1 or "conformant on reachable updates" in result.stdout


def test_writing_beside_strided_logits_is_a_violation() -> None:
    result = call("check", "subjects:WritesBeside", "--as", "min_p")
    assert result.exit_code == 1
    assert "apply wrote outside the logits that it was given" in result.stdout


def test_a_message_with_control_characters_is_valid_xml(tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"
    assert call("check", "subjects:RaisesInColour", "--as", "min_p", "--junit", str(junit)).exit_code == 1
    assert ElementTree.parse(junit).getroot() is not None


def test_a_slow_subject_that_fails_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIERS, "quick", replace(TIERS["quick"], seconds=18))
    result = call("check", "subjects:SlowAndWrong", "--as", "min_p")
    assert result.exit_code == 1
    assert float(re.search(r"; ([\d.]+) s$", result.stdout, re.MULTILINE)[1]) < 20


def test_without_a_witness_the_exit_is_3() -> None:
    result = call("check", "subjects:TargetToken")
    assert result.exit_code == 3
    assert "unproven" in result.stdout
    assert "--params FILE.json" in result.stdout


def test_params_and_oracle_of_the_author(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('[{"extra_args": {"target_token": 3}}, {"extra_args": {"target_token": 70}}]')
    alone = call("check", "subjects:TargetToken", "--params", str(path))
    assert alone.exit_code == 0, alone.output
    judged = call("check", "subjects:TargetToken", "--params", str(path), "--oracle", "subjects:target_token")
    assert judged.exit_code == 0, judged.output
    assert "judged by subjects:target_token" in judged.stdout
    wrong = call("check", "subjects:TargetToken", "--params", str(path), "--oracle", "subjects:wrong_oracle")
    assert wrong.exit_code == 1


def test_a_nested_class_is_a_target() -> None:
    result = call("check", "subjects:Nested.Inner", "--as", "min_p")
    assert result.exit_code == 0


def test_the_progress_bar_is_for_terminals_only() -> None:
    command = [*COMMAND, "check", WRONG, "--as", "min_p"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.stderr == b""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment, timeout=60, check=False)
    os.close(follower)
    assert b"reachable" in os.read(leader, 65536)


def test_a_reader_that_goes_away_is_no_violation() -> None:
    shell = ["bash", "-c", f"set -o pipefail; {sys.executable} -c '{COMMAND[2]}' spec | true"]
    done = subprocess.run(shell, capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


def test_spec_lists_clauses() -> None:
    everything = call("spec")
    assert everything.exit_code == 0
    assert all(clause in everything.stdout for clause in clauses())
    some = call("spec", "MINP-*")
    assert "MINP-THRESHOLD" in some.stdout
    assert "UPD-ORDER" not in some.stdout
    assert refused("spec", "XYZ-*") == "no clause matches 'XYZ-*'"


def test_cite_prints_one() -> None:
    result = call("cite", "upd-order")
    assert result.stdout.startswith("> **[UPD-ORDER](https://")
    assert refused("cite", "UPD-NOSUCH") == "no clause 'UPD-NOSUCH'; `logitsproc spec` lists them"


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    path = tmp_path / "typed.history"
    path.write_text("as min_p\nA: min_p=0.5\n\n[A]\nadd B@0 => [B]\n")
    return path


def test_replay_checks_a_history_and_plays_it(typed: Path) -> None:
    alone = call("replay", str(typed))
    assert alone.exit_code == 0
    assert alone.stdout == "step 0: [A]\nstep 1: [B]\n"
    right = call("replay", str(typed), RIGHT)
    assert right.exit_code == 0
    assert "every row is right" in right.stdout
    wrong = call("replay", str(typed), WRONG)
    assert wrong.exit_code == 1
    assert "breaks PROC-STATE-DEPARTED" in wrong.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[A]\nadd B@5\n", "add at 5, beyond one past the end"),
        (b"[A]\nadd B@0 => [A]\n", "step 1 draws [A], and the list law gives [B]"),
        (b"[A]\nadd B\n", "line 2: 'add B' is none of"),
        (b"\xff", "is not UTF-8 text"),
        (b"as min_q\n[A]\n", "no reference for 'min_q'"),
        (b"vocab 3\n[A]\nlogits A = [1] => [1]\n", "step 0 shows A 1 logits, of 3"),
        (
            b"vocab 2\nas min_p\nA: min_p=0.5\n[A]\nlogits A = [0, 9] => [0, 9]\n",
            "step 0 shows A a row that the reference does not give",
        ),
    ],
)
def test_a_history_that_is_wrong_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "typed.history"
    path.write_bytes(content)
    assert says in refused("replay", str(path))


def test_replay_names_what_check_names(tmp_path: Path) -> None:
    path = tmp_path / "typed.history"
    path.write_text("as min_p\nA: prompt=None\n[A]\n")
    result = call("replay", str(path), "logitsproc.conformance.miniatures.consumers:WantsAPrompt")
    assert result.exit_code == 1
    assert "breaks PROC-PROMPT-NONE" in result.stdout
    path.write_text("as logit_bias\nA: logit_bias={99: 1.0}\n[A]\n")
    beyond = call("replay", str(path), RIGHT)
    assert beyond.exit_code == 2
    assert "request A: token 99 is not one of the vocabulary's 8" in beyond.stderr
    path.write_text("as min_p\nA: min_p='much'\n[A]\n")
    assert "request A: min_p must be a number from 0 to 1, not 'much'" in call("replay", str(path)).stderr
    path.write_text("as min_p\nwith bfloat16\n[A]\n")
    assert "bfloat16 logits are for pipelines" in call("replay", str(path)).stderr


def test_a_history_that_is_not_there_is_one_line() -> None:
    assert refused("replay", "nowhere.history") == "nowhere.history cannot be read: No such file or directory"


PRODUCERS = "logitsproc.conformance.producers.reference"


def test_a_producer_is_judged_and_the_reports_have_its_clauses(tmp_path: Path) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "report.xml"
    result = call("check", "--producer", f"{PRODUCERS}:Explicit", "--json", str(report), "--junit", str(junit))
    assert result.exit_code == 0, result.output
    assert f"{PRODUCERS}:Explicit: conformant on every schedule" in result.stdout
    assert "speaks the explicit dialect" in result.stdout
    (data,) = json.loads(report.read_text())
    assert data["scope"] == "every schedule"
    assert {item["clause"].partition("-")[0] for item in data["results"]} == {"PROD"}
    assert "PROD-REPLAY" in junit.read_text()


def test_a_wrong_producer_is_explained(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    target = "logitsproc.conformance.miniatures.producers:ForgetsAMove"
    result = call("check", "--producer", target, "--json", str(report))
    assert result.exit_code == 1
    assert f"{target} breaks PROD-REPLAY" in result.stdout
    assert "To fix: Record every change where it is made" in result.stdout
    (data,) = json.loads(report.read_text())
    assert data["failure"]["clause"] == "PROD-REPLAY"
    assert "remove 0" in data["failure"]["history"]


def test_a_should_that_a_producer_does_not_meet_is_shown_with_its_history() -> None:
    result = call("check", "--producer", "logitsproc.conformance.miniatures.producers:CondensesByShifting")
    assert result.exit_code == 0
    assert "does not hold on what a producer should do: PROD-CONDENSE" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((RIGHT,), f"{RIGHT} is not a producer: it has no step()"),
        ((f"{PRODUCERS}:Elided", "--as", "min_p"), "--scope and --device are for processors, not for producers"),
        ((f"{PRODUCERS}:Elided", "--scope", "literal"), "--as, --oracle, --scope and --device are for processors"),
        ((f"{PRODUCERS}:Elided", "--device", "cpu:0"), "--as, --oracle, --scope and --device are for processors"),
        ((f"{PRODUCERS}:Missing",), f"{PRODUCERS} has no Missing"),
    ],
)
def test_what_is_no_producer_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused("check", "--producer", *arguments)


def test_a_producer_named_as_a_processor_is_refused() -> None:
    assert "is not a logits processor: it has no update_state()" in refused("check", f"{PRODUCERS}:Elided")


RECORDED = HERE / "recordings" / "vllm-0.32-cpu-async.jsonl"


def test_replay_takes_a_recording_too() -> None:
    alone = call("replay", str(RECORDED))
    assert (alone.exit_code, alone.stdout.count("\n")) == (0, 1)
    assert "192 of 192 are the engine's own algorithm" in alone.stdout
    right = call("replay", str(RECORDED), RIGHT)
    assert right.exit_code == 0
    assert right.stdout.endswith(f"{RIGHT}: every row is right\n")
    assert refused("replay", str(HERE)) == f"{HERE} cannot be read: Is a directory"


def test_the_recorder_is_a_target_that_needs_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOGITSPROC_RECORD", raising=False)
    says = refused("check", "logitsproc.conformance.recorder:Recorder")
    assert says.endswith("raised ValueError: LOGITSPROC_RECORD names no file to record to")
