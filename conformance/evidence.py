"""What a run shows: how often each clause's occasion came up, and how often a wrong answer would have been seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.checks import allows, expected_at, is_idle_copy
from logitsproc.conformance.faults import Belief, Uses, clause_of
from logitsproc.conformance.history import Step
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.oracles import Oracle, SoloFailure
from logitsproc.conformance.player import Outcome, Player
from logitsproc.reference.batch import SWAP, Batch, Update
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request

OBSERVED_EVERY = 4


@dataclass
class Evidence:
    """Counts over a run.

    `fired`: steps in which the clause's occasion came up. `witnessed`: steps, for bookkeeping clauses of the
    histories that were observed, in which a subject with a fault of the clause would have given another answer.
    """

    histories: int = 0
    steps: int = 0
    observed: int = 0
    idle_copies: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    witnessed: Counter[str] = field(default_factory=Counter)

    def step(
        self, player: Player, outcome: Outcome, expectations: Sequence[Expectation], kind: Kind | None
    ) -> set[str]:
        """Counts one step that passed; gives the clauses that it was a witness of."""
        self.steps += 1
        for clause in (
            *update_occasions(outcome.update, outcome.before),
            *output_occasions(outcome.step, outcome.update, outcome.batch),
        ):
            self.fired[clause] += 1
        shown = {"PROC-EXCEPTION", *judged_occasions(player, outcome, expectations, kind)}
        for clause in shown:
            self.fired[clause] += 1
            self.witnessed[clause] += 1
        self.idle_copies += is_idle_copy(outcome, list(expectations))
        return shown


def update_occasions(update: Update | None, before: Sequence[Request | None]) -> Iterable[str]:
    """The clauses that speak about this update."""
    if update is None:
        yield "UPD-NONE"
        return
    yield "UPD-SIZE"
    if update.removed:
        yield "UPD-REMOVE"
    replaces = any(row < len(before) and before[row] is not None for row, _ in update.added)
    if update.added:
        yield "UPD-ADD"
        if replaces:
            yield "UPD-REPLACE"
        if any(row >= len(before) for row, _ in update.added):
            yield "UPD-EXTEND"
    if update.removed or replaces:
        yield "PROC-STATE-DEPARTED"
    yield from move_occasions(update)


def move_occasions(update: Update) -> Iterable[str]:
    """The clauses that speak about these moves."""
    one_way = [(source, to) for source, to, direction in update.moved if direction != SWAP]
    if one_way:
        yield "UPD-MOVE"
        if any(to not in update.removed for _, to in one_way):
            yield "UPD-DROP"
    if len(one_way) < len(update.moved):
        yield "UPD-SWAP"
    if update.moved and (update.added or update.removed):
        yield "UPD-ORDER"
    touched = [row for source, to, _ in update.moved for row in {source, to}]
    if len(set(touched)) < len(touched):
        yield "UPD-SEQUENCE"
    if {row for row, _ in update.added} & set(update.removed):
        yield "UPD-OVERLAP"


def output_occasions(step: Step, update: Update | None, batch: Batch) -> Iterable[str]:
    """The clauses that speak about the outputs that land in this step, and about neighbours."""
    if step.growth:
        yield "PROC-LIVE-OUTPUTS"
        if update is None:
            yield "PROC-QUIET"
        if any(growth.late for growth in step.growth):
            yield "PROC-PLACEHOLDER"
    if len(batch) > 1:
        yield "PROC-INDEPENDENT"


def judged_occasions(
    player: Player, outcome: Outcome, expectations: Sequence[Expectation], kind: Kind | None
) -> Iterable[str]:
    """The clauses whose occasion and whose check are the same thing, the kind's own among them."""
    if outcome.update is not None or outcome.values is not None:
        yield "PROC-READONLY"
    if outcome.values is None:
        return
    yield "PROC-SHAPE"
    used = [not expectation.untouched for expectation in expectations]
    if any(used):
        yield "PROC-FUNCTION"
        if not all(used):
            yield "PROC-UNTOUCHED"
        if outcome.again is not None:
            yield "PROC-APPLY-STATELESS"
        if player.invariant:
            yield "PROC-ARGMAX"
    elif used:
        yield "PROC-IDLE"
    if any(request is not None and request.prompt is None for request in outcome.batch):
        yield "PROC-PROMPT-NONE"
    if any(growth.dropped for growth in outcome.step.growth):
        yield "PROC-SHRINK"
    if kind is not None:
        yield from kind.together(player.header.options, outcome.batch)
        for row, request in enumerate(outcome.batch):
            if request is not None:
                yield from kind.bears(request, outcome.rows.values[outcome.picks[row]], expectations[row])


class Observer:
    """The faults beside one history: what a subject with each of them would have answered."""

    def __init__(self, faults: Iterable[type[Belief]], oracle: Oracle, uses: Uses) -> None:
        self.uses = uses
        self.known: dict[Request, bool] = {}
        self.beliefs = [fault(self.is_user) for fault in faults]
        self.oracle = oracle
        self.rows: dict[tuple[int, Request | None], Expectation | None] = {}
        self.known_to_differ: dict[tuple[int, Request | None], bool] = {}

    def is_user(self, request: Request) -> bool:
        """Whether the request uses the subject; asked once for each."""
        if request not in self.known:
            self.known[request] = self.uses(request)
        return self.known[request]

    def follow(self, outcome: Outcome) -> None:
        """Shows every fault the update."""
        self.rows.clear()
        self.known_to_differ.clear()
        for belief in self.beliefs:
            belief.follow(outcome.update, outcome.step)

    def applied(self, outcome: Outcome) -> None:
        """Tells every fault of the applies."""
        for _ in range(outcome.step.applies):
            for belief in self.beliefs:
                belief.applied()

    def differing(self, outcome: Outcome) -> Iterable[tuple[Belief, bool]]:
        """The faults that would have answered otherwise than the model, and whether the subject answered as they do."""
        assert outcome.values is not None
        for belief in self.beliefs:
            others = [(row, it) for row, held in enumerate(outcome.batch) if (it := belief.at(row)) is not held]
            if any(self.differs(outcome, row, request) for row, request in others):
                yield belief, all(self.is_answer(outcome, row, request) for row, request in others)

    def differs(self, outcome: Outcome, row: int, believed: Request | None) -> bool:
        """Whether the model allows nothing that serving the believed request allows, at this row; found once a step."""
        if (row, believed) not in self.known_to_differ:
            self.known_to_differ[row, believed] = self.is_other(outcome, row, believed)
        return self.known_to_differ[row, believed]

    def is_other(self, outcome: Outcome, row: int, believed: Request | None) -> bool:
        """What `differs` says."""
        predicted, expected = self.row(outcome, believed, row), self.row(outcome, outcome.batch[row], row)
        if predicted is None or expected is None:
            return False
        if predicted.low == expected.low:
            return False
        return not (allows(expected, predicted.low) or allows(predicted, expected.low))

    def is_answer(self, outcome: Outcome, row: int, believed: Request | None) -> bool:
        """Whether the subject's row is what serving the believed request allows."""
        assert outcome.values is not None
        predicted = self.row(outcome, believed, row)
        if predicted is None:
            return False
        return allows(predicted, outcome.values[row])

    def row(self, outcome: Outcome, request: Request | None, row: int) -> Expectation | None:
        """What the row is for a request, or for nobody; computed once a step.

        None where the oracle cannot say: a fault may show it ids or params that no engine would.
        """
        if (row, request) not in self.rows:
            try:
                self.rows[row, request] = expected_at(outcome, self.oracle, row, request)
            except (SoloFailure, CannotRun):
                self.rows[row, request] = None
        return self.rows[row, request]


def witness(observer: Observer, outcome: Outcome, evidence: Evidence, shown: set[str]) -> None:
    """Counts the clauses, beside those shown already, whose faults this step would have shown; the step has passed."""
    observer.follow(outcome)
    if outcome.values is not None:
        for clause in {clause_of(type(belief)) for belief, _ in observer.differing(outcome)} - shown:
            evidence.witnessed[clause] += 1
    observer.applied(outcome)
