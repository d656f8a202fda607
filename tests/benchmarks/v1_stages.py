"""vLLM V1's own code: its sampler's stages on its input batch and metadata, and nine of its processors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from vllm.v1.sample.logits_processor import BUILTIN_LOGITS_PROCESSORS
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p
from workload import CPU, NINE, VOCAB, Request, Update, filling

from logitsproc.conformance.bindings import Binding
from logitsproc.conformance.interface import host_config
from logitsproc.conformance.vllm_sampler import SamplerPipeline


class Stages(SamplerPipeline):
    """The sampler from the logits to where it draws a token; the draw itself is left out.

    So is the division by the temperature where every row's is 1, which the sampler does not leave out.
    """

    divides = True

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """The calls of `Sampler.forward` and `Sampler.sample` for a random batch: [rows, vocab] float32, in place."""
        metadata = self.batch.sampling_metadata
        logits = self.sampler.apply_logits_processors(logits, metadata, False)
        if self.divides:
            logits = self.sampler.apply_temperature(logits, metadata.temperature, metadata.all_random)
        for processor in metadata.logitsprocs.argmax_invariant:
            logits = processor.apply(logits)
        return apply_top_k_top_p(logits, metadata.top_k, metadata.top_p)

    def rebuild(self) -> None:
        """What `InputBatch.refresh_metadata` does after it has told the processors of an update."""
        self.batch._make_sampling_metadata()


def stages(binding: Binding, batch: Sequence[Request]) -> Stages:
    """vLLM's stages with these requests in its batch."""
    made = Stages(host_config(VOCAB, len(batch)), CPU, False)
    made.update_state(filling(binding, batch))
    made.divides = any(params.temperature != 1 for params, _, _ in batch)
    return made


class NineProcessors:
    """vLLM's three built-in processors, three times over."""

    def __init__(self, rows: int) -> None:
        config = host_config(VOCAB, rows)
        times = len(NINE) // len(BUILTIN_LOGITS_PROCESSORS)
        self.processors = [made(config, CPU, False) for made in BUILTIN_LOGITS_PROCESSORS * times]

    def update_state(self, update: Update) -> None:
        """As `InputBatch.refresh_metadata` tells them."""
        for processor in self.processors:
            processor.update_state(update)
