"""Has a second solver, cvc5, answer every query that Z3 called unsatisfiable: `python -m logitsproc.proofs.second`.

Prints a line for each lemma, and exits 1 where an answer is another, or where there is none in time.
"""

from __future__ import annotations

import gc
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import cvc5
from rich.console import Console
from rich.progress import track

from logitsproc.proofs.lemmas import LEMMAS
from logitsproc.proofs.prove import explored

JOBS = 2
OPTIONS = {"tlimit-per": "20000", "nl-cov": "true"}
"""Milliseconds an answer may take; and how products of reals are decided."""
UNSAT = "unsat"


class Answers(NamedTuple):
    """How many different queries a lemma has, and how often cvc5 gave each answer."""

    name: str
    queries: int
    given: dict[str, int]


def queries_of(name: str) -> list[str]:
    """The queries of a lemma that Z3 calls unsatisfiable, as SMT-LIB, each once."""
    kept: dict[str, None] = {}
    outcome = explored(LEMMAS[name], keep=lambda text: kept.setdefault(text))
    assert not outcome.refuted
    assert not outcome.unknown
    return list(kept)


def answer(text: str) -> str:
    """What cvc5 says of a query, or why it says nothing."""
    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    for option, value in OPTIONS.items():
        solver.setOption(option, value)
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, symbols)
    return said.strip()


def answers(name: str) -> Answers:
    """What cvc5 says of every query of a lemma."""
    queries = queries_of(name)
    return Answers(name, len(queries), dict(Counter(answer(text) for text in queries)))


def troubles(found: Iterable[Answers]) -> list[str]:
    """A line for each lemma of which cvc5 says something else, or that has nothing to ask."""
    return [
        f"{each.name}: {each.given}" if each.queries else f"{each.name}: there is no query"
        for each in found
        if not each.queries or set(each.given) != {UNSAT}
    ]


def main() -> int:
    """Asks of every lemma."""
    out, err = Console(highlight=False, soft_wrap=True), Console(stderr=True)
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(JOBS, maxtasksperchild=1) as pool:
        coming = pool.imap(answers, LEMMAS, chunksize=1)
        found = list(track(coming, "cvc5", len(LEMMAS), console=err, transient=True, disable=not err.is_terminal))
    for each in found:
        out.print(f"{each.name}: {each.queries:,} queries, {each.given}")
    wrong = troubles(found)
    total = sum(each.queries for each in found)
    out.print("\n".join(wrong) or f"cvc5 finds all {total:,} queries unsatisfiable as well")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
