"""The figures that a benchmark's JSON gives are the ones that README.md gets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
from figures import PARTS, STEPS, main

README = "# A\n\n<!-- speed: written by `make bench` -->\nold\n<!-- /speed -->\n\nmore\n"


def measured(name: str, extra_info: dict[str, Any], param: str | None = None) -> dict[str, Any]:
    """What pytest-benchmark says of a benchmark."""
    stats = {"min": 0.5, "median": 1.0, "rounds": 3}
    return {"name": name, "param": param, "stats": stats, "extra_info": extra_info}


@pytest.fixture
def readme(tmp_path: Path) -> str:
    """README.md with the figures of a made-up run."""
    profile = dict.fromkeys(PARTS, 0.1)
    steps = [measured(f"test_steps[{name}]", {"steps": 1000, "profile": profile}, name) for name in STEPS]
    kills = [
        {"canary": 0.1, "finding": 0.1, "shrinking": 0.1, "naming": 0.1},
        {"canary": 0.1, "finding": 0.3},
        {"canary": 0.1, "finding": 0.7, "shrinking": 0.4, "naming": 0.0},
    ]
    named = [{"seconds": seconds, "is_named": "naming" in seconds} for seconds in kills]
    info = {"kills": named, "victims": 3, "seeds": 1}
    data = {"benchmarks": [*steps, measured("test_kills", info)], "machine_info": {"python_version": "3.11.7"}}
    (tmp_path / "run.json").write_text(json.dumps(data))
    (tmp_path / "README.md").write_text(README)
    main(tmp_path / "run.json", tmp_path / "README.md")
    return (tmp_path / "README.md").read_text()


def test_steps_a_second_are_those_of_the_quickest_round_and_of_the_median(readme: str) -> None:
    assert "| min-p, judged by the solo law | 2,000 | 1,000 | 1,000 |" in readme
    assert "the subject's own calls | 100 | 17% |" in readme


def test_kills_a_second_are_all_kills_by_all_their_time(readme: str) -> None:
    assert "1.5 kills a second: 3 wrong processors" in readme
    assert "with 1 seeds: 400 milliseconds at the median, 1,200 at most" in readme
    assert "2 of 3 reports name the clause that is broken" in readme
    assert "| making it small | 167 | 25% |" in readme


def test_the_rest_of_the_file_stays(readme: str) -> None:
    assert readme.startswith("# A\n\n<!-- speed")
    assert readme.endswith("\n<!-- /speed -->\n\nmore\n")
    assert "old" not in readme
