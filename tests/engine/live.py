"""The list model beside a running engine: every update, every output list and every row of logits is judged live."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from engine import core_of, runner_of
from traffic import Drawn

from logitsproc.conformance.bindings import one_line
from logitsproc.conformance.checks import is_admitted
from logitsproc.conformance.interface import as_update
from logitsproc.conformance.kinds import KINDS, Kind
from logitsproc.conformance.oracles import reference_row
from logitsproc.conformance.player import PLACEHOLDER
from logitsproc.conformance.producers.checks import Decision, Emission, told
from logitsproc.reference.batch import SWAP, Batch, IllFormed, Update, apply_update
from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.pipeline import skips_invariant
from logitsproc.reference.processor import keeps_argmax
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import is_greedy

FAST = "logitsproc.optimized.vllm"


@dataclass(frozen=True)
class Difference:
    """Something that is not as the model says, and where; the clause is None where none speaks about it."""

    step: int
    place: str
    clause: str | None
    message: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.place}: {self.message}{f' ({self.clause})' if self.clause else ''}"


def kind_of(processor: Any) -> Kind | None:
    """The kind that a class or one of its bases has its name from, MinPLogitsProcessor from min_p, or None."""
    for base in type(processor).__mro__:
        words = re.sub(r"(?<!^)(?=[A-Z])", "_", base.__name__.removesuffix("LogitsProcessor"))
        if kind := KINDS.get(words.lower()):
            return kind
    return None


def is_fast(processor: Any) -> bool:
    """Whether the class or one of its bases is of those that read extra_args."""
    return any(base.__module__ == FAST for base in type(processor).__mro__)


def contents(update: Any) -> Any:
    """What the lists of an update hold."""
    return update and (list(update.removed), list(update.added), list(update.moved))


def written(fields: dict[str, Any]) -> str:
    """Fields as `min_p=0.5, top_k=3`."""
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


@dataclass
class Watched:
    """A processor in the engine's list, whose calls are passed on and judged. `number` is its place there.

    Without a kind it is to leave every row as it is.
    """

    processor: Any
    ledger: Ledger
    number: int

    def __post_init__(self) -> None:
        self.kind = kind_of(self.processor)
        self.fast = is_fast(self.processor)
        self.invariant = self.processor.is_argmax_invariant()
        self.name = f"{type(self.processor).__module__}:{type(self.processor).__qualname__}"

    def is_argmax_invariant(self) -> bool:
        """The processor's own answer."""
        return bool(self.invariant)

    def update_state(self, update: Any) -> None:
        """PROC-READONLY, PROC-EXCEPTION: the processor's own, which returns and changes no list of the update."""
        self.ledger.told(self, update)
        was = contents(update)
        self.call("update_state", update)
        if contents(update) != was:
            self.ledger.differ(self.name, "PROC-READONLY", "update_state changed the lists of the update")

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """The processor's own, judged; and judged on the model's logits too, where no other stage was at work yet."""
        self.ledger.calls.append(self.number)
        if self.kind:
            self.judged(self.ledger.logits.clone(), f"{self.name} on the model's logits")
        return self.judged(logits, self.name)

    def judged(self, logits: torch.Tensor, place: str) -> torch.Tensor:
        """PROC-EXCEPTION, PROC-SHAPE: what the processor makes of the logits, [rows, vocab] float32, judged."""
        before = logits.clone()
        returned = self.call("apply", logits)
        if not isinstance(returned, torch.Tensor) or (returned.shape, returned.dtype) != (before.shape, before.dtype):
            self.ledger.differ(place, "PROC-SHAPE", "apply returned no tensor of the shape and dtype it was given")
            return before
        self.ledger.judge(self, place, before, returned)
        return returned

    def call(self, method: str, argument: Any) -> Any:
        """Calls the processor; what it raises is a difference, and not the end of the engine."""
        try:
            return getattr(self.processor, method)(argument)
        except Exception as error:
            self.ledger.differ(self.name, "PROC-EXCEPTION", f"{method} raised {one_line(error)}")
            return argument


@dataclass
class Ledger:
    """The model's batch, which follows the updates as the processors are told them, and what differed.

    asked: what each request asks for, by the engine's id. `logits`: the model's own of this step, float32. `order`:
    the processors in the order in which the engine applies them. `calls`: those that it has applied since the update,
    by number.
    """

    engine: Any
    asked: dict[str, Drawn]
    batch: Batch = field(default_factory=list)
    step: int = -1
    update: Any = None
    logits: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    calls: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    added: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.input_batch = runner_of(self.engine).input_batch
        processors = self.input_batch.logitsprocs
        watched = [Watched(processor, self, number) for number, processor in enumerate(processors.all)]
        processors.argmax_invariant[:] = [each for each in watched if each.invariant]
        processors.non_argmax_invariant[:] = [each for each in watched if not each.invariant]
        self.order = sorted(watched, key=lambda each: each.invariant)
        runner_of(self.engine).sampler.register_forward_pre_hook(self.sampling, with_kwargs=True)

    def differ(self, place: str, clause: str | None, message: str) -> None:
        """Notes a difference."""
        self.differences.append(Difference(self.step, place, clause, message))

    def told(self, watched: Watched, update: Any) -> None:
        """A processor is told the update: the model follows the first time, and the others must be told the same."""
        if watched.number == 0:
            self.finish()
            self.step += 1
            self.update = update
            self.follow(update)
        elif update is not self.update:
            self.differ(watched.name, None, "was told another update than the first processor")

    def follow(self, update: Any) -> None:
        """PROD-RANGE, PROD-NONE, PROD-DISJOINT, PROD-SIZE, PROD-CONTIGUOUS, PROD-ROWS, PROD-REPLAY: the list law."""
        self.counts["steps"] += 1
        before, model = tuple(self.batch), None
        if update is not None:
            self.count(update)
            model = as_update(update, lambda item: self.request(item[2]))
        if breach := told(Emission(before, Decision(), model, self.engines_rows(before, model))):
            self.differ("update", *breach)
        with suppress(IllFormed):
            apply_update(self.batch, model)
        self.check_lists()
        self.counts["placeholders"] += sum(request.output.count(PLACEHOLDER) for request in self.batch if request)

    def engines_rows(self, before: Batch | tuple[Request | None, ...], update: Update | None) -> Any:
        """The engine's own order after the update, as requests of the model; added ones are not those of before."""
        added = [request for _, request in update.added] if update else []
        here = {request.name: request for request in (*before, *added) if request is not None}
        names = self.input_batch.req_ids
        return tuple(None if name is None else here.get(name) or Request(name) for name in names)

    def count(self, update: Any) -> None:
        """What the update is made of."""
        swaps = sum(direction.name == SWAP for _, _, direction in update.moved)
        self.counts["updates"] += 1
        self.counts["added"] += len(update.added)
        self.counts["removed"] += len(update.removed)
        self.counts["one-way moves"] += len(update.moved) - swaps
        self.counts["swaps"] += swaps

    def request(self, output: list[int]) -> Request:
        """The model's request for an added one, known by its live list: what was asked, and that list."""
        states = runner_of(self.engine).requests
        name = next((name for name, state in states.items() if state.output_token_ids is output), "unknown")
        self.counts["resumed"] += name in self.added
        self.added.add(name)
        drawn = self.asked.get(name, Drawn({}, [], 0))
        return Request(name, drawn.fields, drawn.prompt, output)

    def check_lists(self) -> None:
        """PROD-LIVE: the output lists of the model's rows are the engine's, the same objects."""
        lists = zip(self.batch, self.input_batch.req_output_token_ids, strict=False)
        if any(request and request.output is not live for request, live in lists):
            self.differ("update", "PROD-LIVE", "an output list is not the one that was handed over")

    def finish(self) -> None:
        """PIPE-SKIP: the step that is over called every processor once, in order, the invariant ones if any row is not
        greedy.
        """
        skipped = skips_invariant(self.batch)
        due = [each.number for each in self.order if not (skipped and each.invariant)]
        if self.batch and self.calls != due:
            self.differ("apply", "PIPE-SKIP", f"processors {self.calls} were called, not {due}")
        self.counts["all greedy"] += bool(self.batch) and skipped
        self.calls.clear()

    def sampling(self, sampler: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """The sampler is about to start on the model's logits."""
        self.logits = named["logits"].to(torch.float32, copy=True)
        self.check_outputs()

    def judge(self, watched: Watched, place: str, before: torch.Tensor, after: torch.Tensor) -> None:
        """Judges the rows that a processor was given and gave back, [rows, vocab] float32 both."""
        if len(before) != len(self.batch):
            self.differ(place, "PROD-SIZE", f"{len(before)} rows of logits, of a batch of {len(self.batch)}")
        given = list(zip(before.tolist(), before.view(torch.int32).tolist(), strict=True))
        got = list(zip(after.tolist(), after.contiguous().view(torch.int32).tolist(), strict=True))
        for row, request in enumerate(self.batch):
            if request is not None and row < len(before):
                self.counts["rows judged"] += 1
                self.check_row(watched, f"{place}, row {row}", request, given[row], got[row])

    def check_outputs(self) -> None:
        """PROC-PLACEHOLDER, PROD-LIVE: at apply a list has the ids that the scheduler knows, and at most one more."""
        scheduler = core_of(self.engine).scheduler
        lag = int(runner_of(self.engine).use_async_scheduling)
        for row, request in enumerate(self.batch):
            if request is None:
                continue
            if PLACEHOLDER in request.output:
                self.differ("apply", "PROC-PLACEHOLDER", f"a placeholder is left in the outputs of row {row}")
            if request.name in scheduler.requests:
                known = list(scheduler.requests[request.name].output_token_ids)
                if request.output[: len(known)] != known or len(request.output) > len(known) + lag:
                    self.differ("apply", "PROD-LIVE", f"the outputs of row {row} are not what the scheduler has")

    def check_row(
        self, watched: Watched, place: str, request: Request, given: tuple[Any, Any], got: tuple[Any, Any]
    ) -> None:
        """PROC-UNTOUCHED, PROC-FUNCTION, PROC-ARGMAX: the row is one that the reference allows, untouched ones to the
        bit. given, got: the values of the row, and their bits.
        """
        expectation = expected(watched.kind, self.seen_by(watched, request), given[0])
        right = got[1] == given[1] if expectation.untouched else is_admitted(expectation, got[0])
        if not right:
            clause = "PROC-UNTOUCHED" if expectation.untouched else "PROC-FUNCTION"
            asks = f"request {request.name.partition('-')[0]}, which asks for {written(dict(request.params))}"
            self.differ(place, clause, f"the row is wrong for {asks}, after {len(request.output)} outputs")
        elif watched.invariant and not keeps_argmax(given[0], got[0]):
            self.differ(place, "PROC-ARGMAX", "the largest token was lost")

    def seen_by(self, watched: Watched, request: Request) -> Request:
        """The request, which asks this processor for nothing if it asks in the other way; greedy it is in both."""
        if request.name not in self.asked or self.asked[request.name].fast == watched.fast:
            return request
        left = {"temperature": 0.0} if is_greedy(request.params) else {}
        return Request(request.name, left, request.prompt, request.output)


def expected(kind: Kind | None, request: Request, logits: list[float]) -> Expectation:
    """The reference's row, or the row as it is for a processor that has no kind."""
    return reference_row(kind, request, logits, False) if kind else untouched(logits)
