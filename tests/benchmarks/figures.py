"""Writes the figures of a benchmark run into README.md: `figures.py BENCHMARK.json README.md`."""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from marks import write

Benchmarks = dict[str, dict[str, Any]]
"""What pytest-benchmark says of each, by the name of its parameter, or of its test."""
STEPS = {
    "min_p": "min-p, judged by the reference",
    "solo": "min-p, judged by the solo law",
    "pipeline": "the whole pipeline, judged by the reference",
    "producer": "a producer",
}
PARTS = {
    "draw": "Hypothesis draws the history, the reference producer turns it into updates",
    "play": "the model and the host side follow it",
    "subject": "the subject's own calls",
    "judge": "the reference says what each row may be, and every row is compared",
    "count": "occasions are counted",
    "witness": "faults stand beside the model in every fourth history",
}
KILL_PARTS = {
    "canary": "the canary",
    "finding": "finding: what is looked at first, and histories until one fails",
    "shrinking": "making it small",
    "naming": "naming its clause",
}


def main(source: Path, readme: Path) -> None:
    """Replaces what stands between the marks of the speed section."""
    data = json.loads(source.read_text())
    benchmarks = {item["param"] or item["name"]: item for item in data["benchmarks"]}
    write(readme, "speed", block(benchmarks, data["machine_info"]["python_version"]))


def block(benchmarks: Benchmarks, python: str) -> str:
    """Steps a second, the parts of a step, kills a second, and the parts of a kill."""
    kills = benchmarks["test_kills"]["extra_info"]
    sections = [rates(benchmarks, python), parts_of_a_step(benchmarks["min_p"]), *kill_figures(kills)]
    return "\n\n".join(sections)


def rates(benchmarks: Benchmarks, python: str) -> str:
    """A sentence, and steps a second for each subject, in its quickest round and at the median."""
    rounds = benchmarks["min_p"]["stats"]["rounds"]
    rows = []
    for name, meaning in STEPS.items():
        stats, steps = benchmarks[name]["stats"], benchmarks[name]["extra_info"]["steps"]
        rows.append(f"| {meaning} | {steps / stats['min']:,.0f} | {steps / stats['median']:,.0f} | {steps:,} |")
    return "\n".join(
        [
            "Steps checked a second on one core, a processor's at 4 rows and 64 tokens "
            f"(CPython {python}; the quickest of {rounds} runs, and the median):",
            "",
            "| of | steps a second | at the median | steps of a run |",
            "|---|---:|---:|---:|",
            *rows,
        ]
    )


def parts_of_a_step(benchmark: dict[str, Any]) -> str:
    """Where the time of a step goes."""
    steps, profile = benchmark["extra_info"]["steps"], benchmark["extra_info"]["profile"]
    return "\n".join(
        [
            "Where the time of a step of min-p goes, in the quickest of as many profiled runs:",
            "",
            *shares("microseconds", PARTS, {part: seconds / steps * 1e6 for part, seconds in profile.items()}),
        ]
    )


def kill_figures(info: dict[str, Any]) -> tuple[str, str]:
    """A sentence about kills a second, and where the time of a kill goes."""
    kills = [kill["seconds"] for kill in info["kills"]]
    named = sum(kill["is_named"] for kill in info["kills"])
    whole = [sum(parts.values()) for parts in kills]
    sentence = (
        f"{len(kills) / sum(whole):.1f} kills a second: {info['victims']} wrong processors, each run whole, up to its "
        f"report, with {info['seeds']} seeds: {median(whole) * 1000:,.0f} milliseconds at the median, "
        f"{max(whole) * 1000:,.0f} at most. {named} of {len(kills)} reports name the clause that is broken. "
        "Where the time goes:"
    )
    means = {part: sum(parts.get(part, 0.0) for parts in kills) / len(kills) * 1e3 for part in KILL_PARTS}
    return sentence, "\n".join(shares("milliseconds", KILL_PARTS, means))


def shares(unit: str, meanings: dict[str, str], amounts: dict[str, float]) -> list[str]:
    """The lines of a table of parts, each with its amount and its share of the whole."""
    whole = sum(amounts.values())
    rows = [f"| {meaning} | {amounts[part]:.0f} | {amounts[part] / whole:.0%} |" for part, meaning in meanings.items()]
    return [f"| part | {unit} | share |", "|---|---:|---:|", *rows]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
