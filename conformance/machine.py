"""The stateful machine that makes histories: few rules, small integers, every rule one engine step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.stateful import (
    Rule,
    RuleBasedStateMachine,
    RuleStrategy,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from logitsproc.conformance.history import BFLOAT16, SHARED, STRIDED, WARM_UP, Added, Arrival, Growth, History, Step
from logitsproc.conformance.kinds import Pool
from logitsproc.conformance.logits import ROWS
from logitsproc.conformance.plans import Case, Lowering, Plan, name_of
from logitsproc.conformance.player import Violation
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Batch
from logitsproc.reference.producer import ELIDED, EXPLICIT
from logitsproc.reference.request import Request

T = TypeVar("T")
BACKEND = "logitsproc"
MAX_ROWS = 4
SUBSETS = 1 << MAX_ROWS
CHAINS = 3 * MAX_ROWS * (MAX_ROWS - 1) ** 3
WIDE_ROWS = 12
ONE_IN = 8
TOKENS = (1, 2, 1, 2, 3, 1, 2, 5, 5, 0)
"""Output tokens come from this cycle, in which tokens and pairs of tokens come back."""
PROMPTS = ((5, 1, 3), (3,), (4, 0, 4), (0, 6, 3, 0, 1) * 4)
STEPS = 30
CHANCES = 16
"""How many chances, evenly spread, a rule can have to be kept in a history."""
PALETTE_MIX = ("dense", "dense", "ties", "mixed")
OPTION_MIX: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({SHARED}),
    frozenset({STRIDED}),
    frozenset({WARM_UP}),
    frozenset({SHARED, STRIDED, WARM_UP}),
)
PICKS = 8
"""How many of a pool's params one history draws from."""


@dataclass(frozen=True)
class World:
    """Which histories there are. `says` completes "on ..."; the flags open what the engine's algorithm does not emit.

    `clause` is the one that speaks about what the flags open. `prompts` are those that requests have in turn.
    """

    name: str
    says: str
    clause: str | None = None
    literal: bool = False
    overlap: bool = False
    shrink: bool = False
    prompts: tuple[tuple[int, ...] | None, ...] = PROMPTS


REACHABLE = World("reachable", "reachable updates")
LITERAL = World("literal", "every well-formed update without overlap", literal=True)
OVERLAP = World(
    "overlap", "updates with overlap (an index removed and added)", "UPD-OVERLAP", literal=True, overlap=True
)
SHRINK = World("shrink", "output lists that shrink", "PROC-SHRINK", shrink=True)
NO_PROMPT = World("no-prompt", "requests without prompt ids", "PROC-PROMPT-NONE", prompts=(None,))
SCHEDULES = World("schedules", "schedules of an engine", prompts=(*PROMPTS, None))
BEYOND = (LITERAL, OVERLAP, SHRINK, NO_PROMPT)


def world_of(history: History) -> World:
    """The world that a history is of."""
    if any(arrival.prompt is None for arrival in history.requests.values()):
        return NO_PROMPT
    if any(growth.dropped for step in history.steps for growth in step.growth):
        return SHRINK
    if any(set(step.removed) & {add.row for add in step.added} for step in history.steps):
        return OVERLAP
    return REACHABLE


@dataclass(frozen=True)
class Draw:
    """What the machine draws from: params that use the subject and params that do not, and vocabularies.

    `wide`: whether some histories have a batch of up to WIDE_ROWS, and not of MAX_ROWS. `bfloat16`: whether some have
    logits of that dtype. `mixes`: the options that histories have in turn.
    """

    users: Pool
    others: Pool
    vocabs: tuple[int, ...]
    kind: str | None = None
    wide: bool = True
    bfloat16: bool = False
    mixes: tuple[frozenset[str], ...] = OPTION_MIX

    def options(self, mix: int) -> frozenset[str]:
        """The options of a history."""
        return self.mixes[mix % len(self.mixes)] | (
            {BFLOAT16} if self.bfloat16 and mix == len(OPTION_MIX) - 1 else set()
        )

    def params(self, pick: int, turn: int) -> dict[str, Any]:
        """The params of a request, of a user and of another one alike often; a history's turn has its own few."""
        pool = (self.users if pick % 2 else self.others) or self.users or self.others
        return pool[(pick // 2 + (turn * PICKS if len(pool) > PICKS else 0)) % len(pool)]


class Plays(Protocol):
    """What plays a history, step by step: the batch as it stands, and the requests by name."""

    batch: Batch
    requests: dict[str, Request]

    def arrive(self, name: str, arrival: Arrival) -> None:
        """Makes a request known."""

    def play(self, step: Step) -> Any:
        """Plays one step and gives what came of it; raises Violation."""


@dataclass
class Drive:
    """One run of the machine: what it plays, how each step is judged, and the first failure it met.

    `player` makes the player of a history from its header, `judge` gets the player and what came of a step. `begin`
    says whether there is to be another history, `counts` whether a violation ends the run, `finish` gets every history
    when it is over.
    """

    player: Callable[[History], Plays]
    world: World
    draw: Draw
    judge: Callable[[Any, Any], None]
    begin: Callable[[], bool] = lambda: True
    counts: Callable[[Case, Violation], bool] = lambda case, violation: True
    finish: Callable[[Case], None] = lambda case: None
    failure: tuple[Case, Violation] | None = None


@dataclass
class Session:
    """One history in the making."""

    header: History
    dialect: str
    player: Plays
    lowering: Lowering
    late: bool
    capacity: int
    items: list[Plan | Step] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    @property
    def case(self) -> Case:
        """The history so far."""
        return Case(self.header, tuple(self.items), self.dialect)

    @property
    def live(self) -> list[str]:
        """The requests of the batch, by row, without holes."""
        return [request.name for request in self.player.batch if request is not None]


def digits(code: int, *bases: int) -> list[int]:
    """The code as one digit a base, lowest first.

    >>> digits(7, 2, 3, 4)
    [1, 0, 1]
    """
    found = []
    for base in bases:
        code, digit = divmod(code, base)
        found.append(digit)
    return found


def subset(names: Iterable[str], mask: int) -> tuple[str, ...]:
    """The names whose bit is set."""
    return tuple(name for place, name in enumerate(names) if mask >> place & 1)


def swap_chain(code: int, rows: int) -> tuple[tuple[int, int], ...]:
    """One to three swaps, each sharing a row with the one before."""
    if rows < 2:
        return ()
    length, at, *hops = digits(code, 3, rows, *[rows - 1] * 3)
    chain = []
    for hop in hops[: length + 1]:
        to = (at + 1 + hop) % rows
        chain.append((at, to))
        at = to
    return tuple(chain)


class Independent(HypothesisProvider):
    """Hypothesis' own choices as another backend, so that every history is drawn anew and from the seed alone.

    Its usual engine makes most histories by mutating the last one, and draws integers, those with weights too, from the
    constants of whatever modules happen to be loaded.
    """

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """A uniform integer between two bounds, whatever the weights; without both, what Hypothesis draws."""
        if self._random is None or min_value is None or max_value is None:
            return super().draw_integer(min_value, max_value, weights=weights, shrink_towards=shrink_towards)
        return self._random.randint(min_value, max_value)


AVAILABLE_PROVIDERS[BACKEND] = f"{Independent.__module__}.{Independent.__name__}"


class Swarm(RuleStrategy):
    """Hypothesis' choice of a rule, with fewer draws, of which each costs about as much as the model's step.

    As there, most histories lack some rules, each history with a chance of its own; here which they are is one number,
    drawn with the first rule, and not one draw and more for every rule that is tried.
    """

    kept: Sequence[Rule] = ()

    def do_draw(self, data: ConjectureData) -> tuple[Rule, dict[str, Any]]:
        """A rule that is kept and may run now, or one that may run, and its argument."""
        if not self.kept:
            self.kept = some_of(self.rules, data.draw_integer(0, CHANCES ** (len(self.rules) + 1) - 1))
        allowed = self.allowed(self.kept) or self.allowed(self.rules)
        chosen = allowed[data.draw_integer(0, len(allowed) - 1)]
        return chosen, {name: data.draw(strategy) for name, strategy in chosen.arguments_strategies.items()}

    def allowed(self, rules: Sequence[Rule]) -> list[Rule]:
        """Those of the rules whose preconditions are met."""
        return [
            rule
            for rule in rules
            if not rule.preconditions or all(is_met(self.machine) for is_met in rule.preconditions)
        ]


def some_of(items: Sequence[T], code: int) -> list[T]:
    """The items whose digit reaches the first digit, or none of whose fellows has a larger one.

    >>> some_of("abc", 3 + CHANCES * 4 + CHANCES**3 * 2), some_of("abc", 3 + CHANCES * 2)
    (['a'], ['a'])
    """
    least, *given = digits(code, *[CHANCES] * (len(items) + 1))
    return [item for item, digit in zip(items, given, strict=True) if digit >= min(least, max(given))]


class Enough(BaseException):
    """There is to be no other history; not an Exception, so that Hypothesis does not take it for a failure."""


class Machine(RuleBasedStateMachine):
    """What all worlds share: requests arrive, tokens land, nothing happens."""

    drive: Drive

    def __init__(self) -> None:
        super().__init__()
        self.dead = self.drive.failure is not None
        if not self.dead and not self.drive.begin():
            raise Enough
        self.session: Session | None = None
        self._rules_strategy = Swarm(self)

    @initialize(code=st.integers(0, 2 * len(PALETTE_MIX) * len(OPTION_MIX) * 4 * ROWS * ONE_IN * 4 * 16**3 - 1))
    def begin(self, code: int) -> None:
        """Draws the vocabulary, the logits, the options, the dialect, whether ids come late, and who is there first."""
        if self.dead:
            return
        vocab, mix, options, dialect, late, offset, width, count, *which = digits(
            code, 2, len(PALETTE_MIX), len(OPTION_MIX), 2, 2, ROWS, ONE_IN, 4, 16, 16, 16
        )
        vocabs = self.drive.draw.vocabs
        header = History(
            vocab=vocabs[vocab % len(vocabs)],
            palette=PALETTE_MIX[mix],
            offset=offset,
            options=self.drive.draw.options(options),
            kind=self.drive.draw.kind,
        )
        spoken = EXPLICIT if dialect else ELIDED
        wide = self.drive.draw.wide and width == 0
        player, capacity = self.drive.player(header), WIDE_ROWS if wide else MAX_ROWS
        self.session = Session(header, spoken, player, Lowering(spoken), bool(late), capacity)
        if count:
            self.plan(come=self.arrivals(which * 4 if wide else which[:count]))

    @rule(code=st.integers(0, 3 * 16**3 - 1))
    def arrive(self, code: int) -> None:
        """One to three requests arrive; every live request gets a token."""
        count, *which = digits(code, 3, 16, 16, 16)
        self.plan(come=self.arrivals(which[: count + 1]), growth=self.one_each())

    @rule(code=st.integers(0, 4**MAX_ROWS - 1))
    def decode(self, code: int) -> None:
        """Every row gets 0 to 3 tokens, and nothing else happens."""
        self.plan(growth=self.tokens(digits(code, *[4] * MAX_ROWS)))

    @rule(applies=st.integers(0, 2))
    def quiet(self, applies: int) -> None:
        """Nothing happens; apply runs twice, not at all, or once."""
        self.plan(applies=(2, 0, 1)[applies])

    def arrivals(self, which: list[int], leaving: int = 0) -> tuple[tuple[str, bool], ...]:
        """New requests, users and others alike often, as far as there is room when so many have left."""
        if self.dead or not self.session:
            return ()
        come = []
        for pick in which[: max(0, self.session.capacity - len(self.session.live) + leaving)]:
            params = self.drive.draw.params(pick, self.session.header.offset)
            prompts = self.drive.world.prompts
            arrival = Arrival(dict(params), prompts[len(self.session.header.requests) % len(prompts)])
            come.append((self.declare(arrival), False))
        return tuple(come)

    def declare(self, arrival: Arrival) -> str:
        """Makes a request known to the model, the host and the producer."""
        assert self.session
        session = self.session
        name = name_of(len(session.header.requests))
        session.header = replace(session.header, requests=session.header.requests | {name: arrival})
        session.player.arrive(name, arrival)
        session.lowering.requests[name] = session.player.requests[name]
        return name

    def leavers(self, mask: int) -> tuple[str, ...]:
        """The live requests whose bit is set; of a wide batch, those at rows that change from step to step."""
        if not self.session:
            return ()
        live, turn = self.session.live, len(self.session.items)
        return subset([live[(place + turn) % len(live)] for place in range(min(len(live), MAX_ROWS))], mask)

    def one_each(self) -> tuple[Growth, ...]:
        """One token for every live request."""
        return self.tokens([1] * WIDE_ROWS)

    def tokens(self, counts: list[int], names: Sequence[str] | None = None) -> tuple[Growth, ...]:
        """So many tokens for each of these, or each live request; the last is a placeholder when ids come late."""
        if self.dead or not self.session:
            return ()
        growth = []
        for name, count in zip(self.session.live if names is None else names, counts, strict=False):
            start = len(self.session.player.requests[name].output) + len(self.session.items) + ord(name[0])
            tokens = tuple(TOKENS[(start + place) % len(TOKENS)] for place in range(count))
            growth.append(Growth(name, tokens, int(self.session.late and count > 0)))
        return tuple(growth)

    def plan(self, **parts: Any) -> None:
        """Plays one plan."""
        self.item(Plan(**parts))

    def item(self, item: Plan | Step) -> None:
        """Plays one item and has the step judged; the first violation that counts ends the run."""
        if self.dead or not self.session:
            return
        session = self.session
        session.lowering.batch = list(session.player.batch)
        step = session.lowering.lower(item)
        if step is None:
            return
        session.items.append(item)
        try:
            self.drive.judge(session.player, session.player.play(step))
        except Violation as violation:
            self.dead = True
            if self.drive.counts(session.case, violation):
                self.drive.failure = self.drive.failure or (session.case, violation)
                raise

    def teardown(self) -> None:
        """Hands over the history."""
        if self.session:
            self.drive.finish(self.session.case)


class EngineMachine(Machine):
    """Reachable histories: every rule makes a plan, which the reference producer turns into an update."""

    @rule(code=st.integers(0, SUBSETS * 3 * 256 - 1))
    def turn_over(self, code: int) -> None:
        """Some finish, up to two arrive in their place or behind."""
        mask, count, first, second = digits(code, SUBSETS, 3, 16, 16)
        leave = self.leavers(mask)
        self.plan(leave=leave, come=self.arrivals([first, second][:count], len(leave)), growth=self.one_each())

    @rule(code=st.integers(0, SUBSETS * 16 * 3 - 1))
    def preempt(self, code: int) -> None:
        """Some leave the batch and wait; one may arrive; tokens may land, or not."""
        mask, which, quiet = digits(code, SUBSETS, 16, 3)
        leave = self.leavers(mask)
        come = self.arrivals([which][: which % 2], len(leave))
        self.plan(leave=leave, come=come, growth=() if quiet == 0 else self.one_each())
        if not self.dead and self.session:
            self.session.waiting += [name for name in leave if name not in self.session.live]

    @rule(code=st.integers(0, 8 * 4 * 4 * 2 - 1))
    def resume(self, code: int) -> None:
        """Some that wait come back with their outputs, in their own list or a new one, while others finish.

        A token may have landed while they were out.
        """
        mask, fresh, leave, landed = digits(code, 8, 4, 4, 2)
        if self.dead or not self.session or not self.session.waiting:
            return
        back = subset(self.session.waiting, mask or 1)[: self.session.capacity - len(self.session.live)]
        self.session.waiting = [name for name in self.session.waiting if name not in back]
        growth = self.tokens([1] * len(back), back) if landed else ()
        self.plan(leave=self.leavers(leave), come=tuple((name, fresh % 2 == 1) for name in back), growth=growth)

    @rule(code=st.integers(0, SUBSETS * SUBSETS * 2 - 1))
    def reset(self, code: int) -> None:
        """Some are preempted, and some of them come back in the same step, to another row or to their own."""
        mask, returning, fresh = digits(code, SUBSETS, SUBSETS, 2)
        leave = self.leavers(mask)
        back = subset(leave, returning)
        self.plan(leave=leave, come=tuple((name, fresh == 1) for name in back), growth=self.one_each())
        if not self.dead and self.session:
            self.session.waiting += [name for name in leave if name not in self.session.live]

    @rule(code=st.integers(0, 3 * CHAINS - 1))
    def reorder(self, code: int) -> None:
        """Swaps, chained; with a token each, or alone in the step."""
        alone, chain = digits(code, 3, CHAINS)
        swaps = swap_chain(chain, len(self.session.live) if self.session else 0)
        self.plan(swaps=swaps, growth=() if alone == 0 else self.one_each())

    @rule(code=st.integers(0, SUBSETS * 3 * 256 * CHAINS - 1))
    def churn(self, code: int) -> None:
        """Everything in one step: some finish, some arrive, the batch condenses and is reordered."""
        mask, count, first, second, chain = digits(code, SUBSETS, 3, 16, 16, CHAINS)
        leave = self.leavers(mask)
        come = self.arrivals([first, second][:count], len(leave))
        size = len(self.session.live) - len(leave) + len(come) if self.session else 0
        self.plan(leave=leave, come=come, swaps=swap_chain(chain, size), growth=self.one_each())


class LiteralMachine(Machine):
    """Every well-formed update."""

    @rule(code=st.integers(0, SUBSETS * 3 * 16**2 * 8**2 * 12 * 4**4 - 1))
    def literal(self, code: int) -> None:
        """Any rows removed, any rows added at, any moves; what the list law gives no meaning is left out."""
        if self.dead or not self.session:
            return
        mask, count, first, second, at, then, moves = digits(code, SUBSETS, 3, 16, 16, 8, 8, 12 * 4**4)
        batch = self.session.player.batch
        removed = tuple(row for row, held in enumerate(batch) if held and mask >> row & 1)
        added = self.literal_adds([(first, at), (second, then)][:count], removed)
        kept = [row for row, held in enumerate(batch) if held and row not in removed]
        moved = self.literal_moves(moves, kept)
        self.item(Step(removed=removed, added=added, moved=moved))

    def literal_adds(self, wanted: list[tuple[int, int]], removed: tuple[int, ...]) -> tuple[Added, ...]:
        """Arrivals at rows of their own: occupied, holes, or one past the end."""
        assert self.session
        size, taken, added = len(self.session.player.batch), set(removed), []
        if self.drive.world.overlap:
            taken = set()
        for which, row in wanted:
            row %= min(size + 1, MAX_ROWS)
            come = self.arrivals([which], MAX_ROWS) if row not in taken else ()
            if come:
                added.append(Added(row, come[0][0]))
                taken.add(row)
                size = max(size, row + 1)
        return tuple(added)

    def literal_moves(self, code: int, kept: list[int]) -> tuple[tuple[int, int, str], ...]:
        """Up to two moves, either way, between any rows."""
        assert self.session
        size = max(len(self.session.player.batch), 1)
        count, both_ways, *ends = digits(code, 3, 4, 4, 4, 4, 4)
        moved = []
        for place in range(count):
            source, to = ends[2 * place] % size, ends[2 * place + 1] % size
            direction = SWAP if both_ways >> place & 1 else UNIDIRECTIONAL
            if source != to and (direction == SWAP or source in kept):
                moved.append((source, to, direction))
        return tuple(moved)


class ShrinkMachine(EngineMachine):
    """Beside the engine's steps, output lists lose their last ids."""

    @precondition(lambda self: not self.dead and self.session and self.session.live)
    @rule(code=st.integers(0, 6**MAX_ROWS - 1))
    def lose(self, code: int) -> None:
        """Every row loses 0 to 5 of its last output ids."""
        assert self.session
        counts = digits(code, *[6] * MAX_ROWS)
        losses = zip(self.session.live, counts, strict=False)
        held = {name: len(self.session.player.requests[name].output) for name in self.session.live}
        growth = tuple(Growth(name, dropped=min(count, held[name])) for name, count in losses if count and held[name])
        self.plan(growth=growth)


def machine_for(drive: Drive) -> type[Machine]:
    """The machine class of a run."""
    base = ShrinkMachine if drive.world.shrink else LiteralMachine if drive.world.literal else EngineMachine
    return type("Histories", (base,), {"drive": drive})


def explore(drive: Drive, histories: int, number: int) -> None:
    """Lets the machine make histories until one fails; the same number gives the same histories.

    A failure is kept in the drive and not played again, so Hypothesis, which wants to see it twice, calls it flaky.
    """
    machine = seed(number)(machine_for(drive))
    chosen = settings(
        max_examples=histories,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        backend=BACKEND,
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except (Violation, Enough):
        pass
    except HypothesisException:
        if drive.failure is None:
            raise
