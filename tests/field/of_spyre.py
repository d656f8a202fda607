"""vllm-spyre's processors, which need no accelerator, with a tokenizer in the place of the model's."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from spyre import OnItsOwnBatch, around_min_tokens, with_tokenizer
from vllm_spyre.v1.sample import golden_token_injector
from vllm_spyre.v1.sample.spyre_logits_processor import LogitProcessorWrapper
from vllm_spyre.v1.worker.spyre_input_batch import SamplingInputBatch, SamplingRequestState

golden_token_injector.get_tokenizer = cache(golden_token_injector.get_tokenizer)
"""As it is, but read once: the suite makes many processors."""


class Golden(golden_token_injector.GoldenTokenInjector):
    """The injector of expected tokens."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(with_tokenizer(vllm_config), device, is_pin_memory)


class MinTokensOnItsBatch(OnItsOwnBatch):
    """The wrapper around vLLM's min-tokens, behind the batch that the package has for it."""

    BATCH, STATE, WRAPPER = SamplingInputBatch, SamplingRequestState, LogitProcessorWrapper


class MinTokensOnVllmsBatch(LogitProcessorWrapper):
    """The same wrapper, given the updates of vLLM's batch."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(*around_min_tokens(vllm_config, device))
