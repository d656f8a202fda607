"""What a failure says in words: for many kinds of fault, cause and effect."""

import pytest

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.explanation import cause, explain
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.suite import Failure, Settings, run

pytestmark = pytest.mark.usefixtures("short_tier")

CONSUMERS = "logitsproc.conformance.miniatures.consumers"
SAYS = {
    ("ForgetsReplacement", "min_p"): [
        "B is added at row 0, in the place of A.",
        "Row 0 serves B, which asks for nothing, but it came out as one of A's (min_p=",
        "leaves the row's old state",
    ],
    ("SwapsByAssignment", "min_p"): [
        "rows 0 and 1 are swapped, so that A goes from row 0 to row 1 and B goes from row 1 to row 0.",
        "but it came out as one of A's",
        "the state stays behind as well",
    ],
    ("KeepsDestination", "min_p"): [
        "B moves from row 1 to row 0, and A is gone.",
        "Row 0 serves B, which asks for nothing, but it came out as one of A's",
    ],
    ("IgnoresAllMoves", "min_p"): ["from row", "to row", "serves"],
    ("MovesBeforeAdds", "min_p"): ["are swapped", "moves come after removals and before additions"],
    ("MovesFromSnapshot", "min_p"): ["every move reads the batch as it was before the first"],
    ("FirstRules", "min_p"): ["Row 1 serves B, which asks for min_p=", "but it came out as one of A's (min_p="],
    ("CopiesOutputs", "min_tokens"): [
        "A gets output tokens [",
        "nothing is to change there now, and 1 of 8 tokens did",
    ],
    ("ReadsOneAStep", "min_tokens"): ["A gets output tokens [", "Row 0 serves A, which asks for min_tokens="],
    ("ShiftsOnRemove", "min_p"): ["is removed from row", "serves"],
    ("KeepsTheRemoved", "min_p"): ["In step 1 A is removed from row 0.", "removals are not looked at"],
    ("AppendsOnAdd", "min_p"): ["is added at row", "serves"],
}


def failed(name: str, kind: str) -> Failure:
    report = run(Settings(load_subject(f"{CONSUMERS}:{name}"), KINDS[kind]))
    assert report.failure is not None
    return report.failure


@pytest.mark.parametrize(("name", "kind"), SAYS, ids=[name for name, _ in SAYS])
def test_cause_and_effect_are_told(name: str, kind: str) -> None:
    failure = failed(name, kind)
    told = cause(failure)
    assert told.startswith(f"Step {failure.violation.step}: ")
    for words in SAYS[name, kind]:
        assert words in told, told


def test_an_explanation_has_the_four_parts() -> None:
    failure = failed("KeepsDestination", "min_p")
    said = explain(failure, load_subject(f"{CONSUMERS}:KeepsDestination"))
    parts = ["and A is gone", "row 0      +A     !B<-1!", f"{failure.clause.sentence}", "processor.apply("]
    assert [said.count(part) > 0 for part in parts] == [True] * 4
    assert sorted(parts, key=said.index) == parts
