"""One run of the suite: canary, histories, judgement, and the verdict with its evidence."""

from __future__ import annotations

import fnmatch
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from logitsproc.conformance.bindings import VLLM, CannotRun, Subject, one_line, refuse_abstract
from logitsproc.conformance.checks import is_admitted, judge
from logitsproc.conformance.diagnosis import Diagnosis, Doctor, Trial
from logitsproc.conformance.evidence import OBSERVED_EVERY, Evidence, Observer, witness
from logitsproc.conformance.excuses import Excuse, Excuses, Known, answers
from logitsproc.conformance.faults import FAULTS, Belief
from logitsproc.conformance.findings import Finding
from logitsproc.conformance.history import BFLOAT16, STRIDED, Arrival, Growth, History, new_request
from logitsproc.conformance.kinds import KINDS, SMALLEST_VOCAB, STAGES, Kind, Pool
from logitsproc.conformance.loading import check_loading, require_pipeline
from logitsproc.conformance.logits import palette
from logitsproc.conformance.machine import (
    BEYOND,
    LITERAL,
    PROMPTS,
    REACHABLE,
    TOKENS,
    Draw,
    Drive,
    Enough,
    Plays,
    World,
    explore,
)
from logitsproc.conformance.miniatures.canaries import CANARIES, COMPOSITES
from logitsproc.conformance.oracles import (
    Author,
    Oracle,
    ReferenceOracle,
    SoloFailure,
    SoloOracle,
    load_oracle,
    uses,
)
from logitsproc.conformance.plans import Case, Plan, lower
from logitsproc.conformance.player import Outcome, Player, Violation
from logitsproc.conformance.shrinking import shrink
from logitsproc.conformance.timeline import requests_at
from logitsproc.conformance.validation import (
    NO_FLOATS,
    check_validation,
    check_vocabulary,
    edges,
    fields_of,
    has_validation,
)
from logitsproc.conformance.watch import WATCH, TookTooLong
from logitsproc.reference.batch import IllFormed
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import is_greedy
from logitsproc.spec import Clause, clauses

CONFORMANT, VIOLATION, UNPROVEN = "conformant", "violation", "unproven"
KNOWN, STALE = "known failures", "stale known failures"
VERDICTS = (VIOLATION, STALE, UNPROVEN, KNOWN, CONFORMANT)
"""The worst first."""
DEFAULT_SEED = 0
VOCABS = (SMALLEST_VOCAB, 64)
MAX_VOCAB = 1 << 18
CANARY_HISTORIES = 100
TRIAL_HISTORIES = 60
OUT_OF_SCOPE_LIMIT = 10
ENOUGH_BEYOND = 60
JUDGED_SHARE = 0.5
PROBED_LENGTHS = (0, 1, 3, len(TOKENS))
MANY = (1, 2) * 150
NEED_OUTPUTS = ("PROC-LIVE-OUTPUTS", "PROC-QUIET")
NEED_IDS = ("PROC-PLACEHOLDER",)


@dataclass(frozen=True)
class Tier:
    """How much a run plays: histories in the world that is judged, histories in each world beyond, and a limit."""

    histories: int
    beyond: int
    seconds: float


TIERS = {"quick": Tier(400, ENOUGH_BEYOND, 18), "ci": Tier(8000, 500, 280), "deep": Tier(1_000_000, 2000, 1800)}


@dataclass(frozen=True)
class Settings:
    """What is to be run.

    `limit` is the seconds that one call of the subject may take; `seconds` overrides the tier's. `known`: failures that
    are excused while their histories still fail.
    """

    subject: Subject
    kind: Kind | None = None
    oracle: str | Author | None = None
    params: Pool | None = None
    tier: str = "quick"
    seed: int = DEFAULT_SEED
    scope: str = REACHABLE.name
    glob: str = "*"
    limit: float = 5.0
    seconds: float | None = None
    known: tuple[Known, ...] = ()
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None


@dataclass(frozen=True)
class Failure:
    """A violation with its smallest history, the clause it breaks, and the world it happened in.

    `script`: the lines that show it where no history does, or none that a processor could be played. `asked`: what a
    producer was asked at each step. `stage`: what found it: a look at the subject, or the histories of a world.
    `carries`: the other requests of the history whose params give what the row got.
    """

    clause: Clause
    history: History
    violation: Violation
    world: World
    fault: str | None
    reproduced: bool
    script: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    stage: str = ""
    carries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Beyond:
    """How a subject fares in a world beyond the one it is judged in; `complete` unless time was up too early."""

    world: World
    failure: Failure | None
    complete: bool


@dataclass(frozen=True)
class ClauseResult:
    """How a clause fared: held, broken, known, stale, not met (a SHOULD), unproven, n/a, or not judged."""

    clause: Clause
    status: str
    fired: int
    witnessed: int
    note: str = ""


@dataclass
class Report:
    """What a run found, and the evidence for it. `scope`: what the verdict extends to. `note`: what else was seen."""

    settings: Settings
    oracle: str
    verdict: str
    scope: str
    results: list[ClauseResult]
    evidence: Evidence
    failure: Failure | None = None
    beyond: list[Beyond] = field(default_factory=list)
    outside: list[Failure] = field(default_factory=list)
    refused: int = 0
    users: int = 0
    drawn: int = 0
    stopped_early: bool = False
    seconds: float = 0.0
    note: str = ""
    known: list[Excuse] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """0 conformant, but for known failures too; 1 violation, or a known failure is stale; 3 unproven."""
        return {CONFORMANT: 0, KNOWN: 0, VIOLATION: 1, STALE: 1, UNPROVEN: 3}[self.verdict]


def run(settings: Settings) -> Report:
    """Judges a subject; raises CannotRun when that is not possible."""
    chosen_clauses(settings.glob)
    with conditions(settings):
        return Run(settings).report()


@contextmanager
def conditions(settings: Settings) -> Iterator[None]:
    """Inference mode, as in an engine; the limit on calls; and one thread, with which small tensors are quickest."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with WATCH.limit(settings.limit), torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(before)


def impatience(settings: Settings) -> AbstractContextManager[None]:
    """A tenth of the limit on calls, for tries of which many may not return, and none has to."""
    return WATCH.limit(settings.limit / 10)


def chosen_clauses(glob: str) -> list[Clause]:
    """The clauses whose id matches; raises CannotRun when none does."""
    chosen = [clause for clause in clauses().values() if fnmatch.fnmatchcase(clause.id, glob)]
    if not chosen:
        raise CannotRun(f"no clause matches {glob!r}; `logitsproc spec` lists them")
    return chosen


def owed(kind: Kind | None) -> list[Clause]:
    """The clauses that a subject owes which implements the kind, or none."""
    bearers = ("processor",) if kind is None else kind.bearers
    return [clause for clause in clauses().values() if set(bearers) & set(clause.bearers)]


def speaks_of(clause: Clause, kind: Kind | None) -> bool:
    """Whether a clause is about every processor, or about the transformation of a kind."""
    if clause.chapter in ("batch", "processor"):
        return True
    if kind is None:
        return False
    return clause.chapter in (*kind.chapters, "validation") or clause.id in kind.numerics


class Run:
    """The state of one run."""

    def __init__(self, settings: Settings) -> None:
        settings = self.settings = replace(settings, subject=prepared(settings))
        self.started = time.monotonic()
        self.tier = TIERS[settings.tier]
        seconds = self.tier.seconds if settings.seconds is None else settings.seconds
        self.end = self.started + seconds
        self.deadline = self.started + seconds * JUDGED_SHARE
        self.evidence = Evidence()
        self.beyond_evidence = Evidence()
        self.outside: list[Failure] = []
        self.outside_count = 0
        self.shortfalls: dict[str, str] = {}
        self.stopped_early = False
        self.oracle = make_oracle(settings)
        pool, self.refused = accepted(settings.subject, make_pool(settings), settings.kind)
        self.vocabs = make_vocabs(settings)
        self.plain = {} if {} in pool else pool[0]
        self.taken = {repr(params): True for params in pool}
        self.user_keys = {repr(params): self.probe(params) for params in pool}
        users = [params for params in pool if self.user_keys[repr(params)]]
        others = [params for params in pool if not self.user_keys[repr(params)]]
        self.draw = self.draw_from(users, others, settings.kind)
        self.excuses = Excuses(self)

    def draw_from(self, users: Pool, others: Pool, kind: Kind | None) -> Draw:
        """What histories are drawn from."""
        if kind is None:
            return Draw(users, others, self.vocabs)
        return Draw(users, others, self.vocabs, kind.field, bfloat16=kind.bfloat16)

    def probe(self, params: dict[str, Any]) -> bool:
        """Whether these params use the subject, as the oracle sees it, of any prompt and outputs that are drawn."""
        rows, outputs = palette("dense", self.vocabs[0]), [TOKENS[:length] for length in PROBED_LENGTHS]
        requests = (new_request("A", Arrival(params, prompt)) for prompt in (Arrival().prompt, *PROMPTS))
        try:
            return any(uses(self.oracle, request, rows, outputs) for request in requests)
        except SoloFailure:
            return True

    def uses(self, request: Request) -> bool:
        """Whether a request uses the subject."""
        key = repr(request.params)
        if key not in self.user_keys:
            self.user_keys[key] = self.probe(dict(request.params))
        return self.user_keys[key]

    def report(self) -> Report:
        """Canary first, then what needs no history, then the world to be judged, then the worlds beyond it."""
        self.canary()
        failure = self.look() or self.explore(REACHABLE, self.tier.histories)
        beyond: list[Beyond] = []
        worlds = [world for world in BEYOND if not (world.literal and self.settings.subject.reachable)]
        for done, world in enumerate(worlds):
            if failure is None:
                beyond.append(self.explore_beyond(world, len(worlds) - done))
                failure = beyond[-1].failure if self.is_judged(world) else None
        results = self.results(failure, beyond)
        return Report(
            self.settings,
            self.oracle.name,
            verdict(failure, results, self.excuses.found),
            scope_of(self.settings.subject, beyond),
            results,
            self.evidence,
            failure,
            beyond,
            self.outside,
            self.refused,
            len(self.draw.users),
            len(self.draw.users) + len(self.draw.others),
            self.stopped_early,
            time.monotonic() - self.started,
            known=self.excuses.found,
        )

    def look(self) -> Failure | None:
        """What the subject refuses, what it loads, and what it does at the edges of its params."""
        try:
            for stage, look in self.looks().items():
                if (failure := look()) is not None:
                    return replace(failure, stage=stage)
        except TookTooLong:
            raise CannotRun(f"{self.settings.subject.target} did not return in time") from None
        return None

    def looks(self) -> dict[str, Callable[[], Failure | None]]:
        """What is looked at without histories that are drawn, by name and in this order."""
        kind, subject = self.settings.kind, self.settings.subject
        if kind is None:
            return {}
        looks: dict[str, Callable[[], Failure | None]] = {
            "findings": lambda: self.first_trouble(findings(subject, kind)),
            "edges": lambda: self.at_the_edges(subject, kind),
        }
        return looks | {"tour": self.tour} if kind.skipped else looks

    def first_trouble(self, found: Iterator[Finding]) -> Failure | None:
        """The first finding that breaks a MUST; the others are counted, or noted where they break a SHOULD."""
        for finding in found:
            if time.monotonic() > self.end:
                self.stopped_early = True
                return None
            clause = clauses()[finding.clause]
            self.evidence.fired[clause.id] += 1
            if finding.trouble is None:
                self.evidence.witnessed[clause.id] += 1
            elif not clause.is_must:
                self.shortfalls.setdefault(clause.id, finding.trouble)
            else:
                violation = Violation(clause.id, finding.trouble, 0)
                failure = Failure(clause, History(), violation, REACHABLE, None, True, finding.lines)
                if self.is_chosen(failure):
                    return failure
        return None

    def at_the_edges(self, subject: Subject, kind: Kind) -> Failure | None:
        """VAL-LATER: params at the edge of their domain are played for two steps, and do not raise."""
        validates = has_validation(subject)
        for arrival in [*map(Arrival, edges(kind)), *long_lived(kind)]:
            case = at_edge(arrival, kind)
            violation = self.replay(lower(case))
            if violation is None:
                self.evidence.witnessed["VAL-LATER"] += validates
            elif found := self.edge_failure(case, violation, validates):
                return found
        return None

    def tour(self) -> Failure | None:
        """Of a pipeline, whose params are many, every one is shown every kind of logits once."""
        judged = Judged(self, self.evidence)
        for params in [*self.draw.users, *self.draw.others]:
            plans = (Plan(come=(("A", False),)), *(Plan(growth=(Growth("A", (token,)),)) for token in TOKENS))
            case = Case(History({"A": Arrival(params)}, palette="mixed", kind=self.draw.kind), plans)
            judged.begin()
            try:
                player = Player(self.settings.subject, case.header)
                for step in lower(case).steps:
                    judged.step(player, player.play(step))
            except Enough:
                return None
            except Violation as violation:
                if self.counts(REACHABLE, case, violation):
                    return self.failure(REACHABLE, case, violation)
        return None

    def edge_failure(self, case: Case, violation: Violation, validates: bool) -> Failure | None:
        """The failure that params at the edge show, if it breaks a clause that counts."""
        if validates and violation.clause == "PROC-EXCEPTION":
            failure = Failure(clauses()["VAL-LATER"], lower(case), violation, REACHABLE, None, True)
        else:
            failure = self.failure(REACHABLE, case, violation)
        return failure if self.is_chosen(failure) else None

    def explore_beyond(self, world: World, left: int) -> Beyond:
        """What comes out in a world beyond the reachable one, in its share of the time when so many are left."""
        evidence = self.evidence_of(world)
        now, before = time.monotonic(), evidence.histories
        self.deadline = now + (self.end - now) / left
        failure = self.explore(world, self.tier.beyond)
        return Beyond(world, failure, failure is not None or evidence.histories - before >= ENOUGH_BEYOND)

    def canary(self) -> None:
        """A composite of the same kind must fail at once, and then a miniature, or the suite is broken."""
        kind, chance = self.settings.kind or KINDS["min_p"], random.Random(self.settings.seed)
        draw = self.draw_from(kind.users(chance), kind.others(chance), kind)
        composite, subtle = (self.canary_of(kind, named[kind.field]) for named in (COMPOSITES, CANARIES))
        play_canaries(composite, subtle, REACHABLE, draw, self.settings.seed)

    def canary_of(self, kind: Kind, factory: type) -> Canary:
        """A wrong processor of the kind, and who judges it as the subject is judged."""
        subject = kind.prepare(replace(self.settings.subject, target=f"canary:{kind.field}", factory=factory))
        oracle: Oracle = ReferenceOracle(kind) if self.settings.kind else SoloOracle(subject)
        return Canary(
            factory.__name__,
            partial(Player, subject),
            lambda player, outcome: discard(judge(player, outcome, oracle)),
        )

    def explore(self, world: World, histories: int) -> Failure | None:
        """Plays histories of a world until one breaks a clause in scope."""
        judged = Judged(self, self.evidence_of(world))
        done = 0

        def begin() -> bool:
            nonlocal done
            self.settings.progress(world.name, done, histories)
            done += 1
            return not self.is_over() and judged.begin()

        counts = partial(self.counts, world)
        drive = Drive(partial(Player, self.settings.subject), world, self.draw, judged.step, begin, counts)
        explore(drive, histories, self.settings.seed)
        if world is REACHABLE and drive.failure is None and self.settings.tier != "deep":
            self.stopped_early = time.monotonic() > self.deadline
        self.settings.progress(world.name, histories, histories)
        return None if drive.failure is None else replace(self.failure(world, *drive.failure), stage=world.name)

    def evidence_of(self, world: World) -> Evidence:
        """Where what is seen in a world is counted."""
        return self.evidence if self.is_judged(world) else self.beyond_evidence

    def is_judged(self, world: World) -> bool:
        """Whether what happens in a world decides the verdict."""
        return world is REACHABLE or self.settings.scope != REACHABLE.name

    def is_over(self) -> bool:
        """Whether time is up, or too many violations outside --clauses have been met."""
        return time.monotonic() > self.deadline or self.outside_count >= OUT_OF_SCOPE_LIMIT

    def counts(self, world: World, case: Case, violation: Violation) -> bool:
        """Whether a violation breaks a clause that --clauses names and nothing excuses; another is noted at most."""
        if self.settings.glob == "*" and not self.excuses.clauses:
            return True
        if self.excuses.covers(lower(case), violation):
            return False
        failure = self.failure(world, case, violation)
        if self.is_chosen(failure):
            return True
        self.outside_count += failure.clause.id not in self.excuses.clauses
        return False

    def is_chosen(self, failure: Failure) -> bool:
        """Whether the failure breaks a clause that --clauses names and nothing excuses; others are noted once each."""
        if failure.clause.id in self.excuses.clauses:
            return False
        if fnmatch.fnmatchcase(failure.clause.id, self.settings.glob):
            return True
        if failure.clause not in [noted.clause for noted in self.outside]:
            self.outside.append(failure)
        return False

    def failure(self, world: World, case: Case, violation: Violation) -> Failure:
        """The violation made small and named."""
        if violation.hangs:
            return Failure(clauses()["PROC-EXCEPTION"], lower(case), violation, world, None, True)
        with impatience(self.settings):
            case = shrink(case, partial(self.failing, violation=violation), self.vocabs[0], self.plain)
        history = lower(case)
        again = self.replay(history)
        if again is None:
            return Failure(clauses()["PROC-FUNCTION"], history, violation, world, None, False)
        return self.named(replace(history, steps=history.steps[: again.step + 1]), again, world)

    def named(self, history: History, violation: Violation, world: World) -> Failure:
        """The failure with its clause."""
        clause = self.clause_of_circumstance(history, violation, world)
        diagnosis = Diagnosis(clause) if clause else self.diagnose(history, violation)
        carries = carried(history, violation, self.oracle)
        return Failure(clauses()[diagnosis.clause], history, violation, world, diagnosis.fault, True, carries=carries)

    def clause_of_circumstance(self, history: History, violation: Violation, world: World) -> str | None:
        """The clause of that without which the history does not fail: an option, or what sets the world apart."""
        if self.needs(history, BFLOAT16):
            return "PIPE-FLOAT"
        if self.needs(history, STRIDED) and violation.expectation is not None and violation.expectation.untouched:
            return "PROC-UNTOUCHED"
        return world.clause if world.clause is not None and self.replay(ordinary(history)) is None else None

    def needs(self, history: History, option: str) -> bool:
        """Whether the history fails with the option only."""
        return option in history.options and self.replay(replace(history, options=history.options - {option})) is None

    def diagnose(self, history: History, violation: Violation) -> Diagnosis:
        """Which clause it is."""
        return self.doctor().diagnose(history, violation)

    def doctor(self) -> Doctor:
        """Who finds that out."""
        player = partial(Player, self.settings.subject)
        return Doctor(player, self.oracle, self.uses, self.settings.kind, self.hold)

    def failing(self, case: Case, violation: Violation) -> bool:
        """Whether the case fails, in the same way and not as is known; not, when time is up, so that shrinking ends."""
        if time.monotonic() > self.end or not all(self.takes(a.params) for a in case.header.requests.values()):
            return False
        history = lower(case)
        found = self.replay(history)
        return found is not None and same_kind(found, violation) and not self.excuses.covers(history, found)

    def takes(self, params: dict[str, Any]) -> bool:
        """Whether a host, and the subject, take these params."""
        key = repr(params)
        if key not in self.taken:
            try:
                accepted(self.settings.subject, [params], self.settings.kind)
                self.taken[key] = True
            except CannotRun:
                self.taken[key] = False
        return self.taken[key]

    def replay(self, history: History) -> Violation | None:
        """The violation that a history shows, if any."""
        try:
            player = Player(self.settings.subject, replace(history, steps=()))
            for step in history.steps:
                judge(player, player.play(step), self.oracle)
        except Violation as violation:
            return violation
        except IllFormed:
            return None
        return None

    def hold(self, trial: Trial) -> None:
        """Plays histories to tell faults apart by, until that is settled or time is up; nothing is judged."""

        def step(player: Player, outcome: Outcome) -> None:
            if time.monotonic() > self.end:
                raise Enough
            trial.step(player, outcome)

        drive = Drive(
            trial.begin,
            REACHABLE if self.settings.subject.reachable else LITERAL,
            self.draw,
            step,
            begin=lambda: not trial.is_settled() and time.monotonic() < self.end,
            counts=trial.counts,
        )
        explore(drive, TRIAL_HISTORIES, self.settings.seed + 1)

    def results(self, failure: Failure | None, beyond: list[Beyond]) -> list[ClauseResult]:
        """How every clause that a processor owes fared."""
        return [self.result(clause, failure, beyond) for clause in owed(self.settings.kind)]

    def result(self, clause: Clause, failure: Failure | None, beyond: list[Beyond]) -> ClauseResult:
        """How one clause fared."""
        gathered = (self.evidence,) if clause.is_must else (self.evidence, self.beyond_evidence)
        witnessed = sum(evidence.witnessed[clause.id] for evidence in gathered)
        fired = max(witnessed, sum(evidence.fired[clause.id] for evidence in gathered))
        status, note = "held", ""
        if failure is not None and failure.clause.id == clause.id:
            status = "broken"
        elif excuse := self.excuses.of(clause):
            status, note = ("stale", excuse.stale) if excuse.stale else ("known", excuse.known.reason)
        elif not fnmatch.fnmatchcase(clause.id, self.settings.glob):
            status, note = "not judged", "outside --clauses"
        elif reason := self.not_applicable(clause):
            status, note = "n/a", reason
        elif self.settings.kind is None and clause.id in NEED_OUTPUTS + NEED_IDS and not witnessed:
            status, note = "not judged", "no row was seen to depend on outputs"
        elif not clause.is_must and (reason := self.shortfall(clause, beyond)):
            status, note = "not met", reason
        elif not witnessed:
            status = "unproven" if clause.is_must and failure is None else "not judged"
            note = f"the run ended at {failure.clause.id}" if failure is not None else ""
        return ClauseResult(clause, status, fired, witnessed, note)

    def shortfall(self, clause: Clause, beyond: list[Beyond]) -> str:
        """Where a clause that says SHOULD is not met, or nothing."""
        if clause.id in self.shortfalls:
            return self.shortfalls[clause.id]
        if clause.id == "PROC-IDLE" and self.evidence.idle_copies:
            return f"another object was returned {self.evidence.idle_copies:,} times"
        worlds = [seen.world.says for seen in beyond if seen.failure and seen.failure.clause.id == clause.id]
        return f"on {worlds[0]}" if worlds else ""

    def not_applicable(self, clause: Clause) -> str:
        """Why a clause does not speak about this subject, or nothing."""
        kind = self.settings.kind
        if not speaks_of(clause, kind):
            return "another transformation"
        if clause.chapter == "validation" and kind is not None:
            return validation_not_applicable(clause, kind, self.settings.subject)
        if clause.id == "PROC-ARGMAX" and not self.claims_invariance():
            return "claims no invariance"
        if kind is not None and clause.id in NEED_IDS and not kind.reads_ids:
            return "ids play no part"
        if kind is not None and clause.id in NEED_OUTPUTS and not kind.reads_outputs:
            return "outputs play no part"
        return ""

    def claims_invariance(self) -> bool:
        """What a fresh processor answers."""
        return Player(self.settings.subject, History(vocab=self.vocabs[0])).invariant


@dataclass(frozen=True)
class Canary:
    """A subject that is known to be wrong: its name, what plays it, and how each of its steps is judged."""

    name: str
    player: Callable[[History], Plays]
    judge: Callable[[Any, Any], None]


def play_canaries(composite: Canary, subtle: Canary, world: World, draw: Draw, seed: int) -> None:
    """Raises CannotRun unless the composite fails in the first history, and the subtle one in one of those after it."""
    histories, is_caught = 0, False

    def begin() -> bool:
        nonlocal histories
        histories += 1
        return histories == 1 or is_caught

    def counts(case: Case, violation: Violation) -> bool:
        nonlocal is_caught
        is_caught = True
        return histories > 1

    def playing() -> Canary:
        return composite if histories == 1 else subtle

    drive = Drive(
        lambda header: playing().player(header),
        world,
        draw,
        lambda player, outcome: playing().judge(player, outcome),
        begin,
        counts,
    )
    explore(drive, 1 + CANARY_HISTORIES, seed)
    if not is_caught:
        raise CannotRun(f"suite broken: the composite {composite.name} passed")
    if drive.failure is None:
        raise CannotRun(f"suite broken: the canary {subtle.name} passed")


class Judged:
    """Judges the steps of histories one after the other, and gathers evidence; every few histories are observed."""

    def __init__(self, run: Run, evidence: Evidence) -> None:
        self.run = run
        self.evidence = evidence
        self.observer: Observer | None = None
        self.known: Observer | None = None

    def begin(self) -> bool:
        """A new history."""
        self.observer = None
        self.known = self.run.excuses.observer()
        if self.evidence.histories % OBSERVED_EVERY == 0:
            kind = self.run.settings.kind
            faults: list[type[Belief]] = [
                fault for fault in FAULTS if kind is None or kind.reads_outputs or not fault.reads_outputs
            ]
            self.observer = Observer(faults, self.run.oracle, self.run.uses)
            self.evidence.observed += 1
        self.evidence.histories += 1
        return True

    def step(self, player: Player, outcome: Outcome) -> None:
        """One step; raises Violation."""
        if self.run.is_over():
            raise Enough
        expectations = self.judged(player, outcome)
        if expectations is not None:
            shown = self.evidence.step(player, outcome, expectations, self.run.settings.kind)
            if self.observer is not None:
                witness(self.observer, outcome, self.evidence, shown)
        elif self.observer is not None:
            pass_over(self.observer, outcome)

    def judged(self, player: Player, outcome: Outcome) -> list[Expectation] | None:
        """What the rows were to be; None where they are wrong as a fault that is known says. Raises Violation."""
        if self.known is None:
            return judge(player, outcome, self.run.oracle)
        self.known.follow(outcome)
        try:
            return judge(player, outcome, self.run.oracle)
        except Violation as violation:
            if violation.clause is not None or not answers(self.known, outcome):
                raise
            return None
        finally:
            self.known.applied(outcome)


def pass_over(observer: Observer, outcome: Outcome) -> None:
    """Shows the faults a step, and judges nothing by it."""
    observer.follow(outcome)
    observer.applied(outcome)


def same_kind(found: Violation, violation: Violation) -> bool:
    """Whether two violations break the same clause, and with the same exception if it is one."""
    same_exception = found.message.partition(":")[0] == violation.message.partition(":")[0]
    return found.clause == violation.clause and (found.clause != "PROC-EXCEPTION" or same_exception)


def carried(history: History, violation: Violation, oracle: Oracle) -> tuple[str, ...]:
    """The other requests, with the outputs that they have then, whose params give what a wrong row got."""
    if violation.rows is None or violation.got is None:
        return ()
    others = requests_at(history, violation.step)
    if violation.request is not None:
        others.pop(violation.request.name)
    found = []
    for name, request in others.items():
        with suppress(SoloFailure, CannotRun):
            expectation = oracle.expect(request, violation.rows, violation.pick, is_greedy(request.params))
            if not expectation.untouched and is_admitted(expectation, violation.got):
                found.append(name)
    return tuple(found)


def ordinary(history: History) -> History:
    """The history with prompts, without shrinking, and without removals of rows that are added in the same step."""
    requests = {
        name: arrival if arrival.prompt is not None else replace(arrival, prompt=Arrival().prompt)
        for name, arrival in history.requests.items()
    }
    steps = []
    for step in history.steps:
        added = {add.row for add in step.added}
        growth = tuple(replace(growth, dropped=0) for growth in step.growth)
        removed = tuple(row for row in step.removed if row not in added)
        steps.append(replace(step, growth=growth, removed=removed))
    return replace(history, requests=requests, steps=tuple(steps))


def verdict(failure: Failure | None, results: list[ClauseResult], known: Sequence[Excuse] = ()) -> str:
    """Violation before stale before unproven before known before conformant."""
    if failure is not None:
        return VIOLATION
    if any(excuse.stale for excuse in known):
        return STALE
    statuses = {result.status for result in results if result.clause.is_must}
    if "held" not in statuses or "unproven" in statuses:
        return UNPROVEN
    return KNOWN if known else CONFORMANT


def scope_of(subject: Subject, beyond: list[Beyond]) -> str:
    """What the verdict extends to: every update, or reachable ones only."""
    if subject.reachable or not all(seen.complete and seen.failure is None for seen in beyond):
        return "reachable updates"
    return "every well-formed update"


def prepared(settings: Settings) -> Subject:
    """The subject that is run; raises CannotRun when no instance of it can be made."""
    subject = settings.kind.prepare(settings.subject) if settings.kind else settings.subject
    refuse_abstract(subject.target, subject.concrete())
    return subject


def findings(subject: Subject, kind: Kind) -> Iterator[Finding]:
    """What is found without a history."""
    yield from check_validation(subject, kind)
    if "host" in kind.bearers and subject.binding.name == VLLM:
        yield from check_vocabulary(subject.binding)
    if "loader" in kind.bearers:
        require_pipeline(subject)
        yield from check_loading(subject)


def long_lived(kind: Kind) -> list[Arrival]:
    """Requests that have said a thing more often than small integers can count, where outputs play a part."""
    users = kind.users(random.Random(DEFAULT_SEED)) if kind.reads_outputs else []
    return [Arrival(params, MANY, MANY) for params in users]


def at_edge(arrival: Arrival, kind: Kind) -> Case:
    """One request, for two steps."""
    plans = (Plan(come=(("A", False),)), Plan(growth=(Growth("A", (TOKENS[0],)),)))
    return Case(History({"A": arrival}, kind=kind.field), plans)


def validation_not_applicable(clause: Clause, kind: Kind, subject: Subject) -> str:
    """Why a clause of the validation chapter does not speak about this subject, or nothing."""
    if clause.id == "VAL-VOCABULARY":
        return "" if subject.binding.name == VLLM else "the suite is the host"
    if not fields_of(kind):
        return "no field of its own"
    if not has_validation(subject):
        return "has no validate_params"
    return "" if clause.id != "VAL-FLOAT" or set(fields_of(kind)) & set(NO_FLOATS) else "another transformation"


def discard(_: object) -> None:
    """Drops a value."""


def make_oracle(settings: Settings) -> Oracle:
    """The author's oracle, else the reference of the kind, else the solo law."""
    if settings.oracle is not None:
        return load_oracle(settings.oracle, settings.subject)
    if settings.kind is not None:
        return ReferenceOracle(settings.kind)
    return SoloOracle(settings.subject)


def make_pool(settings: Settings) -> Pool:
    """The params that requests draw from: the author's and none, or the kind's, or a mix of all stages'."""
    if settings.params is not None:
        return [*settings.params, {}] if {} not in settings.params else list(settings.params)
    chance = random.Random(settings.seed)
    kinds = [settings.kind] if settings.kind else STAGES
    pool = [params for kind in kinds for params in (*kind.users(chance), *kind.others(chance))]
    return [params for place, params in enumerate(pool) if params not in pool[:place]]


def accepted(subject: Subject, pool: Pool, kind: Kind | None) -> tuple[Pool, int]:
    """The params that validate_params lets through, and how many it refuses; raises CannotRun if none is left.

    For a kind, whose domains are known, an exception that refuses nothing is looked at later.
    """
    validate = getattr(subject.factory, "validate_params", None)
    kept = []
    for params in pool:
        made = subject.binding.make_params(dict(params))
        try:
            if validate is not None:
                WATCH.call(validate, made)
        except subject.binding.refusals:
            continue
        except TookTooLong:
            raise CannotRun(f"{subject.target}.validate_params did not return in time") from None
        except (Exception, SystemExit) as error:
            if kind is None:
                raise CannotRun(f"{subject.target}.validate_params({params}) raised {one_line(error)}") from error
        kept.append(params)
    if not kept:
        raise CannotRun(f"{subject.target}.validate_params refuses all {len(pool)} params; give others with --params")
    return kept, len(pool) - len(kept)


def make_vocabs(settings: Settings) -> tuple[int, ...]:
    """Vocabularies that hold every token id of the author's params; raises CannotRun when that is too many."""
    largest = max((largest_id(params) for params in settings.params or []), default=0)
    if largest >= MAX_VOCAB:
        raise CannotRun(f"the params name token {largest}; the suite plays vocabularies up to {MAX_VOCAB}")
    return VOCABS if largest < VOCABS[0] else tuple(sorted({max(largest + 1, size) for size in VOCABS}))


def largest_id(params: dict[str, Any]) -> int:
    """The largest number that may be a token id."""
    fields = (
        "logit_bias",
        "stop_token_ids",
        "allowed_token_ids",
        "bad_words_token_ids",
        "extra_args",
        "eos_token_id",
    )
    return max((number for name in fields for number in integers(params.get(name))), default=0)


def integers(value: Any) -> Iterator[int]:
    """Every integer in a JSON value, keys included."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from integers(key)
            yield from integers(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from integers(item)
