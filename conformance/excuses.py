"""Failures that are known: each is played again before a run, and excuses its clause only while it still shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.checks import row_is_right
from logitsproc.conformance.evidence import Observer
from logitsproc.conformance.faults import FAULTS, Belief, clause_of
from logitsproc.conformance.history import History
from logitsproc.conformance.machine import world_of
from logitsproc.conformance.player import Outcome, Violation
from logitsproc.conformance.validation import has_validation
from logitsproc.spec import Clause

if TYPE_CHECKING:
    from logitsproc.conformance.suite import Run


@dataclass(frozen=True)
class Known:
    """A failure that is known: of which target, the clause, why it is excused, and the history that shows it.

    `binding`, `device`: of which runs it is, as Subject has them; None for any. The kind is the history's own.
    """

    target: str
    clause: str
    reason: str
    history: History
    binding: str | None = None
    device: str | None = None


@dataclass(frozen=True)
class Excuse:
    """A failure that is known, in a run. `stale`: why it excuses nothing, or nothing."""

    known: Known
    stale: str = ""


class Excuses:
    """What is excused in a run, and how a violation is told to be of that without being made small and named.

    `faults` explain the histories that are known, `errors` are the exceptions that they raise, and `clauses` are those
    that are excused.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.faults: list[type[Belief]] = []
        self.errors: set[tuple[str, str]] = set()
        self.found = [Excuse(known, self.staleness(known)) for known in run.settings.known]
        self.clauses = {excuse.known.clause for excuse in self.found if not excuse.stale}

    def of(self, clause: Clause) -> Excuse | None:
        """What is known of a clause, what is stale of it first."""
        found = [excuse for excuse in self.found if excuse.known.clause == clause.id]
        return max(found, key=lambda excuse: excuse.stale, default=None)

    def staleness(self, known: Known) -> str:
        """Why a failure is not what is known of it, or nothing; what tells others like it is learnt from it."""
        try:
            violation = self.run.replay(known.history)
            clause = None if violation is None else self.clause_of(known, violation)
        except CannotRun as error:
            return f"its history cannot be played: {error}"
        if violation is None:
            return "its history passes"
        if clause != known.clause:
            return f"its history breaks {clause}"
        self.learn(known, violation)
        return ""

    def clause_of(self, known: Known, violation: Violation) -> str:
        """The clause that the history breaks, as a run that finds it names it."""
        if violation.hangs:
            return "PROC-EXCEPTION"
        if (known.clause, violation.clause) == ("VAL-LATER", "PROC-EXCEPTION"):
            return "VAL-LATER" if has_validation(self.run.settings.subject) else "PROC-EXCEPTION"
        history = up_to(known.history, violation)
        return self.run.named(history, violation, world_of(history)).clause.id

    def learn(self, known: Known, violation: Violation) -> None:
        """Keeps the faults of the clause that explain the history, or the exception."""
        explaining = self.run.doctor().explaining(up_to(known.history, violation), FAULTS)
        self.faults += [fault for fault in explaining if clause_of(fault) == known.clause]
        if violation.clause == "PROC-EXCEPTION":
            self.errors.add(signature(violation))

    def observer(self) -> Observer | None:
        """The faults beside a new history, if there are any."""
        return Observer(self.faults, self.run.oracle, self.run.uses) if self.faults else None

    def covers(self, history: History, violation: Violation) -> bool:
        """Whether the violation at the end of a history shows nothing but what is known."""
        if not self.clauses:
            return False
        if violation.clause == "PROC-EXCEPTION":
            if signature(violation) in self.errors:
                return True
        elif violation.clause is not None:
            return violation.clause in self.clauses
        doctor = self.run.doctor()
        if doctor.explaining(history, self.faults):
            return True
        return doctor.alone_clause(history, violation) in self.clauses


def up_to(history: History, violation: Violation) -> History:
    """The history up to the step that fails."""
    return replace(history, steps=history.steps[: violation.step + 1])


def signature(violation: Violation) -> tuple[str, str]:
    """What was raised, and the line that raised it."""
    return violation.message.partition(":")[0], violation.message.rpartition("(")[2]


def answers(observer: Observer, outcome: Outcome) -> bool:
    """Whether one of the faults gives every row of the step, and the model does not."""
    return any(
        is_answer and all(is_as_served(observer, outcome, row, belief) for row in range(len(outcome.batch)))
        for belief, is_answer in observer.differing(outcome)
    )


def is_as_served(observer: Observer, outcome: Outcome, row: int, belief: Belief) -> bool:
    """Whether the row serves another request in the eyes of a fault, or is right."""
    held = outcome.batch[row]
    if belief.at(row) is not held:
        return True
    expectation = observer.row(outcome, held, row)
    return expectation is not None and row_is_right(outcome, row, expectation)
