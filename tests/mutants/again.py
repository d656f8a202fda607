"""Runs every mutant that dies with its first seed again; exits 1, with a line for each that is not as recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from logitsproc.conformance.mutants.campaign import at_first, attempt, over_all
from logitsproc.conformance.mutants.derived import Mutant, all_mutants
from logitsproc.conformance.mutants.matrix import first
from logitsproc.conformance.suite import TIERS

KILLS = Path(__file__).parent / "kills.json"
JOBS = 2
UNHURRIED = 180
"""Seconds that a run may take here: what is found must not depend on how quick the machine is."""


def again(mutant: Mutant) -> dict[str, Any]:
    """What the first seed gives."""
    return first(attempt(mutant, 0, at_first(mutant)))


def differing(told: list[dict[str, Any]], mutants: Sequence[Mutant], jobs: int = JOBS) -> Iterator[str]:
    """A line for each mutant that dies otherwise than it is told, or that there is now, or no longer is."""
    known = {each["name"]: each for each in told}
    found = {mutant.name: mutant for mutant in mutants}
    yield from (f"{name}: not in the record" for name in found.keys() - known.keys())
    yield from (f"{name}: no mutant" for name in known.keys() - found.keys())
    dying = [mutant for mutant in mutants if known.get(mutant.name, {}).get("killed")]
    for mutant, seen in zip(dying, over_all(again, dying, jobs), strict=True):
        if seen != (was := known[mutant.name]["first"]):
            yield f"{mutant.name}: {seen}, in the record {was}"


if __name__ == "__main__":
    TIERS["quick"] = replace(TIERS["quick"], seconds=UNHURRIED)
    lines = list(differing(json.loads(KILLS.read_text(encoding="utf-8"))["mutants"], all_mutants()))
    print("\n".join([*lines, "`make mutants` writes the record"] if lines else ["as in the record"]))
    sys.exit(bool(lines))
