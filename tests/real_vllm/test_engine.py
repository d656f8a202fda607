"""A real engine on the CPU, judged live: right processors are right, and a wrong one is caught."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from vllm.v1.sample.logits_processor import LogitsProcessor

from logitsproc import optimized
from logitsproc.optimized import vllm as taken

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
import run as program

REQUESTS = "40"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program.__file__, *arguments, "--requests", REQUESTS]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_nothing_differs_under_asynchronous_scheduling() -> None:
    done = run("async")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["differences"] == 0
    assert all(counts[what] for what in ("resumed", "swaps", "one-way moves", "placeholders", "rows judged"))


def test_a_processor_that_forgets_to_clear_is_caught_in_the_step() -> None:
    done = run("priority", "--add", "spoiled:ForgetsToClear")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["differences"]
    (line, *_) = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    assert "spoiled:ForgetsToClear" in line
    assert line.endswith("(PROC-UNTOUCHED)")


@pytest.mark.parametrize("name", [name for name in optimized.__all__ if name.endswith("LogitsProcessor")])
def test_every_fast_processor_has_a_class_that_vllm_takes(name: str) -> None:
    taker, fast = getattr(taken, name), getattr(optimized, name)
    assert issubclass(taker, LogitsProcessor)
    assert issubclass(taker, fast) or taker.FAST is fast


@pytest.mark.parametrize("target", ["spoiled:Missing", "logitsproc.optimized:MinPLogitsProcessor"])
def test_what_vllm_would_not_load_is_one_line(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        program.check_target(target)
    assert ended.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.startswith("logitsproc: ")
    assert said.count("\n") == 1
