"""What recordings and generated histories reach: the table is fresh, and real traffic reaches nothing on its own."""

from pathlib import Path

import pytest
import usage
from marks import replaced
from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.conformance.notation import parse
from logitsproc.conformance.usage import Comparison, reached

README = usage.RECORDINGS / "README.md"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return usage.compared()


def test_the_suite_generates_whatever_real_traffic_reaches(comparison: Comparison) -> None:
    assert [line for line in comparison.lines if line.recorded and not line.reachable] == []
    assert [line for line in comparison.lines if line.recorded]


def test_the_table_is_the_one_in_the_readme(comparison: Comparison) -> None:
    text = README.read_text()
    assert replaced(text, "usage", usage.to_markdown(comparison)) == text


@pytest.mark.parametrize(
    ("history", "feature"),
    [
        ("[A]\nremove 0\nadd A@0", ("request", "comes back without outputs")),
        ("[A]\nA += [1]; remove 0\nadd A@0", ("request", "comes back with outputs")),
        ("[A]\nremove 0\nA += [1]; add A@0", ("request", "comes with tokens that landed while it was out")),
        ("[A]\nremove 0\nadd A@0 fresh", ("request", "comes back with another list")),
        ("[A, B]\nremove 1; add B@0", ("request", "comes back in the step it left, at another row")),
        ("[A, B]\nadd B@1", ("request", "comes back in the step it left, at its own row")),
        ("[A, B]\nremove 1", ("request", "leaves, listed in removed")),
        ("[A, B]\nadd C@1", ("request", "leaves, its row taken")),
        ("[A, B]\nmove 1->0", ("request", "leaves, its row filled by a move")),
        ("[A, B, C]\nswap 0<->1; swap 1<->2", ("moves", "swaps that share a row")),
        ("[A, B, C, D]\nmove 3->0; swap 0<->1", ("moves", "a row is filled by a move and swapped")),
        ("[A]\nadd B@1; swap 0<->1", ("moves", "a row is added and swapped")),
        ("[A, B, C]\nremove 1", ("rows", "holes after the step")),
        ("[A]\nadd B@0", ("rows", "nobody stays")),
        ("[A, B]\nA += [1]", ("tokens", "for some rows and none for others")),
        ("[A]\nA += [?1]", ("tokens", "placeholders")),
        ("[A]\nquiet", ("tokens", "nothing happens at all")),
        ("[A]\nremove 0; size 0", ("update", "removed")),
        ("[A]\nswap 0<->0", ("update", "swap")),
    ],
)
def test_a_feature_shows_in_the_step_that_has_it(history: str, feature: tuple[str, str]) -> None:
    *before, _ = history.splitlines()
    assert reached([parse(history)])[feature] == reached([parse("\n".join(before))])[feature] + 1


SHORT = '{"recording": "logitsproc", "version": 1, "host": "mine", "vocab": 8}\n'
ILL_FORMED = '{"step": 0, "outputs": {}, "update": {"size": 1, "removed": [4], "added": [], "moved": []}}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[A, B]\n", "is not a recording"),
        ("", "is not a recording"),
        (SHORT + ILL_FORMED, "step 0 breaks PROD-RANGE: remove 4, which holds no request"),
    ],
)
def test_what_cannot_be_compared_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    result = CliRunner().invoke(app, ["usage", str(path)])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_line_that_was_cut_off_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(SHORT + ILL_FORMED[:9])
    result = CliRunner().invoke(app, ["usage", str(path)])
    assert result.exit_code == 0
    assert "the last line was cut off" in result.stderr


def test_the_command_shows_the_table() -> None:
    result = CliRunner().invoke(app, ["usage", str(usage.RECORDINGS / "vllm-0.32-cpu-sync.jsonl")])
    assert result.exit_code == 0
    assert "of 697" in result.stdout
    assert "comes back in the step it left, at another row" in result.stdout
