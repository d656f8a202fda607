"""The figures that a benchmark's JSON gives are the ones that README.md gets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
import fast_figures
import v1_figures
from figures import PARTS, STEPS, main
from workload import FEW_TOKENS, FLAT, HEAVY, LIGHT, PEAKED, ROWS, VOCAB

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


BLOCKS = ("workload", "stages", "small", "updates", "v1", "fast")
PAGE = "# B\n\n" + "".join(f"<!-- {mark}: written by a program -->\nold\n<!-- /{mark} -->\n\n" for mark in BLOCKS)


def timed(test: str, seconds: float, extra_info: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """What pytest-benchmark says of a benchmark with params, whose quickest round took so long."""
    return {"name": f"{test}[any]", "params": params, "stats": {"min": seconds}, "extra_info": extra_info or {}}


def machine(keeps_pages: bool) -> dict[str, Any]:
    """What it says of the machine."""
    faults = 0 if keeps_pages else 32000
    cpu = {"brand_raw": "A CPU"}
    return {"cpu": cpu, "python_version": "3.11", "torch": "2.13", "keeps_pages": keeps_pages, "faults": faults}


def written(folder: Path, name: str, keeps_pages: bool, benchmarks: list[dict[str, Any]]) -> Path:
    """The file of a run."""
    path = folder / name
    path.write_text(json.dumps({"machine_info": machine(keeps_pages), "benchmarks": benchmarks}))
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page whose blocks are still to be written."""
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def fast_run(tmp_path: Path) -> Path:
    """A run in which flat logits take ten times as long, and one row is bound by calls but in top-p."""
    floor = {"floor": 0.008, "whole": 0}
    cases, rows = fast_figures.CASES, fast_figures.UPDATED_ROWS
    runs = [timed("test_stage", 0.02, floor, case=case, kind=PEAKED) for case in cases]
    runs += [timed("test_stage", 0.2, floor | {"whole": 256}, case=case, kind=FLAT) for case in cases]
    for case in cases:
        for number in (1, 8):
            info = {"operation": 2e-6, "calls": 4e-5 if case == "top_p" else 8e-5}
            runs.append(timed("test_small", number * 1e-4, info, case=case, rows=number))
    runs += [timed("test_growth", 0.001, floor, case=case, rows=1, vocab=VOCAB) for case in fast_figures.GROWING]
    runs += [
        timed("test_growth", 0.002, floor, case=case, rows=ROWS, vocab=FEW_TOKENS) for case in fast_figures.GROWING
    ]
    for number, follower in enumerate(fast_figures.FOLLOWERS, 1):
        runs += [
            timed("test_update", 1e-6 * number * many, follower=follower, rows=many, size=size)
            for many in rows
            for size in (LIGHT, HEAVY)
        ]
    for stages in fast_figures.STAGE_NUMBERS:
        runs += [
            timed("test_update_stages", 1e-6 * stages, follower=each, stages=stages)
            for each in ("pipeline", "processors")
        ]
    runs += [
        timed("test_first_apply", 5e-4, {"again": again}, size=size) for size, again in ((LIGHT, 3e-4), (HEAVY, 6e-4))
    ]
    return written(tmp_path, "fast.json", False, runs)


def test_stages_are_in_milliseconds_and_in_floors_of_their_own_run(fast_run: Path, page: Path) -> None:
    fast_figures.main(fast_run, page)
    text = page.read_text()
    assert "One thread of A CPU, CPython 3.11, torch 2.13, malloc stock (a softmax of the batch takes 32,000" in text
    assert "| top-k | 20.0 | 2.50 | 200 | 25.0 | 256 |" in text


def test_a_small_batch_is_bound_by_calls_where_they_take_half_of_it(fast_run: Path, page: Path) -> None:
    fast_figures.main(fast_run, page)
    text = page.read_text()
    assert (
        "One operation of torch's takes 2.00 microseconds, a call of a pipeline that is asked for nothing 80.0." in text
    )
    assert "| top-k | 100 | 80.0 | calls | 800 | 80.0 | logits |" in text
    assert "| top-p | 100 | 40.0 | logits | 800 | 40.0 | logits |" in text


def test_updates_are_in_microseconds_and_no_apply_takes_less_than_nothing_more(fast_run: Path, page: Path) -> None:
    fast_figures.main(fast_run, page)
    text = page.read_text()
    assert "| 256 | heavy | 256 | 512 | 768 | 1,024 |" in text
    assert "takes 200 microseconds more than the next one after a light step, and 0.00 more after a heavy one" in text
    assert "| 9 | 9.00 | 9.00 |" in text


def test_a_plot_has_the_same_bytes_for_the_same_run(fast_run: Path, page: Path) -> None:
    plot = page.parent / "growth.svg"
    fast_figures.main(fast_run, page)
    once = plot.read_bytes()
    fast_figures.main(fast_run, page)
    assert plot.read_bytes() == once


def test_a_benchmark_that_was_not_run_is_named(tmp_path: Path, page: Path) -> None:
    with pytest.raises(SystemExit, match="test_stage was not run with"):
        fast_figures.main(written(tmp_path, "fast.json", False, []), page)


@pytest.fixture
def v1_page(tmp_path: Path, page: Path) -> str:
    """The page with the figures beside V1, which takes 2 seconds, or 1 where malloc keeps its pages; README.md too."""
    runs = []
    for keeps_pages, seconds in ((False, 2.0), (True, 1.0)):
        found = {
            "fast": 0.04,
            "floor": 0.01,
            "alike": 255 if keeps_pages else 256,
            "faults": 0 if keeps_pages else 9000,
        }
        benchmarks = [timed("test_stage", seconds, found, case=case) for case in v1_figures.WHOLE | v1_figures.SINGLE]
        benchmarks += [
            timed("test_update", 0.002, {"fast": fast, "metadata": 3e-4, "first": 0.00624, "again": 0.006}, size=size)
            for size, fast in ((LIGHT, 1e-5), (HEAVY, 1e-3))
        ]
        runs.append(written(tmp_path, f"{keeps_pages}.json", keeps_pages, benchmarks))
    (tmp_path / "README.md").write_text(PAGE)
    v1_figures.main(*runs, page, tmp_path / "README.md")
    assert (tmp_path / "v1.svg").exists()
    return page.read_text()


def test_both_allocators_stand_beside_each_other(v1_page: str) -> None:
    assert "| all penalties | stock | 2,000 | 40.0 | 4.00 | 50.0 | 9,000 |" in v1_page
    assert "| all penalties | keeps its pages | 1,000 | 40.0 | 4.00 | 25.0 | 0 |" in v1_page
    assert "Both keep the same tokens in 255 of 256 rows" in v1_page


def test_a_target_that_is_missed_is_said_to_be(v1_page: str) -> None:
    assert "| light | stock | 2,000 | 300 | 10.0 | 240 |" in v1_page
    assert "| a light update, malloc stock | 50 times as fast | 200 | met |" in v1_page
    assert (
        "| a light update, malloc stock, with what is left to `apply` | 50 times as fast | 8.00 | missed |" in v1_page
    )
    assert "| all stages, malloc stock | 40 times as fast | 50.0 | met |" in v1_page
    assert "| a heavy update, malloc stock | 50 times as fast | 2.00 | missed |" in v1_page


def test_readme_gets_the_whole_pipelines_only(tmp_path: Path, v1_page: str) -> None:
    text = (tmp_path / "README.md").read_text()
    assert "| all eleven stages | stock | 2,000 | 40.0 | 4.00 | 50.0 | 9,000 |" in text
    assert (
        "10.0 microseconds for a pipeline whose requests ask for nine stages, which leaves 240 to the next `apply`"
        in text
    )
    assert "all penalties" not in text


def test_the_allocators_are_not_taken_for_each_other(tmp_path: Path, page: Path) -> None:
    stock, kept = written(tmp_path, "stock.json", False, []), written(tmp_path, "kept.json", True, [])
    with pytest.raises(SystemExit, match="stock malloc comes first"):
        v1_figures.main(kept, stock, page, page)
