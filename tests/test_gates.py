"""The gates that others paste: the action's steps run, the hook's command runs, and the page says what they take."""

import json
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from gates import (
    ACTION,
    EXPRESSION,
    HOOKS,
    INSTALL,
    JUDGE,
    PAGE,
    PROCESSORS,
    ROOT,
    blocks,
    commands_here,
    project,
    run_step,
)

from logitsproc.conformance.known import read_known
from logitsproc.spec import site


def judge(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step of the action that judges."""
    return run_step(JUDGE, folder, commands_here(), **inputs)


def test_inputs_come_through_the_environment_alone_and_each_is_used() -> None:
    assert ACTION["runs"]["using"] == "composite"
    used = []
    for step in (INSTALL, JUDGE):
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        for name, text in step["env"].items():
            assert EXPRESSION.fullmatch(text)
            assert f"${name}" in step["run"]
            used.append(EXPRESSION.fullmatch(text)[1])
    assert sorted(used) == sorted(["github.action_path", *(f"inputs.{name}" for name in ACTION["inputs"])])
    assert all(("default" in declared) is not declared.get("required", False) for declared in ACTION["inputs"].values())


def test_the_action_fails_for_a_wrong_processor_with_an_annotation_and_a_report(tmp_path: Path) -> None:
    done = judge(project(tmp_path / "mine"), targets="processors:Wrong\n", **{"as": "min_p"}, report="report.json")
    assert done.returncode == 1, done.stderr
    line = PROCESSORS.splitlines().index("class Wrong(Forgets):") + 1
    assert f"\n::error file=processors.py,line={line},title=PROC-STATE-DEPARTED::processors:Wrong: " in done.stdout
    (report,) = json.loads((tmp_path / "mine" / "report.json").read_text())
    assert (report["target"], report["tier"]) == ("processors:Wrong", "quick")


def test_the_action_hands_every_input_on(tmp_path: Path) -> None:
    mine = project(tmp_path / "mine")
    (mine / "params.json").write_text('[{"min_p": 0.25}]')
    (mine / "known.toml").write_text("[known]")
    inputs = {"as": "min_p", "params": "params.json", "known": "known.toml"}
    done = judge(mine, targets="processors:Right  processors:Wrong\nprocessors:Right", tier="ci", **inputs)
    assert (done.returncode, done.stderr) == (2, "logitsproc: known.toml has something else than [[known]] entries\n")
    (mine / "known.toml").write_text("")
    done = judge(mine, targets="processors:Wrong", tier="ci", report="report.json", **inputs)
    assert done.returncode == 1, done.stderr
    (report,) = json.loads((mine / "report.json").read_text())
    assert (report["tier"], report["kind"], report["params"]["drawn"]) == ("ci", "min_p", 2)


@pytest.mark.parametrize("target", ["$(touch hacked)", "a;touch hacked", "`touch hacked`", "--help", "*"])
def test_nothing_in_an_input_is_run(tmp_path: Path, target: str) -> None:
    mine = project(tmp_path / "mine")
    done = judge(mine, targets=target, tier="quick")
    assert done.returncode == 2
    assert done.stderr.startswith(f"logitsproc: {target.split()[0]!r} is not module:Class")
    assert not (mine / "hacked").exists()


def test_the_hook_runs_and_fails_for_a_wrong_processor(tmp_path: Path) -> None:
    (hook,) = HOOKS
    (offered,) = yaml.safe_load(blocks("yaml")[1])["repos"]
    (used,) = offered["hooks"]
    assert used["id"] == hook["id"]
    assert not hook["pass_filenames"]
    command, *arguments = [*shlex.split(hook["entry"]), "processors:Wrong", *used["args"][1:]]
    mine = project(tmp_path / "mine")
    (mine / "params.json").write_text('[{"min_p": 0.25}]')
    done = subprocess.run(
        [commands_here() / command, *arguments], cwd=mine, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "processors:Wrong: violation of PROC-STATE-DEPARTED" in done.stdout


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("validate-manifest", (ROOT / ".pre-commit-hooks.yaml").read_text()),
        *(("validate-config", block) for block in blocks("yaml")[1:3]),
    ],
)
def test_pre_commit_takes_the_hook_and_what_the_page_says_of_it(tmp_path: Path, command: str, text: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    subprocess.run([commands_here() / "pre-commit", command, "file.yaml"], cwd=tmp_path, check=True)


def test_the_page_has_the_inputs_of_the_action() -> None:
    workflow = yaml.safe_load(blocks("yaml")[0])
    (ours,) = [step for step in workflow["jobs"]["contract"]["steps"] if step.get("uses", "").startswith("logitsproc/")]
    repository = ours["uses"].partition("@")[0]
    assert site().startswith(f"https://github.com/{repository}/")
    assert set(ours["with"]) <= set(ACTION["inputs"])
    assert all(f"\n| `{name}` | " in PAGE for name in ACTION["inputs"])


def test_the_entry_of_the_page_is_one(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "known.toml").write_text(text)
    (known,) = read_known(tmp_path / "known.toml")
    assert known.clause == "PROC-STATE-DEPARTED"
    fields = tomllib.loads(text)["known"][0]
    assert all(f"`{name}`" in PAGE for name in fields)
