"""What histories reach: how often each clause is spoken of, what happens to requests, and which shapes steps have.

For recordings of real engines beside what the suite generates, so that neither knows something that the other lacks.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from logitsproc.conformance.evidence import output_occasions, update_occasions
from logitsproc.conformance.history import (
    SHARED,
    STRIDED,
    WARM_UP,
    Arrival,
    History,
    Step,
    grow,
    new_request,
    to_update,
)
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.machine import BEYOND, REACHABLE, Draw, Drive, World, explore
from logitsproc.conformance.plans import Case, lower, vacated
from logitsproc.conformance.suite import DEFAULT_SEED, VOCABS
from logitsproc.reference.batch import SWAP, Batch, Update, apply_update
from logitsproc.reference.request import Request

CLAUSE, UPDATE = "clause", "update"
GROUPS = (CLAUSE, UPDATE, "request", "moves", "rows", "tokens", "host")
HISTORIES, HISTORIES_BEYOND = 400, 60
LONG = 16
Feature = tuple[str, str]
"""A group and a name in it."""


@dataclass(frozen=True)
class Moment:
    """One step of a history. `known`: who has been in the batch before; `outputs`: how many ids each request has."""

    history: History
    step: Step
    update: Update | None
    before: tuple[Request | None, ...]
    after: tuple[Request | None, ...]
    known: frozenset[str]
    outputs: dict[str, int]

    @property
    def there(self) -> dict[str, int]:
        """The rows before the step, by request."""
        return {request.name: row for row, request in enumerate(self.before) if request is not None}

    @property
    def live(self) -> list[Request]:
        """The requests after the step."""
        return [request for request in self.after if request is not None]

    @property
    def swaps(self) -> list[tuple[int, int]]:
        """The rows that swap."""
        return [(source, to) for source, to, direction in self.step.moved if direction == SWAP]

    @property
    def one_way(self) -> list[tuple[int, int]]:
        """The rows that move."""
        return [(source, to) for source, to, direction in self.step.moved if direction != SWAP]

    @property
    def swapped(self) -> list[int]:
        """The rows that a swap names, one after the other."""
        return [row for pair in self.swaps for row in dict.fromkeys(pair)]

    @property
    def added(self) -> set[int]:
        """The rows that requests are added at."""
        return {add.row for add in self.step.added}

    @property
    def landed(self) -> list[int]:
        """How many tokens land for each request of the batch."""
        counts = {growth.request: len(growth.tokens) for growth in self.step.growth}
        return [counts.get(request.name, 0) for request in self.live]

    @property
    def landed_outside(self) -> bool:
        """Whether tokens land for a request that was in the batch before, and is not there."""
        return bool({growth.request for growth in self.step.growth} & self.known - set(self.there))

    def leaves(self, rows: Iterable[int]) -> bool:
        """Whether an occupant ends at one of these rows."""
        return bool(set(rows) & set(vacated(self.step, self.before)))

    def comes_back(self, outputs: bool) -> bool:
        """Whether a request is added that was here before, and that has outputs, or not."""
        back = [add.request for add in self.step.added if add.request in self.known]
        return any(bool(self.outputs[name]) == outputs for name in back)

    def returns(self, own: bool) -> bool:
        """Whether a request is added in the step it left, at its own row, or at another."""
        there = self.there
        return any(add.request in there and (there[add.request] == add.row) == own for add in self.step.added)


FEATURES: tuple[tuple[str, str, Callable[[Moment], bool]], ...] = (
    ("request", "comes", lambda at: any(add.request not in at.known for add in at.step.added)),
    ("request", "comes back without outputs", lambda at: at.comes_back(outputs=False)),
    ("request", "comes back with outputs", lambda at: at.comes_back(outputs=True)),
    ("request", "comes back with another list", lambda at: any(add.fresh for add in at.step.added)),
    ("request", "comes back in the step it left, at its own row", lambda at: at.returns(own=True)),
    ("request", "comes back in the step it left, at another row", lambda at: at.returns(own=False)),
    ("request", "comes with tokens that landed while it was out", lambda at: at.landed_outside),
    ("request", "leaves, listed in removed", lambda at: at.leaves(at.step.removed)),
    ("request", "leaves, its row taken", lambda at: at.leaves(at.added)),
    ("request", "leaves, its row filled by a move", lambda at: at.leaves(to for _, to in at.one_way)),
    ("request", "has no prompt ids", lambda at: any(request.prompt is None for request in at.live)),
    ("request", f"has more than {LONG} prompt ids", lambda at: any(len(r.prompt or ()) > LONG for r in at.live)),
    ("request", f"has more than {LONG} outputs", lambda at: any(at.outputs[r.name] > LONG for r in at.live)),
    ("request", "asks for several things", lambda at: any(len(request.params) > 1 for request in at.live)),
    ("moves", "several adds", lambda at: len(at.step.added) > 1),
    ("moves", "several removals", lambda at: len(at.step.removed) > 1),
    ("moves", "several one-way moves", lambda at: len(at.one_way) > 1),
    ("moves", "several swaps", lambda at: len(at.swaps) > 1),
    ("moves", "swaps that share a row", lambda at: len(set(at.swapped)) < len(at.swapped)),
    ("moves", "a row is added and swapped", lambda at: bool(at.added & set(at.swapped))),
    ("moves", "a row is filled by a move and swapped", lambda at: bool({to for _, to in at.one_way} & set(at.swapped))),
    ("rows", "0", lambda at: len(at.after) == 0),
    ("rows", "1", lambda at: len(at.after) == 1),
    ("rows", "2 to 4", lambda at: 2 <= len(at.after) <= 4),
    ("rows", "5 to 8", lambda at: 5 <= len(at.after) <= 8),
    ("rows", "9 or more", lambda at: len(at.after) >= 9),
    ("rows", "holes after the step", lambda at: None in at.after),
    ("rows", "nobody stays", lambda at: bool(at.before) and not set(at.before) & set(at.after)),
    ("rows", "different params side by side", lambda at: len({repr(request.params) for request in at.live}) > 1),
    ("tokens", "several for one row", lambda at: max(at.landed, default=0) > 1),
    ("tokens", "for some rows and none for others", lambda at: 0 in at.landed and any(at.landed)),
    ("tokens", "placeholders", lambda at: any(growth.late for growth in at.step.growth)),
    ("tokens", "taken back", lambda at: any(growth.dropped for growth in at.step.growth)),
    ("tokens", "nothing happens at all", lambda at: at.update is None and not at.step.growth),
    ("host", "apply does not run", lambda at: at.step.applies == 0),
    ("host", "apply runs again", lambda at: at.step.applies > 1),
    ("host", "one params object for equal params", lambda at: SHARED in at.history.options),
    ("host", "strided logits", lambda at: STRIDED in at.history.options),
    ("host", "a warm-up before", lambda at: WARM_UP in at.history.options),
)


def parts(update: Update | None) -> str:
    """Which operations an update is made of."""
    if update is None:
        return "None"
    directions = {direction for _, _, direction in update.moved}
    operations = {
        "removed": update.removed,
        "added": update.added,
        "one-way": directions - {SWAP},
        "swap": directions & {SWAP},
    }
    return ", ".join(name for name, listed in operations.items() if listed) or "nothing"


def features(at: Moment) -> Iterator[Feature]:
    """What shows in one step."""
    for clause in (*update_occasions(at.update, at.before), *output_occasions(at.step, at.update, list(at.after))):
        yield CLAUSE, clause
    yield UPDATE, parts(at.update)
    for group, name, shows in FEATURES:
        if shows(at):
            yield group, name


def moments(history: History) -> Iterator[Moment]:
    """The steps of a history."""
    player, known = ModelPlayer(history), frozenset[str]()
    for step in history.steps:
        before = tuple(player.batch)
        update = player.play(step)
        outputs = {name: len(request.output) for name, request in player.requests.items()}
        yield Moment(history, step, update, before, tuple(player.batch), known, outputs)
        known |= {add.request for add in step.added}


def reached(histories: Iterable[History]) -> Counter[Feature]:
    """In how many steps each feature shows."""
    return Counter(feature for history in histories for at in moments(history) for feature in set(features(at)))


class ModelPlayer:
    """Plays a history to nobody: the list model alone."""

    def __init__(self, header: History) -> None:
        self.batch: Batch = []
        self.requests: dict[str, Request] = {}
        for name, arrival in header.requests.items():
            self.arrive(name, arrival)

    def arrive(self, name: str, arrival: Arrival) -> None:
        """Makes the model's request."""
        self.requests[name] = new_request(name, arrival)

    def play(self, step: Step) -> Update | None:
        """Lets the tokens land, and follows the update, which it gives."""
        for growth in step.growth:
            grow(self.requests[growth.request].output, growth)
        update = to_update(step, self.requests, self.batch)
        apply_update(self.batch, update)
        return update


def generated(worlds: Sequence[World], histories: int) -> list[History]:
    """What the machine makes in these worlds, so many histories in each, of the params of every kind."""
    chance = random.Random(DEFAULT_SEED)
    users = [params for kind in KINDS.values() for params in kind.users(chance)]
    others = [params for kind in KINDS.values() for params in kind.others(chance)]
    made: list[History] = []

    def finish(case: Case) -> None:
        made.append(lower(case))

    for world in worlds:
        drive = Drive(ModelPlayer, world, Draw(users, others, VOCABS), lambda player, update: None, finish=finish)
        explore(drive, histories, DEFAULT_SEED)
    return made


@dataclass(frozen=True)
class Usage:
    """A feature, and in how many steps it shows: of recordings, of reachable histories, of the worlds beyond."""

    group: str
    name: str
    recorded: int
    reachable: int
    beyond: int

    @property
    def only(self) -> str:
        """What alone reaches it, recordings or what is generated, or nothing."""
        if not (self.reachable or self.beyond):
            return "recorded"
        return "" if self.recorded else "generated"


@dataclass(frozen=True)
class Comparison:
    """Every feature that shows anywhere, and how many steps there are of each source."""

    lines: tuple[Usage, ...]
    steps: tuple[int, ...]


def usage(recordings: Sequence[History]) -> Comparison:
    """Recordings beside what is generated."""
    sources = (recordings, generated((REACHABLE,), HISTORIES), generated(BEYOND, HISTORIES_BEYOND))
    counts = [reached(histories) for histories in sources]
    order = [(group, name) for group, name, _ in FEATURES]
    shown = sorted(
        {feature for count in counts for feature in count},
        key=lambda item: (GROUPS.index(item[0]), order.index(item) if item in order else 0, item[1]),
    )
    lines = tuple(Usage(*feature, *(count[feature] for count in counts)) for feature in shown)
    return Comparison(lines, tuple(sum(len(history.steps) for history in histories) for histories in sources))
