"""Runs a real engine with every processor watched: `run.py priority|async`; prints what was judged, as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from engine import Scheduler, start
from live import Ledger
from traffic import Drawn, steps

from logitsproc.conformance.bindings import VLLM, CannotRun, load_subject

FAST = (
    "AllowedTokenIds",
    "BadWords",
    "MinTokens",
    "LogitBias",
    "RepetitionPenalty",
    "FrequencyPenalty",
    "PresencePenalty",
    "Temperature",
    "MinP",
    "TopK",
    "TopP",
)
"""The fast processors, which do for every other request what vLLM's own stages do for the others."""
RECORDER = "logitsproc.conformance.recorder:Recorder"
SEED = 0
SHOWN = 5


def main(
    scheduler: Scheduler,
    requests: Annotated[int, typer.Option(help="How many are sent.")] = 300,
    record: Annotated[Path | None, typer.Option(help="Where the history is recorded.")] = None,
    add: Annotated[list[str] | None, typer.Option(help="One more processor, as module:Class.")] = None,
) -> None:
    """Exit status 1 when anything differs from the model, after the first step in which it does."""
    processors = [f"logitsproc.optimized.vllm:{name}LogitsProcessor" for name in FAST] + (add or [])
    for target in add or []:
        check_target(target)
    if record is not None:
        os.environ["LOGITSPROC_RECORD"] = str(record)
        processors.insert(0, RECORDER)
    with tempfile.TemporaryDirectory() as folder:
        ledger = judged(Path(folder), scheduler, processors, requests)
    for difference in ledger.differences[:SHOWN]:
        print(difference, file=sys.stderr)
    counts = {"requests": len(ledger.asked), **ledger.counts, "differences": len(ledger.differences)}
    print(json.dumps(counts))
    raise typer.Exit(1 if ledger.differences else 0)


def check_target(target: str) -> None:
    """Ends with one line and exit status 2 for what vLLM would not load."""
    try:
        if load_subject(target).binding.name != VLLM:
            raise CannotRun(f"{target} does not derive from vLLM's LogitsProcessor")
    except CannotRun as error:
        print(f"logitsproc: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def judged(folder: Path, scheduler: Scheduler, processors: list[str], requests: int) -> Ledger:
    """The ledger of a run, which ends with the first step that differs, also where the engine dies of it."""
    asked: dict[str, Drawn] = {}
    engine = start(folder, scheduler, processors)
    ledger = Ledger(engine, asked)
    try:
        for _ in steps(engine, requests, SEED, asked):
            if ledger.differences:
                return ledger
        ledger.finish()
    except Exception:
        if not ledger.differences:
            raise
    return ledger


if __name__ == "__main__":
    typer.run(main)
