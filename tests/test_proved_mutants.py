"""Mutants of the code under proof: the record is of the sources as they are, and what is argued is there."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
import verdicts
from generic import digest, key_of
from killers import LEMMAS_OF, provers_of
from proved import Fate, arguments, counted, mutants, read_record, unargued

from logitsproc.proofs.exhaustive import CHECKS
from logitsproc.proofs.lemmas import LEMMAS

RECORD = read_record()


def test_the_record_has_the_files_under_proof_as_they_are() -> None:
    assert {file: count.sha256 for file, count in RECORD.items()} == {file: digest(file) for file in LEMMAS_OF}


@pytest.mark.parametrize("file", LEMMAS_OF)
def test_every_mutant_is_refuted_or_argued(file: str) -> None:
    count, found = RECORD[file], mutants(file)
    argued = {key for key in arguments() if key.file == file}
    assert count.mutants == len(found) == sum(count.refuted.values()) + count.argued
    assert argued <= {key_of(file, mutant) for mutant in found}
    assert count.argued == len(argued)
    assert all(reason.endswith(".") for reason in arguments().values())


@pytest.mark.parametrize("file", LEMMAS_OF)
def test_what_refutes_is_there(file: str) -> None:
    _, lemmas, cases = provers_of(file)
    assert set(lemmas.target.split()) <= set(LEMMAS)
    assert set(cases.target.split()) <= {check.name for check in CHECKS}


def test_a_mutant_that_lives_without_an_argument_is_told_and_so_is_an_argument_about_none() -> None:
    file = "optimized/table.py"
    found = {mutant: Fate("lemmas", "") for mutant in mutants(file)}
    first = next(iter(found))
    lines = list(unargued(file, {**found, first: Fate("", "")}))
    assert lines[0] == f"not refuted, and not argued: {key_of(file, first)}"
    assert len(lines) == 1 + RECORD[file].argued
    assert counted(file, found).refuted == {"lemmas": len(found)}


def test_the_page_has_the_counts() -> None:
    assert verdicts.mutants_row("`x.py`", 9, {"lemmas": 5, "cases": 2}, 2) == "| `x.py` | 9 | 5 | 2 | 0 | 2 |"
    assert verdicts.mutants_table() in verdicts.PAGE.read_text(encoding="utf-8")
