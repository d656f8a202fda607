"""A copy of the reference behind the interfaces that the suite judges: processor, pipeline, adapter, producer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

import torch

from logitsproc.conformance.faults import Belief
from logitsproc.conformance.history import Step
from logitsproc.conformance.interface import as_update
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.loading import GROUP
from logitsproc.conformance.mutants.reference import Reference
from logitsproc.conformance.producers.reference import Elided
from logitsproc.reference.batch import Update
from logitsproc.reference.numerics import MASKED
from logitsproc.reference.request import Request

PIPELINE, ADAPTER = "pipeline", "adapter"
INVARIANT = ("temperature", "min_p", "top_k", "top_p")
"""The transformations that claim argmax invariance."""
ASKED = {"bad_words": "bad_words_token_ids"}
"""The params of a transformation, where they are not the one of its name."""


def requested(rest: Sequence[Any]) -> Request:
    """A request of an update, its params by field."""
    params, prompt, output = rest
    return Request("", vars(params), prompt, output)


def kept(rest: Sequence[Any]) -> Request:
    """A request of an update, its params as the host's: what a request-level processor is made from."""
    params, prompt, output = rest
    return Request("", params, prompt, output)


class Modelled:
    """The list of the reference, and for each row what the row function says of the request that stands there."""

    reference: Reference
    field: str
    request_of: Callable[[Sequence[Any]], Request] = staticmethod(requested)

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.batch: list[Request | None] = []

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """Raises ValueError for params outside their domain, and for numbers that float32 does not hold."""
        fields = vars(params)
        cls.reference["validation"].validate(fields)
        if not cls.reference["validation"].has_floats(fields):
            raise ValueError("float32 does not hold the params")

    def is_argmax_invariant(self) -> bool:
        """What the transformation is."""
        return self.field in INVARIANT

    def update_state(self, update: Any) -> None:
        """The list follows."""
        self.follow(None if update is None else as_update(update, self.request_of))

    def follow(self, update: Update | None) -> None:
        """The list law."""
        self.reference["batch"].apply_update(self.batch, update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Every row in place, but for those that are left alone."""
        values = logits.float().tolist()
        holes = [None] * (len(values) - len(self.batch))
        for row, expectation in enumerate(self.expected([*self.batch, *holes], values)):
            if not expectation.untouched:
                logits[row] = torch.tensor(answer(expectation))
        return logits

    def expected(self, batch: list[Request | None], values: list[list[float]]) -> Sequence[Any]:
        """What the rows may be."""
        row = getattr(self.reference[f"row.{self.field}"], self.field)
        expectations: Sequence[Any] = self.reference["processor"].expected_rows(batch, row, values)
        return expectations


class ModelledPipeline(Modelled):
    """The pipeline of the reference, and the custom processors that the configuration names."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        loading = self.reference["loading"]
        plugins = [point.value for point in entry_points(group=GROUP)]
        given = vllm_config.model_config.logits_processors or ()
        classes = loading.loaded(plugins, given, importlib.import_module)
        made = [cls(vllm_config, device, is_pin_memory) for cls in classes]
        self.variant, self.invariant = loading.sorted_in([], made)

    def update_state(self, update: Any) -> None:
        """The list follows, and every custom processor."""
        super().update_state(update)
        for processor in (*self.variant, *self.invariant):
            processor.update_state(update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """In float32."""
        return super().apply(logits.float())

    def expected(self, batch: list[Request | None], values: list[list[float]]) -> Sequence[Any]:
        """What the rows may be."""
        model = self.reference["pipeline"]
        skipped = model.skips_invariant(batch)

        def piped(request: Request | None, row: int) -> Any:
            if request is None:
                return self.reference["expectation"].untouched(values[row])
            custom = [self.edit(processor, row, len(batch)) for processor in self.variant]
            invariant = [self.narrowing(processor, row, len(batch)) for processor in self.invariant]
            given = (request.params, request.prompt, request.output, values[row])
            return model.pipeline(*given, skipped, custom=custom, invariant=invariant)

        return [piped(request, row) for row, request in enumerate(batch)]

    def edit(self, processor: Any, row: int, rows: int) -> Callable[..., Any]:
        """A custom processor as a row function: it is applied to a batch in which only this row has its logits."""

        def edited(params: Any, prompt: Any, output: Any, logits: Sequence[float]) -> Any:
            got = applied(processor, row, rows, logits)
            exact = self.reference["expectation"]
            return exact.untouched(logits) if got == list(logits) else exact.exact(got)

        return edited

    def narrowing(self, processor: Any, row: int, rows: int) -> Callable[..., Any]:
        """A custom argmax-invariant processor, likewise."""

        def narrowed(params: Any, given: Any) -> Any:
            got = applied(processor, row, rows, answer(given))
            return given if got == answer(given) else self.reference["expectation"].exact(got)

        return narrowed


class ModelledAdapter(Modelled):
    """The adapter of the reference."""

    request_of = staticmethod(kept)

    def new_req_logits_processor(self, params: Any) -> Callable[..., torch.Tensor] | None:
        """A request-level processor, or None."""
        raise NotImplementedError

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Every row that its processor gives back."""
        for row, request in enumerate(self.batch):
            if request is not None:
                processor = self.new_req_logits_processor(request.params)
                given = (processor, request.prompt, request.output, logits[row])
                logits[row] = self.reference["loading"].adapted(*given)
        return logits


def applied(processor: Any, row: int, rows: int, logits: Sequence[float]) -> list[float]:
    """The row that a processor gives back of a batch of so many, in which the others are 0."""
    batch = torch.zeros(rows, len(logits))
    batch[row] = torch.tensor(logits)
    found: list[float] = processor.apply(batch)[row].tolist()
    return found


def answer(expectation: Any) -> list[float]:
    """One row that an expectation allows: the least values; of the tokens that may be masked as many as are allowed."""
    row = list(expectation.low)
    if expectation.kept is not None:
        by_value = sorted(expectation.either, key=lambda token: row[token], reverse=True)
        for token in by_value[max(expectation.kept[1], 0) :]:
            row[token] = MASKED
    return row


def modelled(kind: Kind, reference: Reference) -> type[Modelled]:
    """The class that runs a copy of the reference as a processor of a kind."""
    base = {PIPELINE: ModelledPipeline, ADAPTER: ModelledAdapter}.get(kind.field, Modelled)
    return type("Modelled", (base,), {"reference": reference, "field": kind.field})


def producing(reference: Reference, dialect: str) -> type[Elided]:
    """The class that runs a copy of the reference as a producer."""
    algorithm = staticmethod(reference["producer"].engine_step)
    return type("Producing", (Elided,), {"DIALECT": dialect, "ALGORITHM": algorithm})


def believing(kind: Kind, fault: type[Belief]) -> type[Modelled]:
    """The class that follows updates as a fault does, and then does what the reference says for whom it believes."""

    class Believing(Modelled):
        """The reference's rows for the wrong requests."""

        reference, field = Reference(), kind.field

        def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
            super().__init__(vllm_config, device, is_pin_memory)
            self.belief = fault(self.is_user)

        def is_user(self, request: Request) -> bool:
            """Whether the request asks for the transformation."""
            return bool(request.params[ASKED.get(self.field, self.field)])

        def follow(self, update: Update | None) -> None:
            self.belief.follow(update, Step())

        def apply(self, logits: torch.Tensor) -> torch.Tensor:
            self.batch = [self.belief.at(row) for row in range(len(logits))]
            super().apply(logits)
            self.belief.applied()
            return logits

    return Believing
