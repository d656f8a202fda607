"""What pytest-benchmark wrote: looking benchmarks up, and numbers as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Results:
    """One run. machine: its `machine_info`. benchmarks: what it says of each."""

    machine: dict[str, Any]
    benchmarks: list[dict[str, Any]]

    def of(self, test: str, **params: Any) -> dict[str, Any]:
        """What is said of a test with these params: `seconds` of the quickest round, and the extra info."""
        for each in self.benchmarks:
            if each["name"].partition("[")[0] == test and (each["params"] or {}) == params:
                return {"seconds": each["stats"]["min"], **each["extra_info"]}
        raise SystemExit(f"the benchmark {test} was not run with {params}")

    def malloc(self) -> str:
        """Which allocator it ran with."""
        return "keeps its pages" if self.machine["keeps_pages"] else "stock"

    def conditions(self) -> str:
        """A sentence about the machine."""
        return (
            f"One thread of {self.machine['cpu']['brand_raw']}, CPython {self.machine['python_version']}, torch "
            f"{self.machine['torch']}, malloc {self.malloc()} (a softmax of the batch takes "
            f"{self.machine['faults']:,} page faults in a new process)."
        )


def read(path: Path) -> Results:
    """The run in the file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Results(data["machine_info"], data["benchmarks"])


def short(value: float) -> str:
    """A number with three digits or a few more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], texts: int = 1) -> str:
    """A table whose first columns are text; the others are numbers."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(headings)} |", f"|{'---|' * texts}{'---:|' * (len(headings) - texts)}", *lines])
