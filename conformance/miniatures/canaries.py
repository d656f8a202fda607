"""The canaries of each kind: what must be caught before a run is believed, one all wrong and one almost right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from logitsproc.conformance.bindings import MAX_NUM_SEQS
from logitsproc.conformance.interface import BatchUpdate
from logitsproc.conformance.miniatures.adapters import Adapter
from logitsproc.conformance.miniatures.controls import CANARIES as TRANSFORMATIONS
from logitsproc.conformance.miniatures.controls import CONTROLS, ForgetsToClear
from logitsproc.conformance.miniatures.pipelines import Everybody, Pipeline
from logitsproc.conformance.producers.reference import Elided
from logitsproc.reference.batch import Update


class ForgetsToClearAnywhere(ForgetsToClear, Everybody):
    """PROC-STATE-DEPARTED: never forgets a request that asked for something."""

    def wants(self, params: Any) -> bool:
        return bool(params.logit_bias)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[next(iter(params.logit_bias))] += 1.0


class PipelineCanary(Pipeline):
    """PROC-STATE-DEPARTED: the canary of pipelines."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.first.append(ForgetsToClearAnywhere(vllm_config, device, is_pin_memory))


class AdapterCanary(ForgetsToClear, Adapter):
    """PROC-STATE-DEPARTED: the canary of adapters."""


CANARIES = {**TRANSFORMATIONS, "pipeline": PipelineCanary, "adapter": AdapterCanary}


class BreaksEverything:
    """Ignores removals, mixes up the rows of adds, reverses moves and their order, and gives wrong rows at each apply.

    It raises nothing, and does nothing before the first update, so that only a judge of values can catch it.
    """

    told = False

    def update_state(self, update: Any) -> None:
        if update is not None:
            self.told = True
            added = [(row ^ 1, *rest) for row, *rest in update.added]
            moved = [(to, source, how) for source, to, how in reversed(update.moved)]
            update = replace(update, removed=[], added=added, moved=moved)
        super().update_state(update)  # type: ignore[misc]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        spare = logits.new_zeros(MAX_NUM_SEQS, logits.shape[1])
        got: torch.Tensor = super().apply(torch.cat([logits.flip(0), spare]))[: len(logits)]  # type: ignore[misc]
        return -got if self.told else logits.to(got.dtype)


def composite(control: type) -> type:
    """The control, made to break everything at once."""
    return type(f"{control.__name__}Composite", (BreaksEverything, control), {"__doc__": BreaksEverything.__doc__})


COMPOSITES = {
    kind: composite(control) for kind, control in (CONTROLS | {"pipeline": Pipeline, "adapter": Adapter}).items()
}


class BreaksEveryUpdate(Elided):
    """Leaves out removals, adds with copied outputs in the wrong order, reverses moves, and says the wrong size."""

    def emitted(self, update: Update | None) -> BatchUpdate | None:
        given = super().emitted(update)
        if given is None:
            return None
        added = [(row ^ 1, params, prompt, list(output)) for row, params, prompt, output in given.added]
        moved = [(to, source, how) for source, to, how in reversed(given.moved)]
        return BatchUpdate(given.batch_size + 1, [], added, moved)
