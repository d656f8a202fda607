"""Finds out which clause a wrong row breaks: by the request alone, by faults that explain it, by what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from logitsproc.conformance.bindings import Subject
from logitsproc.conformance.checks import expected, is_admitted, row_is_right, wrong_signs
from logitsproc.conformance.evidence import Observer, update_occasions
from logitsproc.conformance.faults import FAULTS, Belief, account, clause_of
from logitsproc.conformance.history import Added, History, Sight, Step, batches, grow, new_request, to_update
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.logits import Palette
from logitsproc.conformance.oracles import Oracle, SoloFailure, grown_alone, run_alone
from logitsproc.conformance.plans import Case
from logitsproc.conformance.player import Outcome, Player, Violation, shown
from logitsproc.reference.batch import Batch, IllFormed, apply_update
from logitsproc.reference.expectation import Expectation, refused
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import is_greedy

RIGHT = 3
"""So many times as often right as wrong is a fault that explains a subject."""
MARGIN = 5
"""So many steps settle what is right or wrong of a fault, or which of two it is."""
AMONG_KIN = 24
"""So many steps at which they are right settle it for faults of one clause, of which the best is told."""
LEAST_HISTORIES = 8
"""The steps of one history say much the same."""
LAST_RESORT = ("UPD-SWAP", "UPD-DROP", "UPD-MOVE", "UPD-REPLACE", "UPD-REMOVE")


@dataclass(frozen=True)
class Diagnosis:
    """The clause that is broken, and, if a known fault explains all that was seen, what it says."""

    clause: str
    fault: str | None = None


@dataclass
class Score:
    """At how many steps a fault differs from the model and the subject does as it says, and at how many it does not."""

    hits: int = 0
    misses: int = 0

    def is_clear(self) -> bool:
        """Whether the fault was right often enough and never wrong, or wrong far too often to explain the subject."""
        return (not self.misses and self.hits >= MARGIN) or self.misses >= 2 * self.hits + MARGIN


@dataclass
class Trial:
    """Faults beside a subject that failed, over one history after another: which of them it behaves like.

    `scores` are of those that can still win, which alone are looked at.
    """

    player: Callable[[History], Player]
    oracle: Oracle
    uses: Callable[[Request], bool]
    scores: dict[type[Belief], Score]
    histories: int = 0

    def begin(self, header: History) -> Player:
        """The player of a new history."""
        self.observer = Observer(self.scores, self.oracle, self.uses)
        self.playing = self.player(header)
        return self.playing

    def step(self, player: Player, outcome: Outcome) -> None:
        """Counts a step; raises Violation where the solo oracle's own processor raised."""
        self.observer.follow(outcome)
        if outcome.values is not None:
            self.compare(outcome)
        self.observer.applied(outcome)

    def compare(self, outcome: Outcome) -> None:
        """A fault hits where the subject answers as it says, and misses where it does not, or says nothing of it."""
        differing = dict(self.observer.differing(outcome))
        passed = passes(outcome, self.oracle)
        for belief in self.observer.beliefs:
            if belief in differing:
                self.count(belief, differing[belief])
            elif not passed:
                self.count(belief, False)

    def count(self, belief: Belief, is_hit: bool) -> None:
        """Counts a step for one fault."""
        score = self.scores[type(belief)]
        score.hits += is_hit
        score.misses += not is_hit

    def counts(self, case: Case, violation: Violation) -> bool:
        """The history is over, and the trial is not."""
        self.broke(violation)
        return False

    def broke(self, violation: Violation) -> None:
        """The history ended at a violation: an apply that raised may have done so for a row that is not there."""
        if self.playing.applying is not None and violation.clause == "PROC-EXCEPTION":
            self.observer.follow(self.playing.applying)
            for belief in self.observer.beliefs:
                self.count(belief, belief.reaches_beyond(len(self.playing.batch)))

    def is_settled(self) -> bool:
        """Leaves out the faults that are far behind; whether the others name one clause, or it is clear that none is.

        Asked before every history.
        """
        best = self.best()
        self.scores = {fault: score for fault, score in self.scores.items() if score.misses < best.misses + MARGIN}
        self.histories += 1
        if self.histories <= LEAST_HISTORIES or len(set(map(clause_of, self.scores))) > 1:
            return False
        return best.is_clear() and (len(self.scores) == 1 or best.hits >= AMONG_KIN)

    def winners(self) -> list[type[Belief]]:
        """The faults that are wrong least often and right most often, if they are right much more often than wrong."""
        best = self.best()
        if best.hits < RIGHT * best.misses:
            return []
        return [fault for fault, score in self.scores.items() if score == best]

    def best(self) -> Score:
        """The best score."""
        return max(self.scores.values(), key=lambda score: (-score.misses, score.hits))


@dataclass
class Doctor:
    """What diagnosis needs of a run: how to build a player, the oracle, who uses the processor, how to hold a trial."""

    player: Callable[[History], Player]
    oracle: Oracle
    uses: Callable[[Request], bool]
    kind: Kind | None
    hold: Callable[[Trial], None]

    def diagnose(self, history: History, violation: Violation) -> Diagnosis:
        """The clause of a violation: what the request alone shows, else the faults that explain it, else the occasion.

        A direct check has named its own clause, but an apply that raises may do so for a row that is no longer there.
        """
        if violation.clause not in (None, "PROC-EXCEPTION"):
            return Diagnosis(str(violation.clause))
        added, grown = self.alone(history, violation)
        if added is False and grown is False:
            return Diagnosis(self.row_clause(history, violation))
        explaining = self.explaining(history, FAULTS)
        if added is not grown:
            explaining = [fault for fault in explaining if fault.reads_outputs]
        if best := self.most_consistent(explaining):
            return Diagnosis(clause_of(best[0]), "; or: ".join(account(fault).rstrip(".") for fault in best) + ".")
        if violation.clause is not None:
            return Diagnosis(violation.clause)
        if added is False or grown is False:
            return Diagnosis("PROC-FUNCTION")
        return Diagnosis(self.beside_others(history, violation) or self.by_occasion(history, violation))

    def alone(self, history: History, violation: Violation) -> tuple[bool | None, bool | None]:
        """Whether a fresh processor gets the row right for the request alone: added with outputs, and grown to them.

        None where there is no such request.
        """
        request, expectation = violation.request, violation.expectation
        if request is None or expectation is None or violation.row is None:
            return None, None
        assert violation.rows is not None
        expectation = self.expected_alone(request, violation.rows, violation.pick)
        subject = self.player(replace(history, steps=(), requests={})).subject
        try:
            rows = [ways(subject, request, violation.rows, violation.pick) for ways in (run_alone, grown_alone)]
        except SoloFailure:
            return None, None
        added, grown = (self.is_right(row, violation, expectation) for row in rows)
        return added, grown

    def expected_alone(self, request: Request, rows: Palette, pick: int) -> Expectation:
        """What the row may be when the request has the batch for itself."""
        return self.oracle.expect(request, rows, pick, is_greedy(request.params))

    def is_right(self, row: torch.Tensor, violation: Violation, expectation: Expectation) -> bool:
        """Whether a row of a fresh processor is what it may be."""
        assert violation.rows is not None
        if expectation.untouched:
            return bool(row.view(torch.int32).tolist() == violation.rows.bits[violation.pick])
        return is_admitted(expectation, row.tolist())

    def row_clause(self, history: History, violation: Violation) -> str:
        """The clause of the transformation that the request alone breaks already.

        Of a row that is wrong by little others are asked for too: what is wrong by more elsewhere is no rounding.
        """
        request, rows = violation.request, violation.rows
        assert request is not None
        assert rows is not None
        if self.kind is None:
            is_idle = self.expected_alone(request, rows, violation.pick).untouched
            return "PROC-UNTOUCHED" if is_idle else "PROC-FUNCTION"
        subject = self.player(replace(history, steps=(), requests={})).subject
        try:
            found = self.blamed(subject, request, rows, violation.pick)
        except SoloFailure:
            return "PROC-EXCEPTION"
        if found in self.kind.numerics:
            blamed = self.blamed_elsewhere(subject, request, rows)
            return next((clause for clause in blamed if clause not in self.kind.numerics), found)
        return found or "PROC-UNTOUCHED"

    def blamed_elsewhere(self, subject: Subject, request: Request, rows: Palette) -> Iterator[str]:
        """The clause that each row breaks when the request is alone, where there is one and nothing is raised."""
        for pick in range(len(rows.values)):
            with suppress(SoloFailure):
                if clause := self.blamed(subject, request, rows, pick):
                    yield clause

    def blamed(self, subject: Subject, request: Request, rows: Palette, pick: int) -> str | None:
        """The clause that a row breaks when the request is alone; None where it is right."""
        assert self.kind is not None
        got = run_alone(subject, request, rows, pick).tolist()
        expectation = self.expected_alone(request, rows, pick)
        wrong = refused(expectation, got) or wrong_signs(expectation, got)
        return self.kind.blames(request, rows.values[pick], got, wrong[0]) if wrong else None

    def beside_others(self, history: History, violation: Violation) -> str | None:
        """The clause of the kind that a row breaks which is right alone."""
        request, got = violation.request, violation.got
        if self.kind is None or request is None or got is None:
            return None
        names = list(batches(history))[violation.step]
        any_greedy = any(is_greedy(history.requests[name].params) for name in names if name is not None)
        return self.kind.beside_others(request, violation.logits, got, any_greedy)

    def alone_clause(self, history: History, violation: Violation) -> str | None:
        """The clause that the request alone breaks already; None where a fresh processor gets its row right."""
        return self.row_clause(history, violation) if self.alone(history, violation) == (False, False) else None

    def explaining(self, history: History, faults: Iterable[type[Belief]]) -> list[type[Belief]]:
        """Those of the faults whose every prediction the subject fulfils over this history."""
        trial = self.trial(faults)
        player = trial.begin(replace(history, steps=()))
        try:
            for step in history.steps:
                trial.step(player, player.play(step))
        except Violation as violation:
            trial.broke(violation)
        except IllFormed:
            pass
        return [fault for fault, score in trial.scores.items() if score.hits and not score.misses]

    def most_consistent(self, faults: list[type[Belief]]) -> list[type[Belief]]:
        """Of those that explain a failure, the ones that are right about most other histories, if about enough."""
        if not faults:
            return []
        trial = self.trial(faults)
        self.hold(trial)
        return trial.winners()

    def trial(self, faults: Iterable[type[Belief]]) -> Trial:
        """A trial of these faults, in which nothing has been played."""
        return Trial(self.player, self.oracle, self.uses, {fault: Score() for fault in faults})

    def is_wrong_standing(self, history: History, violation: Violation) -> bool:
        """Whether the row is wrong too when the same batch is added in one step, so that what moved is not to blame."""
        if violation.row is None or violation.expectation is None:
            return False
        still = standing(history, violation.step)
        player = self.player(replace(still, steps=()))
        try:
            outcome = player.play(still.steps[0])
        except (Violation, IllFormed):
            return False
        return not row_is_right(outcome, violation.row, violation.expectation)

    def by_occasion(self, history: History, violation: Violation) -> str:
        """The clause of what happened to the batch, all of which a small history needs, or of the neighbours."""
        if self.is_wrong_standing(history, violation):
            return "PROC-INDEPENDENT"
        player = self.player(replace(history, steps=()))
        seen: set[str] = set()
        try:
            for step in history.steps[: violation.step]:
                outcome = player.play(step)
                seen |= set(update_occasions(outcome.update, outcome.before))
            last = to_update(history.steps[violation.step], player.requests, player.batch)
            seen |= set(update_occasions(last, player.batch))
        except Violation:
            return "PROC-FUNCTION"
        alone = "PROC-INDEPENDENT" if len(history.requests) > 1 else "PROC-FUNCTION"
        return next((clause for clause in LAST_RESORT if clause in seen), alone)


def passes(outcome: Outcome, oracle: Oracle) -> bool:
    """Whether every row of the step is right."""
    expectations = expected(outcome, oracle)
    return all(row_is_right(outcome, row, expectation) for row, expectation in enumerate(expectations))


def standing(history: History, index: int) -> History:
    """The batch of a step as one that is added at once, with the outputs it has then and shown the same logits."""
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    batch: Batch = []
    for step in history.steps[: index + 1]:
        for growth in step.growth:
            grow(requests[growth.request].output, growth)
        apply_update(batch, to_update(step, requests, batch))
    names = [None if request is None else request.name for request in batch]
    rows, chosen = shown(history, history.steps[index], index, names)
    live = [(row, name) for row, name in enumerate(names) if name is not None]
    sights = tuple(Sight(name, logits := tuple(rows.values[chosen[row]]), logits) for row, name in live)
    arrivals = {name: replace(history.requests[name], output=tuple(requests[name].output)) for _, name in live}
    step = Step(added=tuple(Added(row, name) for row, name in live), sights=sights)
    return replace(history, requests=arrivals, steps=(step,))
