"""vLLM's own sampler as a subject: its Sampler over its InputBatch, driven by the updates of a history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from vllm import SamplingParams
from vllm.v1.outputs import SamplerOutput
from vllm.v1.sample.logits_processor import build_logitsprocs, validate_logits_processors_parameters
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.sampler import Sampler
from vllm.v1.worker.gpu_input_batch import CachedRequestState

from logitsproc.conformance.bindings import VLLM
from logitsproc.conformance.vllm_batch import input_batch, request_state


class SamplerPipeline:
    """vLLM's `Sampler`, `InputBatch` and `SamplingMetadata` behind the interface of a processor.

    An update is replayed on the input batch as the model runner would have made it: requests removed, others added,
    the batch condensed, rows swapped, the metadata refreshed. So only updates that an engine emits can be followed.
    `apply` is a whole call of the sampler, which is asked for the logits that it samples from.
    """

    HOST = VLLM
    REACHABLE_ONLY = True

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        custom = vllm_config.model_config.logits_processors or ()
        processors = build_logitsprocs(vllm_config, device, is_pin_memory, False, custom)
        scheduler, model = vllm_config.scheduler_config, vllm_config.model_config
        self.batch = input_batch(scheduler.max_num_seqs, model.get_vocab_size(), processors, device)
        self.sampler = Sampler("processed_logits")
        self.arrived = 0
        self.sampled: torch.Tensor | None = None

    @classmethod
    def validate_params(cls, params: SamplingParams) -> None:
        """What vLLM asks of custom processors when a request comes in; all else it has refused before."""
        validate_logits_processors_parameters(None, params)

    def is_argmax_invariant(self) -> bool:
        """No: most stages are not."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Replays the update on the input batch; raises ValueError for one that no engine emits."""
        if batch_update is not None:
            self.replay(batch_update)
        self.batch.refresh_metadata()

    def replay(self, update: Any) -> None:
        """What the model runner does in a step, and the rows that come of it."""
        for row in sorted(self.vacated(update)):
            self.batch.remove_request(self.batch.req_ids[row])
        for row, params, prompt, output in update.added:
            if self.batch.add_request(self.arriving(params, prompt, output)) != row:
                raise ValueError(f"an engine would not add at row {row}")
        self.batch.condense()
        for source, destination, direction in update.moved:
            if direction.name == "SWAP":
                self.batch.swap_states(source, destination)
        if self.batch.num_reqs != update.batch_size:
            raise ValueError(f"an engine's batch would have {self.batch.num_reqs} rows, not {update.batch_size}")

    def vacated(self, update: Any) -> set[int]:
        """The rows whose request has left: removed, added at, or the destination of a one-way move."""
        filled = {to for _, to, direction in update.moved if direction.name != "SWAP"}
        gone = set(update.removed) | {row for row, *_ in update.added} | filled
        return {row for row in gone if row < self.batch.num_reqs}

    def arriving(self, params: Any, prompt: list[int] | None, output: list[int]) -> CachedRequestState:
        """A request under an id of its own; without prompt ids it has embeddings."""
        self.arrived += 1
        return request_state(str(self.arrived), self.seen_by(params), prompt, output)

    def seen_by(self, params: SamplingParams) -> SamplingParams:
        """The params that the sampler is given."""
        return params

    def metadata(self) -> SamplingMetadata:
        """The batch's own, with the wish to see all logits."""
        return replace(self.batch.sampling_metadata, max_num_logprobs=-1)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits that the sampler draws from, float32 [rows, vocab]; `sampled` are the tokens that it drew."""
        if not self.batch.num_reqs:
            return logits.float()
        output: SamplerOutput = self.sampler(logits, self.metadata())
        processed: torch.Tensor = output.logprobs_tensors.logprobs
        self.sampled = output.sampled_token_ids.flatten()
        return processed


class Stage(SamplerPipeline):
    """The sampler for requests that ask for nothing but one field, so that one of its stages is seen alone."""

    FIELD = "temperature"

    def seen_by(self, params: SamplingParams) -> SamplingParams:
        """Params with this field and with the default of every other."""
        return SamplingParams(**{self.FIELD: getattr(params, self.FIELD)})


class AllowedTokenIds(Stage):
    """Allowed token ids, by the mask of the input batch."""

    FIELD = "allowed_token_ids"


class BadWords(Stage):
    """Bad words, as token ids."""

    FIELD = "_bad_words_token_ids"


class RepetitionPenalty(Stage):
    """Repetition penalty."""

    FIELD = "repetition_penalty"


class FrequencyPenalty(Stage):
    """Frequency penalty."""

    FIELD = "frequency_penalty"


class PresencePenalty(Stage):
    """Presence penalty."""

    FIELD = "presence_penalty"


class Temperature(Stage):
    """Temperature; a greedy request of a batch with others gets 1."""

    FIELD = "temperature"


class TopK(Stage):
    """top-k."""

    FIELD = "top_k"


class TopP(Stage):
    """top-p."""

    FIELD = "top_p"


class Repaired(SamplerPipeline):
    """The sampler without its known deviation, so that all else is judged.

    Rows without top-p go through its arithmetic when another row has it, with p = 1 and a mass that must be above
    1 - p; what has no mass at all is masked there. With a p above 1 nothing is.
    """

    def metadata(self) -> SamplingMetadata:
        """The batch's own, with 2 for a top_p of 1."""
        metadata = super().metadata()
        if metadata.top_p is None:
            return metadata
        return replace(metadata, top_p=metadata.top_p.masked_fill(metadata.top_p == 1, 2.0))


class RepairedTopP(Repaired, TopP):
    """top-p without the known deviation."""
