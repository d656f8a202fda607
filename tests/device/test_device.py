"""What of the GPU backend can be tried without a GPU, beyond the gate: it takes minutes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HISTORIES = "60"
"""As few as give every clause a witness."""
REGISTERS = {"update": 64, "scan": 128, "select": 128, "slow": 255, "emit": 64}
"""Of 65,536 a multiprocessor's threads share: so that 512 threads fit, and twice as many of the small ones."""
VECTORS = {"scan": ("vector_loads", "vector_stores"), "emit": ("vector_stores",)}
"""What reads and writes whole rows does it four words at once."""


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=3000)


@pytest.fixture(scope="module")
def compiled() -> list[dict[str, Any]]:
    """What every kernel becomes for a GPU of compute capability 9.0."""
    done = run("compiled.py", TRITON_INTERPRET="0")
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_is_spilled_and_registers_are_within_their_budget(compiled: list[dict[str, Any]]) -> None:
    assert {each["kernel"] for each in compiled} == set(REGISTERS)
    for each in compiled:
        assert each["spilled"] == 0, each
        assert each["registers"] <= REGISTERS[each["kernel"]], each


def test_rows_are_read_and_written_by_vectors(compiled: list[dict[str, Any]]) -> None:
    for each in compiled:
        assert all(each[what] >= 4 for what in VECTORS.get(each["kernel"], ())), each


def test_the_pipeline_is_conformant_with_every_kernel_interpreted() -> None:
    done = run("judge.py", "--histories", HISTORIES, "Pipeline")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "optimized.gpu:Pipeline: conformant" in done.stdout


def test_everything_for_a_gpu_runs_as_far_as_a_cpu_allows() -> None:
    done = run("run.py", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of them differ" in done.stdout and "interpreted, so no times" in done.stdout
    assert done.stdout.count("| ran |") >= 4
