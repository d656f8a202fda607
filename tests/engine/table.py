"""Runs the engine under both schedulers, replays what it recorded; writes the README's table, or compares with it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from engine import Scheduler
from marks import write_or_compare

RUN = Path(__file__).parent / "run.py"
REPLAY = (sys.executable, "-c", "from logitsproc.conformance.cli import main; main()", "replay")
COLUMNS = (
    "requests",
    "steps",
    "updates",
    "added",
    "resumed",
    "removed",
    "one-way moves",
    "swaps",
    "placeholders",
    "all greedy",
    "rows judged",
    "differences",
)

Counts = dict[str, int]


def counted(scheduler: Scheduler, folder: Path) -> Counts:
    """The counts of one run, whose recording is replayed; ends the program where either finds something."""
    recording = f"{scheduler}.jsonl"
    run = [sys.executable, str(RUN), scheduler, "--record", recording]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}the engine scheduled by {scheduler} differs from the model, or did not run")
    if subprocess.run([*REPLAY, recording], cwd=folder).returncode:
        raise SystemExit(f"the recording of the engine scheduled by {scheduler} does not replay")
    counts: Counts = json.loads(done.stdout.splitlines()[-1])
    return counts


def table(counts: dict[Scheduler, Counts]) -> str:
    """The block between the marks."""
    head = [f"| scheduler | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    lines = [
        f"| {scheduler} | {' | '.join(f'{each[name]:,}' for name in COLUMNS)} |" for scheduler, each in counts.items()
    ]
    return "\n".join([*head, *lines])


def main(arguments: list[str]) -> int:
    """Writes the block, or says whether it is what the file has."""
    with tempfile.TemporaryDirectory() as folder:
        block = table({scheduler: counted(scheduler, Path(folder)) for scheduler in Scheduler})
    return write_or_compare(arguments, "engine", block, "engine-table")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
