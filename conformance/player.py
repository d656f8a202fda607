"""Plays a history to the model and to a subject, step by step, and shows what came out of both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from logitsproc.conformance.bindings import Binding, CannotRun, Subject, one_line
from logitsproc.conformance.history import (
    BFLOAT16,
    SHARED,
    STRIDED,
    WARM_UP,
    Arrival,
    Growth,
    History,
    Step,
    grow,
    new_request,
    to_update,
)
from logitsproc.conformance.logits import Palette, palette, picks, to_palette
from logitsproc.conformance.watch import WATCH, TookTooLong
from logitsproc.reference.batch import Batch, IllFormed, Update, apply_update
from logitsproc.reference.expectation import Expectation
from logitsproc.reference.pipeline import skips_invariant
from logitsproc.reference.processor import keeps_arguments
from logitsproc.reference.request import Request

PLACEHOLDER = -1
WARM_UP_ROWS = 2
PADDING = 3
PADDING_VALUE = 7.0


@dataclass
class Violation(Exception):
    """A subject broke the contract. `clause` is None until diagnosis names it; a row may go with it.

    `rows` and `pick`: where the logits are that the row was shown. `hangs`: the subject did not return, so that
    playing it again would take as long again.
    """

    clause: str | None
    message: str
    step: int
    row: int | None = None
    request: Request | None = None
    rows: Palette | None = None
    pick: int = 0
    expectation: Expectation | None = None
    got: list[float] | None = None
    hangs: bool = False

    @property
    def logits(self) -> list[float]:
        """The logits that the row was shown; there are some if there is a row."""
        assert self.rows is not None
        return self.rows.values[self.pick]


@dataclass(slots=True)
class Outcome:
    """What a step gave. `values` and `bits` are None when apply was not called.

    `skipped`: whether every request of the batch is greedy.
    """

    index: int
    step: Step
    update: Update | None
    before: list[Request | None]
    batch: Batch
    rows: Palette
    picks: list[int]
    skipped: bool
    values: list[list[float]] | None = None
    bits: list[list[int]] | None = None
    again: list[list[int]] | None = None
    copied: bool = False


@dataclass
class Player:
    """One play of one history: the model's batch, the subject's processor, and the live lists between them.

    `applying` is the step whose apply is under way, `padding` what lies beside strided logits.
    """

    subject: Subject
    header: History
    batch: Batch = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    live: dict[str, list[int]] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    count: int = 0
    applying: Outcome | None = None
    padding: torch.Tensor | None = None

    def __post_init__(self) -> None:
        try:
            self.processor = WATCH.call(self.subject.build, self.header.vocab)
        except TookTooLong:
            raise CannotRun(f"{self.subject.target}(...) did not return in time") from None
        self.rows = palette(self.header.palette, self.header.vocab, dtype_of(self.header))
        self.invariant = self.ask_invariance()
        for name, arrival in self.header.requests.items():
            self.arrive(name, arrival)

    def ask_invariance(self) -> bool:
        """is_argmax_invariant(), asked once; raises CannotRun when it is not a bool."""
        try:
            answer = WATCH.call(self.processor.is_argmax_invariant)
        except TookTooLong:
            raise CannotRun(f"{self.subject.target}.is_argmax_invariant() did not return in time") from None
        except (Exception, SystemExit) as error:
            raise CannotRun(f"{self.subject.target}.is_argmax_invariant() raised {one_line(error)}") from error
        if not isinstance(answer, bool):
            raise CannotRun(f"{self.subject.target}.is_argmax_invariant() returned {answer!r}, not a bool")
        return answer

    def arrive(self, name: str, arrival: Arrival) -> None:
        """Makes the model's request and the host's params object; equal params share one if the history says so."""
        request = new_request(name, arrival)
        self.requests[name] = request
        self.arrivals[name] = arrival
        self.live[name] = list(arrival.output)
        if SHARED in self.header.options:
            for other, made in self.params.items():
                if self.requests[other].params == arrival.params:
                    self.params[name] = made
                    return
        self.params[name] = self.subject.binding.make_params(dict(arrival.params))

    def warm_up(self) -> None:
        """update_state(None) and apply before any request, as an engine's dummy run does."""
        self.call("update_state", None)
        logits = self.logits(self.rows, list(range(WARM_UP_ROWS)))
        got = self.checked(self.call("apply", logits), WARM_UP_ROWS)
        if got.view(torch.int32).tolist() != self.rows.bits[:WARM_UP_ROWS]:
            raise Violation("PROC-UNTOUCHED", "apply changed logits before any request was added", self.count)

    def play(self, step: Step) -> Outcome:
        """Plays one step; raises Violation for what needs no oracle to judge, IllFormed for an impossible update."""
        if self.count == 0 and WARM_UP in self.header.options:
            self.warm_up()
        for growth in step.growth:
            self.land(growth)
        before = list(self.batch)
        update = to_update(step, self.requests, self.batch)
        apply_update(self.batch, update)
        self.tell(step, update)
        for growth in step.growth:
            settle(self.live[growth.request], growth)
        names = [None if request is None else request.name for request in self.batch]
        rows, chosen = shown(self.header, step, self.count, names)
        skipped = skips_invariant(self.batch)
        outcome = Outcome(self.count, step, update, before, self.batch, rows, chosen, skipped)
        if step.applies:
            self.applying = outcome
            self.apply(outcome)
            self.applying = None
        self.count += 1
        return outcome

    def land(self, growth: Growth) -> None:
        """Tokens land in the model's list and in the live list, where the late ones are placeholders."""
        if growth.request not in self.requests:
            raise IllFormed(f"request {growth.request} grows and has never arrived")
        land(self.requests[growth.request].output, self.live[growth.request], growth)

    def tell(self, step: Step, update: Update | None) -> None:
        """PROC-READONLY: update_state, with the host's own types; what was handed over stays as it was."""
        if update is None:
            self.call("update_state", None)
            self.check_lists("update_state", step)
            return
        added = [self.handed(add.row, add.request, add.fresh) for add in step.added]
        directions = self.subject.binding.directions
        moved = [(source, to, directions[direction]) for source, to, direction in step.moved]
        removed = list(step.removed)
        host = self.subject.binding.batch_update(update.batch_size, removed, added, moved)
        was = (list(removed), list(added), list(moved))
        self.call("update_state", host)
        if not keeps_arguments(was, (removed, added, moved)):
            raise Violation("PROC-READONLY", "update_state changed the lists of the update", self.count)
        if added:
            self.check_params(step)
        self.check_lists("update_state", step)

    def handed(self, row: int, name: str, fresh: bool) -> tuple[int, Any, list[int] | None, list[int]]:
        """An item of `added`: the row, the params object, the prompt, and the request's live list."""
        if fresh:
            self.live[name] = list(self.live[name])
        request = self.requests[name]
        return row, self.params[name], request.prompt, self.live[name]

    def check_params(self, step: Step) -> None:
        """PROC-READONLY: the params of a request that was just added are what was asked, else Violation."""
        for add in step.added:
            asked = as_asked(self.subject.binding, self.asked, self.requests[add.request].params)
            if not keeps_arguments(asked, self.params[add.request]):
                raise Violation("PROC-READONLY", f"update_state changed the params of {add.request}", self.count)

    def check_lists(self, method: str, step: Step) -> None:
        """PROC-READONLY: the subject has changed no list of token ids, else Violation."""
        late = {growth.request: growth.late for growth in step.growth if growth.late} if method != "apply" else {}
        for request in self.batch:
            if request is None:
                continue
            if not is_as_landed(request.output, self.live[request.name], late.get(request.name, 0)):
                raise Violation("PROC-READONLY", f"{method} changed the output ids of {request.name}", self.count)
            asked = self.arrivals[request.name].prompt
            if request.prompt is not None and tuple(request.prompt) != asked:
                raise Violation("PROC-READONLY", f"{method} changed the prompt ids of {request.name}", self.count)

    def apply(self, outcome: Outcome) -> None:
        """Applies the subject to the step's logits, once or twice, and reads what comes out."""
        size = len(outcome.picks)
        logits = self.logits(outcome.rows, outcome.picks)
        returned = self.call("apply", logits)
        got = self.checked(returned, size)
        outcome.copied = returned is not logits and returned.dtype == logits.dtype
        outcome.values = got.tolist()
        outcome.bits = got.view(torch.int32).tolist()
        for _ in range(outcome.step.applies - 1):
            again = self.checked(self.call("apply", self.logits(outcome.rows, outcome.picks)), size)
            outcome.again = again.view(torch.int32).tolist()
        self.check_lists("apply", outcome.step)

    def logits(self, rows: Palette, chosen: list[int]) -> torch.Tensor:
        """A new [rows, vocab] tensor on the subject's device; a slice of a wider one if the history is strided."""
        plain = rows.tensor.index_select(0, positions(tuple(chosen))).to(self.subject.device, dtype_of(self.header))
        if STRIDED not in self.header.options:
            return plain
        wide = torch.cat([plain, plain.new_full((len(chosen), PADDING), PADDING_VALUE)], dim=1)
        self.padding = wide[:, self.header.vocab :]
        return wide[:, : self.header.vocab]

    def checked(self, got: Any, size: int) -> torch.Tensor:
        """PROC-SHAPE, PIPE-FLOAT: what apply returned, contiguous, on the CPU; it is float32 [size, vocab] on the
        subject's device, else Violation."""
        if not isinstance(got, torch.Tensor):
            raise Violation("PROC-SHAPE", f"apply returned {type(got).__name__}, not a tensor", self.count)
        if self.padding is not None and bool((self.padding != PADDING_VALUE).any()):
            raise Violation("PROC-UNTOUCHED", "apply wrote outside the logits that it was given", self.count)
        wanted, device = (size, self.header.vocab), self.subject.device
        if tuple(got.shape) != wanted or got.dtype != torch.float32 or got.device.type != device.type:
            given = f"{got.dtype} {list(got.shape)} on {got.device}"
            message = f"apply was given {dtype_of(self.header)} {list(wanted)} on {device} and returned {given}"
            raise Violation("PIPE-FLOAT" if BFLOAT16 in self.header.options else "PROC-SHAPE", message, self.count)
        return got.contiguous().cpu()

    def call(self, method: str, argument: Any) -> Any:
        """PROC-EXCEPTION: calls the subject; it returns and raises nothing, else Violation."""
        return guarded("PROC-EXCEPTION", self.count, method, getattr(self.processor, method), argument)


def guarded(clause: str, step: int, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a method of the subject; raises Violation of the clause when it raises, or does not return in time."""
    try:
        return WATCH.call(function, *arguments)
    except TookTooLong:
        raise Violation(clause, f"{name} did not return in time", step, hangs=True) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Violation(clause, f"{name} raised {one_line(error)}{where(error)}", step) from error


def as_asked(binding: Binding, known: dict[str, Any], params: Mapping[str, Any]) -> Any:
    """Params as an object that the subject is never handed; made once, and kept among those known."""
    if (key := repr(params)) not in known:
        known[key] = binding.make_params(dict(params))
    return known[key]


@functools.lru_cache(maxsize=1024)
def positions(rows: tuple[int, ...]) -> torch.Tensor:
    """Rows of a palette as an index."""
    with torch.inference_mode(False):
        return torch.tensor(rows, dtype=torch.long)


def land(output: list[int], live: list[int], growth: Growth) -> None:
    """Tokens land in the model's list and in the live one, where the late ones are placeholders."""
    grow(output, growth)
    grow(live, growth)
    if growth.late:
        live[-growth.late :] = [PLACEHOLDER] * growth.late


def settle(live: list[int], growth: Growth) -> None:
    """The placeholders become the ids they stand for."""
    if growth.late:
        live[-growth.late :] = growth.tokens[-growth.late :]


def is_as_landed(output: list[int], live: list[int], late: int) -> bool:
    """Whether a live list has the model's ids, but for the last ones that are late."""
    known = len(output) - late
    return len(live) == len(output) and live[:known] == output[:known]


def shown(header: History, step: Step, index: int, names: Sequence[str | None]) -> tuple[Palette, list[int]]:
    """The rows that the batch is shown at a step: of the palette, but for requests whose logits are written out."""
    dtype = dtype_of(header)
    rows, chosen = palette(header.palette, header.vocab, dtype), picks(header.offset, index, len(names))
    if not step.sights:
        return rows, chosen
    written = {sight.request: list(sight.logits) for sight in step.sights}
    values = [written.get(name or "", rows.values[pick]) for name, pick in zip(names, chosen, strict=True)]
    return to_palette(values, dtype), list(range(len(values)))


def dtype_of(header: History) -> torch.dtype:
    """The dtype of the logits that the subject is given."""
    return torch.bfloat16 if BFLOAT16 in header.options else torch.float32


def where(error: BaseException) -> str:
    """` (file.py:12)`: the innermost line of the subject's own that raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "logitsproc/conformance/" not in code.co_filename and "/torch/" not in code.co_filename:
            place = f" ({code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place
