"""Wrong processors, each judged by a whole run of the quick tier, with a clock around each part of the run."""

from collections import Counter
from time import perf_counter
from typing import Any

import pytest
from clocks import clocked

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.miniatures.catalogue import CONSUMERS, NO_REPEAT, ROWS, kind_of
from logitsproc.conformance.suite import Run, Settings, run
from logitsproc.spec import clauses

SEEDS = (0, 1)
VICTIMS = [miniature for miniature in (*CONSUMERS, *ROWS) if clauses()[clause_of(miniature)].is_must]
"""Those that end a run: they break a clause that says MUST."""


Kill = dict[str, Any]
"""`seconds` of one run up to its report, by part; `is_named`: whether the report names the clause that is broken."""


def kill(victim: type, seed: int) -> Kill:
    """A whole run of one victim."""
    kind = kind_of(victim)
    settings = Settings(load_subject(victim), kind, params=None if kind else NO_REPEAT, seed=seed)
    spent: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "canary", clocked(spent, "canary", Run.canary))
        patch.setattr(Run, "failure", clocked(spent, "shrinking", Run.failure))
        patch.setattr(Run, "named", clocked(spent, "naming", Run.named))
        start = perf_counter()
        report = run(settings)
        whole = perf_counter() - start
    assert report.failure is not None, victim
    spent["shrinking"] -= spent["naming"]
    seconds = {"finding": whole - spent.total(), **spent}
    return {"seconds": seconds, "is_named": report.failure.clause.id == clause_of(victim)}


def kill_all() -> list[Kill]:
    """Every victim with every seed."""
    return [kill(victim, seed) for seed in SEEDS for victim in VICTIMS]


def quickest(rounds: list[list[Kill]]) -> list[Kill]:
    """Of each kill the round in which it took least."""
    return [min(kills, key=lambda kill: sum(kill["seconds"].values())) for kills in zip(*rounds, strict=True)]
