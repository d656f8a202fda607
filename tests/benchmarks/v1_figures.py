"""Writes the figures beside vLLM V1 into a page and README.md, and draws them beside the page.

`v1_figures.py STOCK.json KEPT.json PAGE README.md`: the same benchmarks under two allocators.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from fast_figures import STAGES  # noqa: E402
from marks import write  # noqa: E402
from pictures import picture  # noqa: E402
from results import Results, read, short, table  # noqa: E402
from workload import HEAVY, LIGHT, PENALTIES, ROWS, VOCAB  # noqa: E402

SINGLE = {stage: meaning for stage, meaning in STAGES.items() if stage not in PENALTIES} | {
    "penalties": "all penalties"
}
WHOLE = {
    "all": "all eleven stages",
    "but_the_list": "all but the list of tokens",
    "quarter": "all stages for a quarter of the rows",
}
UPDATE_HEADINGS = [
    "nine processors of V1's, µs",
    "V1's metadata, µs",
    "fast path, nine stages, µs",
    "and its first `apply` more, µs",
]
HEADINGS = ["asked for", "malloc", "vLLM V1, ms", "fast path, ms", "floors", "times as fast", "page faults of V1"]
WANTED = {"stock": 40, "keeps its pages": 20}
"""Allocator -> how many times as fast all stages are meant to be."""
WANTED_OF_UPDATES = 50


def main(stock: Path, kept: Path, page: Path, readme: Path) -> None:
    """Replaces what stands between the marks, and draws v1.svg beside the page."""
    runs = [read(stock), read(kept)]
    if [run.machine["keeps_pages"] for run in runs] != [False, True]:
        raise SystemExit("the run with stock malloc comes first, then the one whose malloc keeps its pages")
    conditions = "\n".join(f"- {run.conditions()}" for run in runs)
    both = WHOLE | SINGLE
    write(
        page,
        "v1",
        "\n\n".join([conditions, stage_table(runs, both), alike(runs, both), update_table(runs), verdicts(runs)]),
    )
    size = f"{ROWS} rows of {VOCAB:,} tokens, beside vLLM V1's own stages on the same requests and logits:"
    write(readme, "fast", "\n\n".join([size, stage_table(runs, WHOLE), update_sentence(runs), conditions]))
    draw(runs, page.parent / "v1.svg")


def stage_table(runs: list[Results], cases: dict[str, str]) -> str:
    """Both under both allocators."""
    rows = []
    for case, meaning in cases.items():
        for run in runs:
            found = run.of("test_stage", case=case)
            spent, fast = found["seconds"], found["fast"]
            cells = (1e3 * spent, 1e3 * fast, fast / found["floor"], spent / fast)
            rows.append((meaning, run.malloc(), *map(short, cells), f"{found['faults']:,}"))
    return table(HEADINGS, rows, texts=2)


def alike(runs: list[Results], cases: Iterable[str]) -> str:
    """In how many rows both keep the same tokens, in the worst case."""
    least = min(run.of("test_stage", case=case)["alike"] for run in runs for case in cases)
    return f"Both keep the same tokens in {least} of {ROWS} rows, whatever is asked for."


def update_table(runs: list[Results]) -> str:
    """Microseconds of an update, and of what the first `apply` after it takes more than another."""
    rows = []
    for size in (LIGHT, HEAVY):
        for run in runs:
            found = run.of("test_update", size=size)
            cells = (found["seconds"], found["metadata"], found["fast"], late(found))
            rows.append((size, run.malloc(), *(short(1e6 * each) for each in cells)))
    return table(["step", "malloc", *UPDATE_HEADINGS], rows, texts=2)


def late(found: dict[str, Any]) -> float:
    """What of an update of the fast path's is left to its first `apply`."""
    return float(max(found["first"] - found["again"], 0))


def times(found: dict[str, Any], left: float = 0.0) -> float:
    """How many times as fast the fast path is, when this is left to do."""
    return float(found["seconds"] / (found["fast"] + left))


def update_sentence(runs: list[Results]) -> str:
    """The light step under the stock allocator."""
    found = runs[0].of("test_update", size=LIGHT)
    return (
        f"An update in which one request comes, one leaves and one moves, at {ROWS} rows: "
        f"{short(1e6 * found['fast'])} microseconds for a pipeline whose requests ask for nine stages, which leaves "
        f"{short(1e6 * late(found))} to the next `apply`, and {short(1e6 * found['seconds'])} for nine processors of "
        "vLLM's, which leave nothing (stock malloc)."
    )


def verdicts(runs: list[Results]) -> str:
    """Which of the targets are met."""
    lines = [
        verdict(f"all stages, malloc {run.malloc()}", times(run.of("test_stage", case="all")), WANTED[run.malloc()])
        for run in runs
    ]
    for size in (LIGHT, HEAVY):
        for run in runs:
            found, what = run.of("test_update", size=size), f"a {size} update, malloc {run.malloc()}"
            lines += [
                verdict(what, times(found), WANTED_OF_UPDATES),
                verdict(f"{what}, with what is left to `apply`", times(found, late(found)), WANTED_OF_UPDATES),
            ]
    return "\n".join(["| target | wanted | measured | |", "|---|---:|---:|---|", *lines])


def verdict(what: str, measured: float, wanted: int) -> str:
    """The line of one target."""
    return f"| {what} | {wanted} times as fast | {short(measured)} | {'met' if measured >= wanted else 'missed'} |"


def draw(runs: list[Results], path: Path) -> None:
    """Bars for V1 under both allocators and for the fast path, on a logarithmic scale."""
    cases = list((SINGLE | WHOLE).items())
    bars = {f"vLLM V1, malloc {run.malloc()}": (run, "seconds") for run in runs}
    bars |= {f"fast path, malloc {run.malloc()}": (run, "fast") for run in runs}
    with picture(path, 1) as (axes,):
        axes.figure.set_size_inches(9, 6)
        for place, (name, (run, what)) in enumerate(bars.items()):
            spans = [1e3 * run.of("test_stage", case=case)[what] for case, _ in cases]
            axes.barh([row + 0.2 * (place - 1.5) for row in range(len(cases))], spans, height=0.2, label=name)
        axes.set_yticks(range(len(cases)), [meaning for _, meaning in cases])
        axes.invert_yaxis()
        axes.set(
            xscale="log", xlabel=f"milliseconds, {ROWS} rows of {VOCAB:,} tokens", title="One thread, the same requests"
        )
        axes.legend(fontsize=8)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]))
