"""sendnn-inference's processors, which need no accelerator, with a tokenizer in the place of the model's."""

from __future__ import annotations

from sendnn_inference.v1.sample import golden_token_injector
from sendnn_inference.v1.sample.spyre_logits_processor import LogitProcessorWrapper
from sendnn_inference.v1.worker.spyre_input_batch import SamplingInputBatch, SamplingRequestState
from spyre import AroundMinTokens, OnItsOwnBatch, WithTokenizer, read_once

read_once(golden_token_injector)


class Golden(WithTokenizer, golden_token_injector.GoldenTokenInjector):
    """The injector of expected tokens."""


class MinTokensOnItsBatch(OnItsOwnBatch):
    """The wrapper around vLLM's min-tokens, behind the batch that the package has for it."""

    BATCH, STATE, WRAPPER = SamplingInputBatch, SamplingRequestState, LogitProcessorWrapper


class MinTokensOnVllmsBatch(AroundMinTokens, LogitProcessorWrapper):
    """The same wrapper, given the updates of vLLM's batch."""
