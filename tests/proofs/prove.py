"""Everything that is proved, checked exhaustively and examined: a result for each statement, on several processes."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec

from logitsproc.optimized import table
from logitsproc.proofs import errors, exam, kernel, lemmas
from logitsproc.proofs.exhaustive import CHECKS, judged
from logitsproc.proofs.kernel import SMALL, Outcome, explore
from logitsproc.proofs.lemmas import LEMMAS, Lemma
from logitsproc.proofs.statement import EXAMINED, PROVED, REFUTED, UNKNOWN, Planted, Result, code_with
from logitsproc.reference import batch, producer

EXECUTOR = "executor"
SENTENCE = "The executor answers every question whose answer is known, and each error planted in it is found by one."


def statements() -> dict[str, Callable[[], Result]]:
    """What gives the result of each statement, by name; vLLM's own code is among them where it is installed."""
    checks = {check.name: check for check in CHECKS}
    if find_spec("vllm"):
        from logitsproc.proofs import input_batch, with_vllm  # noqa: F401

        checks[input_batch.CHECK.name] = input_batch.CHECK
    proofs = {name: partial(proved, lemma) for name, lemma in LEMMAS.items()}
    return {**proofs, **{name: partial(judged, check) for name, check in checks.items()}, EXECUTOR: examined}


def results(names: Sequence[str], jobs: int) -> Iterator[Result]:
    """The results of the named statements, as they come, so many at a time, each in a process of its own.

    jobs: with one, there is no other process, and they come in their order.
    """
    if jobs == 1:
        yield from map(result_of, names)
        return
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(result_of, sorted(names, key=weight, reverse=True), chunksize=1)


LONG = (EXECUTOR, "steps", "orders_agree", "all_orders_agree", "input_batch")
"""What takes longest, and so comes first: no process waits for another at the end."""


def weight(name: str) -> int:
    """How long a statement takes, by and large."""
    return 2 if name in LONG else int(name not in LEMMAS)


def result_of(name: str) -> Result:
    """The result of a statement."""
    return statements()[name]()


def proved(lemma: Lemma) -> Result:
    """What comes of a lemma: its paths, and whether each planted error is refuted."""
    started = time.perf_counter()
    outcome = explored(lemma)
    missed = [error.says for error in lemma.planted if not refutes(lemma, error).refuted]
    troubles = [outcome.refuted, outcome.unknown, *(f"not refuted: {says}" for says in missed)]
    if not lemma.planted:
        troubles.append("no error is planted")
    found = tuple(trouble for trouble in troubles if trouble)
    return Result(
        name=lemma.name,
        sentence=lemma.sentence,
        clauses=lemma.clauses,
        verdict=(UNKNOWN if outcome.unknown else REFUTED) if found else PROVED,
        bound=lemma.bound,
        count=outcome.paths,
        unit="paths",
        refuted=len(lemma.planted) - len(missed),
        planted=len(lemma.planted),
        troubles=found,
        seconds=time.perf_counter() - started,
    )


def explored(
    lemma: Lemma, error: Planted | None = None, most: int | None = None, keep: Callable[[str], None] | None = None
) -> Outcome:
    """Every path of a lemma, of the shipped code or with an error in it. keep, most: as `explore` has them."""
    code = code_with(error, lemma.also)
    modules = [batch, producer, table, errors, lemmas, sys.modules[lemma.body.__module__]]
    return explore(lambda run: lemma.body(run, code), list(dict.fromkeys(modules)), keep, most)


def refutes(lemma: Lemma, error: Planted) -> Outcome:
    """What a lemma says of an error; where the smallest counterexample is wanted, that one."""
    for most in (0, *SMALL[:3]) if lemma.smallest else ():
        outcome = explored(lemma, error, most)
        if outcome.refuted:
            return outcome
    return explored(lemma, error)


def examined() -> Result:
    """What comes of the examination of the executor."""
    started = time.perf_counter()
    wrong, missed, errors = list(exam.wrong_answers(kernel)), list(exam.escaped()), exam.errors()
    return Result(
        name=EXECUTOR,
        sentence=SENTENCE,
        clauses=(),
        verdict=REFUTED if wrong or missed else EXAMINED,
        bound="",
        count=len(exam.QUESTIONS),
        unit="questions",
        refuted=len(errors) - len(missed),
        planted=len(errors),
        troubles=(*wrong, *missed),
        seconds=time.perf_counter() - started,
    )
