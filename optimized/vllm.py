"""The fast processors as vLLM takes them: `--logits-processors logitsproc.optimized.vllm:PipelineLogitsProcessor`.

They do what requests ask for in `extra_args`, as logitsproc.optimized.asked says, and README.md which are worth it.
This module alone imports vLLM, of whose base class every custom processor has to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from logitsproc import optimized
from logitsproc.optimized.asked import FIELDS, MISPLACED, MISPLACED_IN_ONE, check_asked, with_views

if TYPE_CHECKING:
    LogitsProcessor = object
else:
    from vllm.v1.sample.logits_processor import LogitsProcessor


def backend(device: torch.device) -> Any:
    """The module whose classes do the work on this device; raises ValueError where there is none."""
    if device.type == "cpu":
        return optimized
    if device.type != "cuda":
        raise ValueError(f"the fast processors of logitsproc.optimized work on CPUs and NVIDIA GPUs, not on {device}")
    if find_spec("triton") is None:
        raise ValueError(f"on {device} the fast processors of logitsproc.optimized need Triton: logitsproc[gpu]")
    return import_module(f"{optimized.__name__}.gpu")


class FastLogitsProcessor(LogitsProcessor):
    """A processor of the backend's, which is shown what requests ask for in extra_args.

    A subclass says which class it is, the fields it serves, which of the request's own ones have to be neutral
    beside them, and what more the class is built with.
    """

    FAST: ClassVar[Any]
    SERVES: ClassVar[tuple[str, ...]]
    MISPLACED: ClassVar[Mapping[str, tuple[str, ...]]] = MISPLACED
    OPTIONS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.vocab = vllm_config.model_config.get_vocab_size()
        fast = getattr(backend(device), self.FAST.__name__)
        self.processor = fast(vllm_config, device, is_pin_memory, **self.OPTIONS)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR, VAL-PURE: raises ValueError for what extra_args cannot ask."""
        check_asked(params, cls.SERVES, cls.MISPLACED, cls.FAST.validate_params)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: as the class says."""
        return bool(self.processor.is_argmax_invariant())

    def update_state(self, batch_update: Any) -> None:
        """UPD-NONE, PROC-READONLY, VAL-VOCABULARY: the update, with views of the params; None as it is."""
        self.processor.update_state(None if batch_update is None else with_views(batch_update, self.vocab))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PROC-SHAPE, PROC-UNTOUCHED: as the class does it; rows that ask for nothing in extra_args are left alone."""
        changed: torch.Tensor = self.processor.apply(logits)
        return changed


class AllowedTokenIdsLogitsProcessor(FastLogitsProcessor):
    """Allowed token ids."""

    FAST, SERVES = optimized.AllowedTokenIdsLogitsProcessor, ("allowed_token_ids",)


class BadWordsLogitsProcessor(FastLogitsProcessor):
    """Bad words, by their token ids."""

    FAST, SERVES = optimized.BadWordsLogitsProcessor, ("bad_words_token_ids",)


class MinTokensLogitsProcessor(FastLogitsProcessor):
    """min-tokens."""

    FAST, SERVES = optimized.MinTokensLogitsProcessor, ("min_tokens",)


class LogitBiasLogitsProcessor(FastLogitsProcessor):
    """Logit bias."""

    FAST, SERVES = optimized.LogitBiasLogitsProcessor, ("logit_bias",)


class RepetitionPenaltyLogitsProcessor(FastLogitsProcessor):
    """Repetition penalty."""

    FAST, SERVES = optimized.RepetitionPenaltyLogitsProcessor, ("repetition_penalty",)


class FrequencyPenaltyLogitsProcessor(FastLogitsProcessor):
    """Frequency penalty."""

    FAST, SERVES = optimized.FrequencyPenaltyLogitsProcessor, ("frequency_penalty",)


class PresencePenaltyLogitsProcessor(FastLogitsProcessor):
    """Presence penalty."""

    FAST, SERVES = optimized.PresencePenaltyLogitsProcessor, ("presence_penalty",)


class TemperatureLogitsProcessor(FastLogitsProcessor):
    """Temperature."""

    FAST, SERVES = optimized.TemperatureLogitsProcessor, ("temperature",)


class MinPLogitsProcessor(FastLogitsProcessor):
    """min-p."""

    FAST, SERVES = optimized.MinPLogitsProcessor, ("min_p",)


class TopKLogitsProcessor(FastLogitsProcessor):
    """top-k."""

    FAST, SERVES = optimized.TopKLogitsProcessor, ("top_k",)


class TopPLogitsProcessor(FastLogitsProcessor):
    """top-p."""

    FAST, SERVES = optimized.TopPLogitsProcessor, ("top_p",)


class PipelineLogitsProcessor(FastLogitsProcessor):
    """All stages at once. It loads no custom processors: vLLM does, this one among them."""

    FAST, SERVES = optimized.Pipeline, FIELDS
    MISPLACED, OPTIONS = MISPLACED_IN_ONE, {"custom": ()}


class AdapterLogitsProcessor(optimized.AdapterLogitsProcessor, LogitsProcessor):
    """The base class of processors made of one callable for each request, on any device."""
