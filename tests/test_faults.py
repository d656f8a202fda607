"""The faults that stand beside the model: the right one never differs, every other one does, and says why."""

import random
from collections import Counter
from functools import partial

import pytest

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.evidence import Observer
from logitsproc.conformance.faults import FAULTS, Belief, account, clause_of
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.machine import BEYOND, REACHABLE, Draw, Drive, explore
from logitsproc.conformance.miniatures.controls import MinP, NoRepeat
from logitsproc.conformance.oracles import ReferenceOracle, SoloOracle
from logitsproc.conformance.player import Outcome, Player
from logitsproc.spec import clauses

HISTORIES = 60


def differences(faults: list[type[Belief]], reads_outputs: bool) -> Counter[type[Belief]]:
    """At how many steps of every world each fault differs from the model, beside a right processor."""
    subject = load_subject(NoRepeat if reads_outputs else MinP)
    kind = KINDS["min_p"]
    users = [{"extra_args": {"no_repeat": True}}] if reads_outputs else kind.users(random.Random(0))
    oracle = SoloOracle(subject) if reads_outputs else ReferenceOracle(kind)
    field = "extra_args" if reads_outputs else "min_p"
    observers: list[Observer] = []
    found: Counter[type[Belief]] = Counter()

    def begin() -> bool:
        observers[:] = [Observer(faults, oracle, lambda request: bool(request.params.get(field)))]
        return True

    def judge(player: Player, outcome: Outcome) -> None:
        observers[0].follow(outcome)
        if outcome.values is not None:
            for belief, subject_agrees in observers[0].differing(outcome):
                assert not subject_agrees
                found[type(belief)] += 1
        observers[0].applied(outcome)

    for world in (REACHABLE, *BEYOND):
        explore(Drive(partial(Player, subject), world, Draw(users, [{}], (8,)), judge, begin), HISTORIES, 0)
    return found


@pytest.mark.parametrize("reads_outputs", [False, True])
def test_the_right_belief_never_differs_and_every_fault_does(reads_outputs: bool) -> None:
    faults = [fault for fault in FAULTS if fault.reads_outputs == reads_outputs]
    found = differences([Belief, *faults], reads_outputs)
    assert found[Belief] == 0
    assert [fault.__name__ for fault in faults if not found[fault]] == []


def test_every_fault_names_a_clause_and_says_what_is_wrong() -> None:
    assert {clause_of(fault) for fault in FAULTS} <= set(clauses())
    assert all(account(fault).endswith(".") for fault in FAULTS)
