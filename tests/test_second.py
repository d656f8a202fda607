"""The second solver: what it says is read as it is, and anything but the same answer is a trouble."""

from logitsproc.proofs.second import Answers, answer, answers, troubles


def test_an_answer_is_the_solvers_own() -> None:
    declared = "(declare-fun x () Int)\n(assert (> x 1))\n"
    assert answer(f"{declared}(check-sat)\n") == "sat"
    assert answer(f"{declared}(assert (< x 2))\n(check-sat)\n") == "unsat"


def test_every_query_of_a_lemma_is_asked() -> None:
    found = answers("remove")
    assert found.queries == found.given["unsat"] > 1
    assert troubles([found]) == []


def test_another_answer_and_none_at_all_are_troubles() -> None:
    lines = troubles([Answers("one", 2, {"unsat": 1, "sat": 1}), Answers("two", 1, {"unknown (TIMEOUT)": 1})])
    assert lines == ["one: {'unsat': 1, 'sat': 1}", "two: {'unknown (TIMEOUT)': 1}"]
    assert troubles([Answers("three", 0, {})]) == ["three: there is no query"]
