"""The canary of each kind: what must be caught before a run is believed."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.conformance.miniatures.adapters import Adapter
from logitsproc.conformance.miniatures.controls import CANARIES as TRANSFORMATIONS
from logitsproc.conformance.miniatures.controls import ForgetsToClear
from logitsproc.conformance.miniatures.pipelines import Everybody, Pipeline


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
