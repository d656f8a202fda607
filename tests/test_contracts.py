"""CrossHair's part of the proofs: its words are read right, and what is put to it says something.

CrossHair itself, which takes its time, runs on two contracts here; on all of them it is a target of its own.
"""

from __future__ import annotations

import inspect
import re
from itertools import product
from typing import Any

import pytest

from logitsproc.conformance.closure import opening_ids
from logitsproc.proofs import confirmed, contracts, one_update
from logitsproc.proofs.confirmed import CONFIRMED, ERROR, REFUTED, SILENT, UNCONFIRMED, VACUOUS, Checked, verdict_of
from logitsproc.proofs.one_update import PLANTED, ROWS, Drawn, Search, trouble_with, update_of
from logitsproc.proofs.statement import EXHAUSTIVE, UNKNOWN, Planted, code_with
from logitsproc.spec import clauses

AT = "/somewhere/proofs/contracts.py:52: "
HOLDS: dict[str, list[tuple[Any, ...]]] = {
    "removing": [([5], 0), ([5, 5, 6], 1)],
    "removing_what_is_not_there": [([], 0), ([True, False], 0), ([True, False], 1), ([True], -1)],
    "adding": [([], 0, 7), ([5, 6], 0, 7), ([5, 6], 2, 5)],
    "moving": [([True, True, True], 2, 0), ([True, False], 0, 1)],
    "moving_any_request": [([5, 6, 7], 0, 2), ([5, 5], 1, 0)],
    "swapping": [([5, 6, 7], 0, 2), ([5], 0, 0)],
    "resizing": [([True, False], 1), ([True, True], 1), ([], 0)],
    "replacing_in_one_update": [([5, 6], 1, 7)],
    "ordering": [([5, 6, 7], 0, 2, 8)],
    "moving_in_sequence": [([5, 6, 7], 0, 1, 2), ([5, 6], 1, 1, 0)],
    "refilling": [([False, True, False], 1), ([False], 3), ([True], 1)],
    "extending": [([5], [6, 7]), ([], [])],
    "condensing": [([False, True, False, True, True],), ([True, False],), ([],)],
    "condensing_once": [([False, True],), ([True, False, False, True],)],
    "listing": [([1, 3, 4], 3), ([], 0)],
    "replaying": [([True, False, True], 1, False), ([True, False], 0, True), ([], 0, True)],
    "matching": [([2, 1], [1]), ([1], [2, 1]), ([], [])],
    "completing": [([2, 1], [1, 3], 4, 3), ([2], [1, 3], 4, 3), ([], [3], 4, 4)],
    "blocking": [(1, 2, 0, 1), (2, 2, 0, 1), (0, 0, 3, 3)],
    "allowing": [([2, 0, 2],), ([],), ([7],)],
    "seeing": [([0], [1, 1]), ([], [5])],
    "counting_once": [([0], [1, 1]), ([0, 1], [])],
    "leaving_alone": [(-1,), (0,), (1,), (2,), (3,)],
}
FAILS: dict[str, tuple[Any, ...]] = {
    "refuted_removing": ([5, 6], 0),
    "refuted_moving": ([True, True], 0, 1),
    "refuted_swapping": ([5, 6], 0, 1),
    "refuted_ordering": ([5, 6], 0, 1, 7),
    "refuted_condensing": ([False, True, True],),
    "refuted_matching": ([1, 2], [1]),
    "refuted_blocking": (2, 2, 0, 1),
}


def docstring(name: str) -> str:
    """What is written under a contract."""
    return inspect.getdoc(getattr(contracts, name)) or ""


def preconditions(name: str) -> list[str]:
    """What a contract asks of its inputs."""
    return re.findall(r"^pre: (.+)$", docstring(name), re.MULTILINE)


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (f"{AT}info: Confirmed over all paths.\n", CONFIRMED),
        (f"{AT}info: Not confirmed.\n", UNCONFIRMED),
        (f"{AT}info: Unable to meet precondition.\n", VACUOUS),
        (f"{AT}error: false when calling removing([0], 0) (which returns False)\n", REFUTED),
        (f"{AT}error: IndexError: list index out of range when calling removing([], 0)\n", ERROR),
        (f"{AT}error: NameError: name 'cell' is not defined when calling removing([0], 0)\n", ERROR),
        (f"{AT}info: Confirmed over all paths.\n{AT}info: Not confirmed.\n", ERROR),
        (f"{AT}error: Confirmed over all paths. when calling removing([0], 0)\n", ERROR),
        ("Confirmed over all paths.\n", ERROR),
        ("Traceback (most recent call last):\n", ERROR),
        ("", SILENT),
        ("\n", SILENT),
    ],
)
def test_the_words_are_read(output: str, verdict: str) -> None:
    assert verdict_of(output) == verdict


@pytest.mark.parametrize(
    ("name", "verdict", "fits"),
    [
        ("removing", CONFIRMED, True),
        ("removing", UNCONFIRMED, False),
        ("removing", VACUOUS, False),
        ("removing", SILENT, False),
        ("removing", REFUTED, False),
        ("refuted_removing", REFUTED, True),
        ("refuted_removing", CONFIRMED, False),
        ("refuted_removing", ERROR, False),
    ],
)
def test_only_the_verdict_asked_for_fits(
    name: str, verdict: str, fits: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(confirmed, "names", lambda: ["adding", name])
    found = {"adding": Checked("adding", CONFIRMED, "said", 1.0), name: Checked(name, verdict, "said", 2.0)}
    monkeypatch.setattr(confirmed, "checked", found.__getitem__)
    assert confirmed.main() == (0 if fits else 1)
    first, second, *others = capsys.readouterr().out.splitlines()
    assert (first.split(), second.split()[0], second.split()[-2:]) == (
        ["adding", "confirmed", "1.0", "s"],
        name,
        ["2.0", "s"],
    )
    assert [other.strip() for other in others] == ([] if fits else ["expected otherwise: said"])


@pytest.mark.parametrize(("name", "verdict"), [("leaving_alone", CONFIRMED), ("refuted_removing", REFUTED)])
def test_crosshair_writes_the_words_that_are_read(name: str, verdict: str) -> None:
    found = confirmed.checked(name)
    assert found.verdict == verdict, found.said


@pytest.mark.parametrize("name", confirmed.names())
def test_every_contract_says_one_sentence_of_clauses_there_are(name: str) -> None:
    ids = opening_ids(docstring(name))
    assert ids, "it opens with no clause"
    assert set(ids) <= set(clauses())
    sentence = docstring(name).partition(":")[2].partition("\n\n")[0]
    assert re.fullmatch(r"\s[^.]+\.", sentence), "it is not one sentence"


def test_what_is_wrong_on_purpose_is_asked_what_its_twin_is() -> None:
    assert {name for name in confirmed.names() if name.startswith(confirmed.WRONG)} == set(FAILS)
    for name in FAILS:
        assert preconditions(name) == preconditions(name.removeprefix(confirmed.WRONG))


def test_every_contract_holds_on_plain_values() -> None:
    assert [*HOLDS, *FAILS] == confirmed.names()
    for name, examples in HOLDS.items():
        for values in examples:
            assert getattr(contracts, name)(*values) is True, (name, values)


@pytest.mark.parametrize("name", FAILS)
def test_what_is_wrong_on_purpose_fails_on_plain_values(name: str) -> None:
    assert getattr(contracts, name)(*FAILS[name]) is False


PLAIN = [
    Drawn(*drawn)
    for drawn in product(range(ROWS + 1), range(ROWS + 2), (False, True), range(ROWS + 1), range(ROWS), (False, True))
]
"""Everything that the property of one update may be asked."""


def test_one_update_holds_on_plain_values() -> None:
    assert [trouble_with(code_with(), update_of(drawn)) for drawn in PLAIN] == [None] * len(PLAIN)


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: error.says)
def test_one_update_fails_on_plain_values_of_what_is_wrong(error: Planted) -> None:
    assert any(trouble_with(code_with(error), update_of(drawn)) for drawn in PLAIN)


@pytest.mark.parametrize(
    ("shipped", "wrong", "verdict", "troubles"),
    [
        (Search(None, 9, True), Search("differs", 2, False), EXHAUSTIVE, 0),
        (Search(None, 9, False), Search("differs", 2, False), UNKNOWN, 1),
        (Search("differs", 9, False), Search("differs", 2, False), REFUTED, 1),
        (Search(None, 9, True), Search(None, 9, True), REFUTED, len(PLANTED)),
    ],
)
def test_one_update_counts_only_when_every_path_is_taken_and_every_error_found(
    shipped: Search, wrong: Search, verdict: str, troubles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_update, "searched", lambda code: shipped if vars(code) == vars(code_with()) else wrong)
    result = one_update.judged()
    assert (result.verdict, len(result.troubles)) == (verdict, troubles)
    assert one_update.main() == (0 if verdict == EXHAUSTIVE else 1)
