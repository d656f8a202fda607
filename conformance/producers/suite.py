"""One run of the suite on a producer: canary, schedules, judgement, and the report."""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from logitsproc.conformance.bindings import (
    AUTO,
    VLLM,
    CannotRun,
    Subject,
    derives_from_vllm,
    describe,
    plain_binding,
    refuse_abstract,
    resolve,
    vllm_binding,
)
from logitsproc.conformance.evidence import OBSERVED_EVERY, Evidence
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.machine import SCHEDULES, Draw, Drive, Enough, World, explore
from logitsproc.conformance.miniatures.canaries import BreaksEveryUpdate
from logitsproc.conformance.miniatures.producers import MINIATURES, ForgetsAMove
from logitsproc.conformance.plans import Case, Lowering
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers.checks import STYLE, Emission, breaks, troubles
from logitsproc.conformance.producers.player import METHODS, SAME_ID, ProducerPlayer
from logitsproc.conformance.producers.reference import Elided
from logitsproc.conformance.producers.script import as_history, as_script, asked
from logitsproc.conformance.shrinking import shrink
from logitsproc.conformance.suite import (
    TIERS,
    VOCABS,
    Beyond,
    Canary,
    ClauseResult,
    Failure,
    Report,
    Settings,
    chosen_clauses,
    conditions,
    discard,
    impatience,
    make_pool,
    play_canaries,
    verdict,
)
from logitsproc.reference.batch import UNIDIRECTIONAL, IllFormed
from logitsproc.reference.request import Request
from logitsproc.spec import Clause, clauses

ORACLE = "the list law"
SCOPE = "every schedule"
SHRINKING_SECONDS = 10.0
PLAYED_SHARE = 0.75
"""Of the time there is; the rest is for making failures small."""
MIXES: tuple[frozenset[str], ...] = (frozenset(), frozenset({SAME_ID}))


def load_producer(target: str | Callable[..., object], binding: str = AUTO) -> Subject:
    """The producer a target names: `module:Class`, or the class itself; a class that derives from vLLM's, or has HOST =
    "vllm", gets vLLM's params. Raises CannotRun with one line when there is none."""
    name, factory = (target, resolve(target)) if isinstance(target, str) else (describe(target), target)
    if not isinstance(factory, type):
        raise CannotRun(f"{name} is not a class")
    for method in METHODS:
        if not callable(getattr(factory, method, None)):
            raise CannotRun(f"{name} is not a producer: it has no {method}()")
    refuse_abstract(name, factory)
    wants_vllm = binding == VLLM or (binding == AUTO and derives_from_vllm(factory))
    return Subject(name, factory, vllm_binding() if wants_vllm else plain_binding())


def owed() -> list[Clause]:
    """The clauses that a producer owes."""
    return [clause for clause in clauses().values() if "producer" in clause.bearers]


def run_producer(settings: Settings) -> Report:
    """Judges a producer; raises CannotRun when that is not possible."""
    if not any(clause in owed() for clause in chosen_clauses(settings.glob)):
        raise CannotRun(f"no clause of a producer's matches {settings.glob!r}; they are PROD-*")
    with conditions(settings):
        return ProducerRun(settings).report()


@dataclass
class Trace:
    """One play of a case: what was played, and the first violation, if any."""

    player: ProducerPlayer
    violation: Violation | None = None


@dataclass
class ProducerRun:
    """The state of one run."""

    settings: Settings
    evidence: Evidence = field(default_factory=Evidence)
    dialects: Counter[str] = field(default_factory=Counter)
    noticed: dict[str, str] = field(default_factory=dict)
    shortfalls: dict[str, tuple[Case, str]] = field(default_factory=dict)
    outside: list[Failure] = field(default_factory=list)
    stopped_early: bool = False
    observer: list[Shadow] = field(default_factory=list)

    def __post_init__(self) -> None:
        tier = TIERS[self.settings.tier]
        self.histories = tier.histories
        self.started = time.monotonic()
        seconds = tier.seconds if self.settings.seconds is None else self.settings.seconds
        self.end, self.deadline = self.started + seconds, self.started + seconds * PLAYED_SHARE
        pool = make_pool(self.settings)
        self.plain = {} if {} in pool else pool[0]
        self.draw = Draw(pool, [self.plain], VOCABS, mixes=MIXES)

    def report(self) -> Report:
        """Canary first, then schedules, then how every clause fared."""
        self.canary()
        failure = self.explore()
        beyond = [] if failure else [self.shortfall(clause) for clause in self.shortfalls]
        results = [self.result(clause, failure) for clause in owed()]
        return Report(
            self.settings,
            ORACLE,
            verdict(failure, results),
            SCOPE,
            results,
            self.evidence,
            failure,
            beyond,
            self.outside,
            stopped_early=self.stopped_early,
            seconds=time.monotonic() - self.started,
            note=self.dialect(),
        )

    def dialect(self) -> str:
        """Which dialect the producer speaks, as far as it showed."""
        if not self.dialects:
            return ""
        return f"speaks the {' and the '.join(sorted(self.dialects))} dialect"

    def canary(self) -> None:
        """A composite must fail at once, and then a miniature, or the suite is broken."""
        composite, subtle = map(canary_of, (BreaksEveryUpdate, ForgetsAMove))
        play_canaries(composite, subtle, SCHEDULES, self.draw, self.settings.seed)

    def explore(self) -> Failure | None:
        """Plays schedules until one breaks a clause in scope."""
        drive = Drive(
            partial(ProducerPlayer, self.settings.subject),
            SCHEDULES,
            self.draw,
            self.judge,
            self.begin,
            self.counts,
            self.finish,
        )
        explore(drive, self.histories, self.settings.seed)
        self.stopped_early = drive.failure is None and time.monotonic() > self.deadline
        return None if drive.failure is None else self.failure(*drive.failure)

    def begin(self) -> bool:
        """A new history, if there is time; every few are observed for witnesses."""
        if time.monotonic() > self.deadline:
            return False
        self.settings.progress(SCHEDULES.name, self.evidence.histories, self.histories)
        observed = self.evidence.histories % OBSERVED_EVERY == 0
        self.observer = [Shadow(miniature) for miniature in MINIATURES] if observed else []
        self.evidence.observed += observed
        self.evidence.histories += 1
        self.noticed.clear()
        return True

    def judge(self, player: ProducerPlayer, emission: Emission) -> None:
        """One step; raises Violation for a clause that says MUST, and notes those that say SHOULD."""
        if time.monotonic() > self.deadline:
            raise Enough
        self.noticed |= dict(judged(player, emission))
        self.evidence.steps += 1
        for clause in fired(emission):
            self.evidence.fired[clause] += 1
        self.dialects.update(spoken(emission))
        for shadow in self.observer:
            self.evidence.witnessed[shadow.clause] += shadow.shows(player)

    def finish(self, case: Case) -> None:
        """The history is over; the first that fell short of a clause is kept."""
        for clause, trouble in self.noticed.items():
            if fnmatch.fnmatchcase(clause, self.settings.glob):
                self.shortfalls.setdefault(clause, (case, trouble))

    def counts(self, case: Case, violation: Violation) -> bool:
        """Whether a violation breaks a clause that --clauses names; the first of each other clause is noted."""
        if fnmatch.fnmatchcase(str(violation.clause), self.settings.glob):
            return True
        if violation.clause not in [failure.clause.id for failure in self.outside]:
            self.outside.append(self.failure(case, violation))
        return False

    def shortfall(self, clause: str) -> Beyond:
        """A clause that says SHOULD and is not met, with its smallest history."""
        case, trouble = self.shortfalls[clause]
        failure = self.failure(case, Violation(clause, trouble, 0))
        return Beyond(World(clause, "what a producer should do", clause), failure, True)

    def failure(self, case: Case, violation: Violation) -> Failure:
        """The violation made small."""
        clause = str(violation.clause)
        until = min(time.monotonic() + SHRINKING_SECONDS, self.end)
        if not violation.hangs:
            with impatience(self.settings):
                case = shrink(
                    case, lambda other: time.monotonic() < until and self.shows(other, clause), VOCABS[0], self.plain
                )
        trace = self.trace(case, clause)
        found = trace.violation or violation
        played, header = trace.player.record, replace(case.header, options=frozenset())
        return Failure(
            clauses()[clause],
            as_history(header, played),
            found,
            SCHEDULES,
            None,
            trace.violation is not None,
            tuple(as_script(self.settings.subject, trace.player)),
            tuple(map(asked, played)),
            SCHEDULES.name,
        )

    def shows(self, case: Case, clause: str) -> bool:
        """Whether a case breaks the clause."""
        return self.trace(case, clause).violation is not None

    def trace(self, case: Case, clause: str) -> Trace:
        """Plays a case up to the step that breaks the clause; another violation before it ends the play."""
        trace = Trace(ProducerPlayer(self.settings.subject, case.header))
        player, lowering = trace.player, Lowering(case.dialect)
        lowering.requests = player.requests
        for item in case.items:
            lowering.batch = list(player.batch)
            step = lowering.lower(item)
            try:
                emission = player.play(step) if step is not None else None
            except Violation as violation:
                trace.violation = violation if violation.clause == clause else None
                return trace
            except IllFormed:
                return trace
            if emission is None:
                continue
            if trouble := breaks(emission, clause):
                trace.violation = Violation(clause, trouble, player.count - 1)
            if trouble or not set(dict(troubles(emission))) <= set(STYLE):
                return trace
        return trace

    def result(self, clause: Clause, failure: Failure | None) -> ClauseResult:
        """How one clause fared."""
        witnessed = self.evidence.witnessed[clause.id]
        times = max(witnessed, self.evidence.fired[clause.id])
        status, note = "held", ""
        if failure is not None and failure.clause.id == clause.id:
            status = "broken"
        elif not fnmatch.fnmatchcase(clause.id, self.settings.glob):
            status, note = "not judged", "outside --clauses"
        elif clause.id in self.shortfalls:
            status, note = "not met", self.shortfalls[clause.id][1]
        elif not witnessed:
            status = "unproven" if clause.is_must and failure is None else "not judged"
            note = f"the run ended at {failure.clause.id}" if failure is not None else ""
        return ClauseResult(clause, status, times, witnessed, note)


def canary_of(factory: type[Elided]) -> Canary:
    """A wrong producer, and who judges it as the subject is judged."""
    return Canary(
        factory.__name__,
        partial(ProducerPlayer, Subject("canary", factory, plain_binding())),
        lambda player, emission: discard(judged(player, emission)),
    )


class Shadow:
    """A miniature beside the subject: whether it would have broken its clause at a step."""

    def __init__(self, miniature: type[Elided]) -> None:
        self.clause = clause_of(miniature)
        self.subject = Subject(miniature.__name__, miniature, plain_binding())
        self.player: ProducerPlayer | None = None

    def shows(self, other: ProducerPlayer) -> bool:
        """Whether it breaks its clause at the last step that the other played, from the same rows."""
        if self.player is None:
            self.player = ProducerPlayer(self.subject, replace(other.header, requests={}))
        player, played = self.player, other.record[-1]
        for name in other.requests:
            if name not in player.requests:
                player.arrive(name, other.arrivals[name])
        before = [request.name for request in played.before if request is not None]
        player.batch = [player.requests[name] for name in before]
        producer = player.producer
        producer.batch = [
            Request(player.ids[name], player.params[name], player.requests[name].prompt, player.live[name])
            for name in before
        ]
        try:
            return breaks(player.play(played.step), self.clause) is not None
        except Violation as violation:
            return violation.clause == self.clause


def judged(player: ProducerPlayer, emission: Emission) -> list[tuple[str, str]]:
    """The clauses that say SHOULD and are not met; raises Violation for the first of the others that is broken."""
    found = troubles(emission)
    if found and found[0][0] not in STYLE:
        raise Violation(*found[0], player.count - 1)
    return found


def fired(emission: Emission) -> list[str]:
    """The clauses that speak of a step."""
    decision, update = emission.decision, emission.update
    speaking = ["PROD-NONE", "PROD-EXCEPTION", "PROD-UNCHANGED"]
    if update is not None:
        speaking += ["PROD-RANGE", "PROD-DISJOINT", "PROD-CONTIGUOUS", "PROD-SIZE", "PROD-REPLAY"]
    if decision.vacated or decision.arrivals:
        speaking += ["PROD-ROWS", "PROD-ELIDE", "PROD-CONDENSE"]
    if decision.arrivals:
        speaking += ["PROD-LIVE", "PROD-PARAMS", "PROD-REFILL"]
    return speaking


def spoken(emission: Emission) -> list[str]:
    """The dialect in which the update lists, or leaves out, a row that a one-way move filled."""
    if emission.update is None:
        return []
    filled = {to for _, to, how in emission.update.moved if how == UNIDIRECTIONAL} & set(emission.decision.vacated)
    filled -= {row for row, _ in emission.update.added}
    return ["explicit" if row in emission.update.removed else "elided" for row in filled]
