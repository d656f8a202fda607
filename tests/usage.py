"""Writes the table of what the recordings and the suite's own histories reach."""

import sys
from pathlib import Path

from marks import write

from logitsproc.conformance.recording import read_recording
from logitsproc.conformance.usage import Comparison, usage

RECORDINGS = Path(__file__).parent / "recordings"


def compared() -> Comparison:
    """The recordings of the project beside what the suite generates."""
    return usage([read_recording(path).history for path in sorted(RECORDINGS.glob("*.jsonl"))])


def to_markdown(comparison: Comparison) -> str:
    """The block between the marks."""
    head = ["| | in steps | recorded | reachable | beyond | only |", "|---|---|---:|---:|---:|---|"]
    head += [f"| | | of {' | of '.join(f'{number:,}' for number in comparison.steps)} | |"]
    lines = [
        f"| {line.group} | {line.name} | {line.recorded:,} | {line.reachable:,} | {line.beyond:,} | {line.only} |"
        for line in comparison.lines
    ]
    return "\n".join([*head, *lines])


if __name__ == "__main__":
    write(Path(sys.argv[1]), "usage", to_markdown(compared()))
