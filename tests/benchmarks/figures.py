"""Writes the figures of a benchmark run into README.md: `figures.py BENCHMARK.json README.md`."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from marks import replaced

MEANS = {
    "draw": "Hypothesis draws the history, the reference producer turns it into updates",
    "play": "the model and the host side follow it",
    "subject": "the subject's own calls",
    "judge": "the reference says what each row may be, and every row is compared",
    "count": "occasions are counted",
    "witness": "faults stand beside the model in every fourth history",
}


def main(source: Path, readme: Path) -> None:
    """Replaces what stands between the marks of the speed section."""
    data = json.loads(source.read_text())
    (benchmark,) = data["benchmarks"]
    block = table(benchmark, data["machine_info"]["python_version"])
    readme.write_text(replaced(readme.read_text(), "speed", block))


def table(benchmark: dict[str, Any], python: str) -> str:
    """Steps a second, and the parts of a step."""
    stats, steps, profile = benchmark["stats"], benchmark["extra_info"]["steps"], benchmark["extra_info"]["profile"]
    whole = sum(profile.values())
    lines = [
        f"{steps / stats['min']:,.0f} steps a second checked for min-p at 4 rows and 64 tokens on one core "
        f"({steps / stats['median']:,.0f} at the median; CPython {python}, {stats['rounds']} runs of {steps:,} steps). "
        "Where the time of a step goes, in the quickest of as many profiled runs:",
        "",
        "| part | microseconds | share |",
        "|---|---:|---:|",
    ]
    for part, meaning in MEANS.items():
        lines.append(f"| {meaning} | {profile[part] / steps * 1e6:.0f} | {profile[part] / whole:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
