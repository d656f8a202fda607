"""Plays schedules to a producer, and puts what it emits into the model's terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from logitsproc.conformance.bindings import CannotRun, Subject, one_line, printable
from logitsproc.conformance.history import Arrival, Growth, History, Step, new_request
from logitsproc.conformance.interface import as_update
from logitsproc.conformance.machine import WIDE_ROWS
from logitsproc.conformance.plans import vacated
from logitsproc.conformance.player import Violation, as_asked, guarded, is_as_landed, land, settle
from logitsproc.conformance.producers.checks import Decision, Emission, Handed, Held
from logitsproc.conformance.producers.interface import Coming, Schedule
from logitsproc.conformance.watch import WATCH, TookTooLong
from logitsproc.reference.batch import SWAP, Batch, IllFormed, Update
from logitsproc.reference.processor import keeps_arguments
from logitsproc.reference.request import Request

SAME_ID = "same-id"
"""An option of a history: a request that is new takes the id of one that leaves in the same step."""
METHODS = ("step", "rows")
ADDED = ("params", "prompt ids", "output ids")
SHOWN = 80


@dataclass
class Snapshot:
    """An update that was handed over, and what it said then."""

    update: Any
    said: tuple[Any, ...]

    @property
    def is_as_it_was(self) -> bool:
        """Whether it still says the same."""
        try:
            return content(self.update) == self.said
        except Exception:
            return False


@dataclass
class Played:
    """One step: what the producer was asked, from which rows, and what it emitted, if it did."""

    step: Step
    before: tuple[Request | None, ...]
    decision: Decision
    schedule: Schedule
    emission: Emission | None = None


@dataclass
class ProducerPlayer:
    """One play of one history: the producer, its rows as requests of the model, and the live lists.

    `ids` are the requests' ids, which an engine may use again; `handed` are the updates so far, `record` the steps,
    `owners` the requests by the identity of their live lists, `known` the list that processors have of each.
    """

    subject: Subject
    header: History
    batch: Batch = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    live: dict[str, list[int]] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    handed: list[Snapshot] = field(default_factory=list)
    record: list[Played] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many steps have been begun."""
        return len(self.record)

    def __post_init__(self) -> None:
        try:
            self.producer = WATCH.call(self.subject.factory, WIDE_ROWS, self.header.vocab)
        except TookTooLong:
            raise CannotRun(f"{self.subject.target}(...) did not return in time") from None
        except (Exception, SystemExit) as error:
            raise CannotRun(f"{self.subject.target}(max_num_seqs, vocab_size) raised {one_line(error)}") from error
        for name, arrival in self.header.requests.items():
            self.arrive(name, arrival)

    def arrive(self, name: str, arrival: Arrival) -> None:
        """Makes the model's request, the host's params and the live list."""
        self.requests[name] = new_request(name, arrival)
        self.arrivals[name] = arrival
        self.live[name] = list(arrival.output)
        self.params[name] = self.subject.binding.make_params(dict(arrival.params))

    def play(self, step: Step) -> Emission:
        """Plays one step, which the reference producer laid out from these rows; raises Violation for an exception."""
        for growth in step.growth:
            self.land(growth)
        before = tuple(self.batch)
        decision = decided(before, step, self.requests)
        played = Played(step, before, decision, self.schedule(before, decision, step))
        self.record.append(played)
        try:
            played.emission = self.emission(played)
        except (Violation, CannotRun):
            raise
        except Exception as error:
            raise CannotRun(f"{self.subject.target} gave what cannot be read: {one_line(error)}") from error
        for growth in step.growth:
            settle(self.live[growth.request], growth)
        self.batch = list(played.emission.rows)
        return played.emission

    def land(self, growth: Growth) -> None:
        """Tokens land in the model's list and in the live list, the late ones as placeholders."""
        if growth.request not in self.live:
            raise IllFormed(f"request {growth.request} grows and has never arrived")
        land(self.requests[growth.request].output, self.live[growth.request], growth)

    def emission(self, played: Played) -> Emission:
        """Asks the producer, and looks at its rows, at the lists, and at the updates that it handed over earlier."""
        self.owners = {id(live): name for name, live in self.live.items()}
        given = self.call("step", played.schedule)
        update, handed = self.understood(given)
        if given is not None:
            self.handed.append(Snapshot(given, content(given)))
        held = self.held(played)
        changed = next((place for place, snapshot in enumerate(self.handed) if not snapshot.is_as_it_was), None)
        rows = tuple(item.request for item in held)
        return Emission(
            played.before,
            played.decision,
            update,
            rows,
            handed,
            held,
            changed,
            self.stale(rows),
            self.rewritten(rows, played.step),
        )

    def schedule(self, before: Sequence[Request | None], decision: Decision, step: Step) -> Schedule:
        """What the producer is asked: ids, in no order of rows, and for those who come their params and lists."""
        leaving = [request.name for row in decision.vacated if (request := before[row]) is not None]
        leaving = leaving[:: -1 if self.count % 2 else 1]
        leaving_ids = tuple(self.ids[name] for name in leaving)
        for add in step.added:
            if add.fresh:
                self.live[add.request] = list(self.live[add.request])
        self.name_those_who_come(before, leaving, [request.name for request in decision.arrivals])
        coming = tuple(
            Coming(self.ids[request.name], self.params[request.name], request.prompt, self.live[request.name])
            for request in decision.arrivals
        )
        return Schedule(leaving_ids, coming, decision.swaps)

    def name_those_who_come(self, before: Sequence[Request | None], leaving: list[str], names: list[str]) -> None:
        """Gives each an id that no other request in the batch has; its own if that is free, or one that was left."""
        taken = {self.ids[request.name] for request in before if request is not None and request.name not in leaving}
        left = [self.ids[name] for name in leaving if name not in names]
        for name in names:
            new = name not in self.ids
            if new and SAME_ID in self.header.options and left:
                self.ids[name] = left.pop(0)
            wanted = self.ids.get(name, name)
            while wanted in taken:
                wanted += "'"
            self.ids[name] = wanted
            taken.add(wanted)

    def understood(self, given: Any) -> tuple[Update | None, tuple[Handed, ...]]:
        """What was emitted, in the model's terms, and what came with each add; raises CannotRun if it is no update."""
        if given is None:
            return None, ()
        handed: list[Handed] = []

        def request_of(item: Sequence[Any]) -> Request:
            if len(item) != len(ADDED):
                raise ValueError(f"an add is (row, {', '.join(ADDED)})")
            handed.append(self.handed_over(*item))
            return handed[-1].request

        try:
            return as_update(given, request_of), tuple(handed)
        except (AttributeError, TypeError, ValueError) as error:
            target = self.subject.target
            raise CannotRun(
                f"{target}.step() gave {printable(given)[:SHOWN]}, no BatchUpdate: {one_line(error)}"
            ) from error

    def handed_over(self, params: Any, prompt: Any, output: Any) -> Handed:
        """Whose params, prompt and output list were handed over, and which of them are the request's own."""
        owner = self.owner(output)
        likely = owner or self.likely(params, prompt)
        if likely is None:
            return Handed(Request("?"), False, False)
        self.known[likely.name] = output
        arrival = self.arrivals[likely.name]
        own_prompt = ids_of(prompt) == ids_of(arrival.prompt) and ids_of(likely.prompt) == ids_of(arrival.prompt)
        asked = as_asked(self.subject.binding, self.asked, arrival.params)
        return Handed(likely, owner is not None, own_prompt and keeps_arguments(asked, params))

    def likely(self, params: Any, prompt: Any) -> Request | None:
        """The request that has this params object, or one that asked for the same with this prompt."""
        known = [request for name, request in reversed(self.requests.items()) if name in self.ids]
        same = [request for request in known if params is self.params[request.name]]
        equal = [
            request
            for request in known
            if keeps_arguments(self.params[request.name], params) and ids_of(prompt) == ids_of(request.prompt)
        ]
        return next(iter([*same, *equal]), None)

    def owner(self, output: Any) -> Request | None:
        """The request whose live list this is, the same object."""
        name = self.owners.get(id(output))
        return None if name is None else self.requests[name]

    def held(self, played: Played) -> tuple[Held, ...]:
        """Who stands at each row of the producer's own, up to the last request; raises CannotRun for what is no row."""
        rows = self.call("rows")
        if not isinstance(rows, Iterable):
            raise CannotRun(f"{self.subject.target}.rows() gave {printable(rows)[:SHOWN]}, not rows")
        leaving = [played.before[row] for row in played.decision.vacated]
        staying = [request for request in played.before if request not in leaving]
        nearest = [*played.decision.arrivals, *staying, *leaving]
        requests = [request for request in nearest if request is not None]
        listed = guarded("PROD-EXCEPTION", self.count - 1, "rows", list, rows)
        held = [self.holder(row, requests) for row in listed]
        while held and held[-1].request is None:
            held.pop()
        return tuple(held)

    def holder(self, row: Any, requests: Sequence[Request]) -> Held:
        """Who stands at a row, by id and by output list; requests: those that may, the likeliest first."""
        try:
            req_id, output = row
        except (TypeError, ValueError):
            raise CannotRun(
                f"{self.subject.target}.rows() gave {printable(row)[:SHOWN]}, not (id, output list)"
            ) from None
        if req_id is None:
            return Held(None)
        owner = self.owner(output)
        if owner is not None and self.ids.get(owner.name) == req_id:
            return Held(owner)
        named = [request for request in requests if self.ids[request.name] == req_id]
        return Held(named[0] if named else Request(printable(req_id, str)[:SHOWN]), False, owner)

    def stale(self, rows: Sequence[Request | None]) -> tuple[str, ...]:
        """The requests in the rows whose list is not the one that processors have of them."""
        names = [request.name for request in rows if request is not None and request.name in self.known]
        return tuple(name for name in names if self.known[name] is not self.live[name])

    def rewritten(self, rows: Sequence[Request | None], step: Step) -> tuple[str, ...]:
        """The requests in the rows whose live list has other ids than those that landed."""
        late = {growth.request: growth.late for growth in step.growth}
        names = [request.name for request in rows if request is not None and request.name in self.live]
        right = {name: is_as_landed(self.requests[name].output, self.live[name], late.get(name, 0)) for name in names}
        return tuple(name for name in names if not right[name])

    def call(self, method: str, *arguments: Any) -> Any:
        """PROD-EXCEPTION: calls the producer; it returns and raises nothing, else Violation."""
        return guarded("PROD-EXCEPTION", self.count - 1, method, getattr(self.producer, method), *arguments)


def decided(before: Sequence[Request | None], step: Step, requests: dict[str, Request]) -> Decision:
    """The decision behind a step that the engine's algorithm laid out: who left, who came, what was swapped."""
    arrivals = tuple(requests[add.request] for add in step.added)
    swaps = tuple((row, other) for row, other, how in step.moved if how == SWAP)
    return Decision(tuple(sorted(vacated(step, before))), arrivals, swaps)


def content(update: Any) -> tuple[Any, ...]:
    """What an update says, in lists and tuples of its own."""
    return (
        update.batch_size,
        list(update.removed),
        [tuple(add) for add in update.added],
        [tuple(m) for m in update.moved],
    )


def ids_of(prompt: Any) -> list[int] | None:
    """The prompt token ids as a list, whatever holds them."""
    return None if prompt is None else list(prompt)
