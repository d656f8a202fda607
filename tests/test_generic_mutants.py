"""Generic mutants: the results are of the sources as they are, nearly all are killed, survivors have reasons."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
from changes import ALIAS, ANNOTATION, PROTOCOL, mutants_of
from generic import ROOT, VERDICTS, key_of, killed, read_results, reasons, stale, survivors

MUTANTS = Path(__file__).parent / "mutants"
LEAST = 0.95
RESULTS = read_results()
SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

Batch = list[int | None]


class Named(Protocol):
    @property
    def name(self) -> str: ...


@dataclass
class Pair:
    one: int | None

    def sum(self, other: int | None = 1) -> int | None:
        """The sum."""
        return None if other is None or self.one is None else self.one + other


def flag(value: bool) -> bool:
    if not value:
        return True
    return False
'''
SMOKE = """
import json, sys
from pathlib import Path
from changes import mutants_of
from forked import judged, tree
from killers import killers_of

root, chosen = Path(sys.argv[1]), json.loads(sys.argv[2])
with tree(root) as base:
    mutants, _ = mutants_of("reference/batch.py", (root / "reference" / "batch.py").read_text())
    jobs = ["reference/batch.py", *(each for each in mutants if [each.operator, each.after] in chosen)]
    for job, fate in judged(base, jobs, 2, lambda file: killers_of(file)[:2]):
        print(json.dumps([getattr(job, "after", job), fate.killer]))
"""


def test_the_results_are_of_the_sources_as_they_are() -> None:
    assert not stale(RESULTS), "stale, run `make mutants-generic`"


@pytest.mark.parametrize("room", ["reference", "optimized"])
def test_nearly_all_are_killed(room: str) -> None:
    count, of, _ = killed(RESULTS, room)
    assert count >= LEAST * of > 0


def test_every_survivor_has_a_reason_and_every_reason_a_survivor() -> None:
    given = [key for key, _, _ in reasons()]
    assert not Counter(given) - Counter(set(given)), "given twice"
    assert not set(survivors(RESULTS)) - set(given), "no reason in survivors.toml"
    assert not set(given) - set(survivors(RESULTS)), "in survivors.toml, but no survivor"


def test_reasons_are_given_in_words() -> None:
    for key, verdict, reason in reasons():
        assert verdict in VERDICTS, key
        assert len(reason.split()) > 4, key


@pytest.mark.parametrize("file", ["reference/producer.py", "optimized/seen.py"])
def test_the_results_are_of_every_mutant(file: str) -> None:
    mutants, left_out = mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))
    results = RESULTS[file]
    assert [(each.line, key_of(file, each)) for each in results.mutants] == [
        (each.line, key_of(file, each)) for each in mutants
    ]
    assert results.left_out == left_out


def test_a_key_is_one_mutants() -> None:
    keys = [key_of(file, each) for file, entry in RESULTS.items() for each in entry.mutants]
    assert len(set(keys)) == len(keys)


def test_what_only_a_type_checker_reads_is_left_out_and_counted() -> None:
    mutants, left_out = mutants_of("pair.py", SOURCE)
    assert {(each.within, each.line) for each in mutants} == {
        ("", 15),
        ("sum", 19),
        ("sum", 21),
        ("flag", 25),
        ("flag", 26),
        ("flag", 27),
    }
    assert left_out == {ALIAS: 11, PROTOCOL: 1, ANNOTATION: 22}


def test_each_mutant_is_the_program_with_one_change() -> None:
    mutants, _ = mutants_of("pair.py", SOURCE)
    assert len({each.text for each in mutants}) == len(mutants)
    for each in mutants:
        assert SOURCE.splitlines()[each.line - 1].strip() == each.before
        assert each.text.count(each.after) > SOURCE.count(each.after) or not each.after


def test_the_runner_tells_what_is_noticed() -> None:
    swapped = [
        "ReplaceComparisonOperator_Eq_NotEq",
        "(swap if direction != SWAP else move)(batch, source, destination)",
    ]
    thawed = ["ReplaceTrueWithFalse", "@dataclass(frozen=False, slots=True)"]
    bare = ["RemoveDecorator", ""]
    command = [sys.executable, "-c", SMOKE, str(ROOT), json.dumps([swapped, thawed, bare])]
    run = subprocess.run(command, cwd=MUTANTS, capture_output=True, text=True, check=True)
    killers = dict(json.loads(line) for line in run.stdout.splitlines())
    assert killers == {"reference/batch.py": "", swapped[1]: "doctests", thawed[1]: "", bare[1]: "doctests"}
