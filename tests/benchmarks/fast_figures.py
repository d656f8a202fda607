"""Writes the figures of the fast path into a page, and draws them beside it: `fast_figures.py BENCHMARK.json PAGE`."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from marks import write  # noqa: E402
from pictures import curves, picture  # noqa: E402
from results import Results, read, short, table  # noqa: E402
from workload import (  # noqa: E402
    ALL,
    FEW_TOKENS,
    FIELDS,
    FLAT,
    HEAVY,
    HEIGHTS,
    LIGHT,
    OUTPUT,
    PEAKED,
    PEAKS,
    PROMPT,
    ROWS,
    VOCAB,
)

STAGES = {
    "allowed_token_ids": "allowed token ids",
    "bad_words": "bad words",
    "min_tokens": "min-tokens",
    "logit_bias": "logit bias",
    "repetition_penalty": "repetition penalty",
    "frequency_penalty": "frequency penalty",
    "presence_penalty": "presence penalty",
    "temperature": "temperature",
    "min_p": "min-p",
    "top_k": "top-k",
    "top_p": "top-p",
}
PIPELINES = {
    "nothing": "pipeline, nothing is asked for",
    "temperature_top_p": "pipeline, temperature and top-p",
    "but_the_list": "pipeline, all but the list of tokens",
    "all": "pipeline, all eleven stages",
    "quarter": "pipeline, all stages for a quarter of the rows",
}
CASES = STAGES | PIPELINES
GROWING = {"all": "all eleven stages", "but_the_list": "all but the list of tokens", "quarter": "a quarter of the rows"}
FOLLOWERS = {
    "rows": "the row table alone",
    "records": "with a record of each added request",
    "pipeline": "the pipeline",
    "processors": "nine processors, each by itself",
}
UPDATED_ROWS = (4, 16, 64, 256)
STAGE_NUMBERS = (1, 3, 6, 9, 11)
BOUND = 0.5
"""Calls take at least this share of the time where a stage is said to be bound by them."""


def main(source: Path, page: Path) -> None:
    """Replaces what stands between the marks, and draws growth.svg beside the page."""
    results = read(source)
    write(page, "workload", workload())
    write(page, "stages", f"{results.conditions()}\n\n{stage_table(results)}")
    write(page, "small", small_batches(results))
    write(page, "updates", updates(results))
    draw(results, page.parent / "growth.svg")


def workload() -> str:
    """What is measured, in words."""
    asked = {name: value for stage in ALL for name, value in FIELDS[stage](Random(0), 0, VOCAB, [0]).items()}
    penalties = ", ".join(f"{name} {asked[f'{name}_penalty']}" for name in ("repetition", "frequency", "presence"))
    return "\n\n".join(
        [
            f"The batch has {ROWS} rows and a vocabulary of {VOCAB:,} tokens, unless another size is named. A request "
            f"has a prompt of {PROMPT} tokens and an output of {OUTPUT}, half of which are of the peaks of its row.",
            f"Logits are float32 and come in two kinds. *Peaked* ones are like those of a language model: {PEAKS} "
            f"tokens of a row stand {HEIGHTS[1]:g} to {HEIGHTS[0]:g} above the rest, which is normally distributed. "
            "*Flat* ones have nothing but that rest. With them most of the vocabulary belongs to the nucleus of top-p, "
            "so its largest tokens do not settle it, and every row is sorted as a whole.",
            f"What a request asks for: a list of {len(asked['allowed_token_ids']):,} allowed tokens, half of the peaks "
            f"among them; {len(asked['bad_words_token_ids'])} bad words; min_tokens with "
            f"{len(asked['stop_token_ids'])} stop tokens; a bias of {len(asked['logit_bias'])} tokens; penalties: "
            f"{penalties}; temperature {asked['temperature']}, min-p {asked['min_p']}, top-k {asked['top_k']}, top-p "
            f"{asked['top_p']}.",
        ]
    )


def stage_table(results: Results) -> str:
    """Milliseconds and floors of each stage, on both kinds of logits."""
    rows = []
    for case, meaning in CASES.items():
        runs = [results.of("test_stage", case=case, kind=kind) for kind in (PEAKED, FLAT)]
        cells = [cell for run in runs for cell in (short(1e3 * run["seconds"]), short(run["seconds"] / run["floor"]))]
        rows.append((meaning, *cells, f"{runs[1]['whole']:,}"))
    headings = ["of", "peaked, ms", "floors", "flat, ms", "floors", "rows that were sorted as a whole"]
    return table(headings, rows)


def small_batches(results: Results) -> str:
    """Microseconds of batches of 1 and 8 rows, and how much of that the calls take."""
    rows = []
    for case, meaning in CASES.items():
        cells: list[str] = []
        for number in (1, 8):
            run = results.of("test_small", case=case, rows=number)
            bound = "calls" if run["calls"] >= BOUND * run["seconds"] else "logits"
            cells += [short(1e6 * run["seconds"]), short(1e6 * run["calls"]), bound]
        rows.append((meaning, *cells))
    one = results.of("test_small", case="nothing", rows=1)
    sentence = (
        f"One operation of torch's takes {short(1e6 * one['operation'])} microseconds, a call of a pipeline that is "
        f"asked for nothing {short(1e6 * one['calls'])}."
    )
    per_rows = [f"of that at {FEW_TOKENS:,} tokens", "bound by"]
    return f"{sentence}\n\n{table(['of', '1 row, µs', *per_rows, '8 rows, µs', *per_rows], rows)}"


def updates(results: Results) -> str:
    """Microseconds of an update: by rows and size, by the number of stages, and what the next `apply` has of it."""
    rows = []
    for number in UPDATED_ROWS:
        for size in (LIGHT, HEAVY):
            runs = [results.of("test_update", follower=each, rows=number, size=size) for each in FOLLOWERS]
            rows.append((number, size, *(short(1e6 * run["seconds"]) for run in runs)))
    by_stages = []
    for number in STAGE_NUMBERS:
        runs = [
            results.of("test_update_stages", stages=number, follower=each)["seconds"]
            for each in ("pipeline", "processors")
        ]
        by_stages.append((number, *(short(1e6 * each) for each in runs)))
    late = [results.of("test_first_apply", size=size) for size in (LIGHT, HEAVY)]
    extra = [short(1e6 * max(run["seconds"] - run["again"], 0)) for run in late]
    return "\n\n".join(
        [
            table(["rows", "step", *(f"{meaning}, µs" for meaning in FOLLOWERS.values())], rows, texts=2),
            f"The first `apply` after it takes {extra[0]} microseconds more than the next one after a light step, and "
            f"{extra[1]} more after a heavy one, when new outputs are counted ({ROWS} rows).",
            f"A light step at {ROWS} rows, by the number of stages that every request asks for:",
            table(["stages", "the pipeline, µs", "a processor for each, µs"], by_stages),
        ]
    )


def draw(results: Results, path: Path) -> None:
    """How `apply` grows with rows and with tokens, and an update with rows."""
    grown = [each["params"] for each in results.benchmarks if each["name"].startswith("test_growth[")]
    with picture(path, 3) as axes:
        curves(axes[0], f"apply, {VOCAB:,} tokens", "milliseconds", growth(results, grown, "rows"))
        axes[0].set_xlabel("rows")
        curves(axes[1], f"apply, {ROWS} rows", "milliseconds", growth(results, grown, "vocab"))
        axes[1].set_xlabel("tokens")
        lines = {
            f"{FOLLOWERS[follower]}, {size}": {
                rows: 1e6 * results.of("test_update", follower=follower, rows=rows, size=size)["seconds"]
                for rows in UPDATED_ROWS
            }
            for follower in ("rows", "pipeline")
            for size in (LIGHT, HEAVY)
        }
        curves(axes[2], "update_state, nine stages", "microseconds", lines)
        axes[2].set_xlabel("rows")


def growth(results: Results, grown: list[dict[str, int]], axis: str) -> dict[str, dict[int, float]]:
    """name -> number on the axis -> milliseconds, the floor among them; the other number is that of the full size."""
    lines: dict[str, dict[int, float]] = {"floor": {}}
    full = {"rows": ROWS, "vocab": VOCAB}
    for case, meaning in GROWING.items():
        whole = results.of("test_stage", case=case, kind=PEAKED)
        lines[meaning] = {full[axis]: 1e3 * whole["seconds"]}
        lines["floor"][full[axis]] = 1e3 * whole["floor"]
        for params in grown:
            if params["case"] == case and all(params[other] == full[other] for other in full if other != axis):
                run = results.of("test_growth", **params)
                lines[meaning][params[axis]] = 1e3 * run["seconds"]
                lines["floor"][params[axis]] = 1e3 * run["floor"]
    return lines


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
