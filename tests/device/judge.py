"""Judges the GPU backend, every stage and the pipeline: `judge.py [--device cuda] [--histories N] [NAME]...`.

On a CPU the kernels are interpreted, which takes so long that the limit on the clock is off; the histories are those of
the quick tier, or the first of them.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Annotated

import typer

from logitsproc.conformance.kinds import KINDS as TRANSFORMATIONS
from logitsproc.optimized.pipeline import STAGES

KINDS = dict(zip((stage.__name__ for stage in STAGES), TRANSFORMATIONS, strict=False)) | {"Pipeline": "pipeline"}
"""class -> what it is judged as."""
MODULE = "logitsproc.optimized.gpu"
HOURS = 4 * 3600
CALL = 300
"""Limit on one call, in which kernels may have to be compiled."""
CPU = "cpu"
Judged = tuple[str, bool]
"""What is said of one subject, and whether it is conformant."""


def judge(name: str, device: str, histories: int) -> Judged:
    """The quick tier on one class, cut to so many histories where that is above 0."""
    if device == CPU:
        os.environ["TRITON_INTERPRET"] = "1"
        import interpreted

        interpreted.hurry(overflows=False)
    from logitsproc.conformance import suite
    from logitsproc.conformance.bindings import load_subject
    from logitsproc.conformance.explanation import evidence_line, explain, verdict_line

    if histories:
        suite.TIERS["quick"] = suite.Tier(histories, histories, HOURS)
    subject = load_subject(f"{MODULE}:{name}", device=device)
    start = perf_counter()
    report = suite.run(suite.Settings(subject, TRANSFORMATIONS[KINDS[name]], seconds=HOURS, limit=CALL))
    lines = [verdict_line(report), f"  {evidence_line(report)}; {perf_counter() - start:.0f} s"]
    if report.failure is not None:
        lines.append(explain(report.failure, subject))
    return "\n".join(lines), report.verdict == suite.CONFORMANT


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Classes of logitsproc.optimized.gpu; all without.")] = None,
    device: str = CPU,
    histories: Annotated[int, typer.Option(help="So many a world; those of the quick tier without.")] = 0,
    jobs: int = 2,
) -> None:
    """Prints what is said of each; the exit status is 1 unless all are conformant."""
    fine = True
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for each in [pool.submit(judge, name, device, histories) for name in names or reversed(KINDS)]:
            text, is_conformant = each.result()
            print(text, flush=True)
            fine &= is_conformant
    sys.exit(not fine)


if __name__ == "__main__":
    typer.run(main)
