"""The fast processors as vLLM takes them: `--logits-processors logitsproc.optimized.vllm:MinPLogitsProcessor`.

vLLM asks that a custom processor derives from its own base class; that is all that these add. This module alone
imports vLLM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logitsproc import optimized

if TYPE_CHECKING:
    LogitsProcessor = object
else:
    from vllm.v1.sample.logits_processor import LogitsProcessor


class AllowedTokenIdsLogitsProcessor(optimized.AllowedTokenIdsLogitsProcessor, LogitsProcessor):
    """Allowed token ids."""


class BadWordsLogitsProcessor(optimized.BadWordsLogitsProcessor, LogitsProcessor):
    """Bad words, by their token ids."""


class MinTokensLogitsProcessor(optimized.MinTokensLogitsProcessor, LogitsProcessor):
    """min-tokens."""


class LogitBiasLogitsProcessor(optimized.LogitBiasLogitsProcessor, LogitsProcessor):
    """Logit bias."""


class RepetitionPenaltyLogitsProcessor(optimized.RepetitionPenaltyLogitsProcessor, LogitsProcessor):
    """Repetition penalty."""


class FrequencyPenaltyLogitsProcessor(optimized.FrequencyPenaltyLogitsProcessor, LogitsProcessor):
    """Frequency penalty."""


class PresencePenaltyLogitsProcessor(optimized.PresencePenaltyLogitsProcessor, LogitsProcessor):
    """Presence penalty."""


class TemperatureLogitsProcessor(optimized.TemperatureLogitsProcessor, LogitsProcessor):
    """Temperature."""


class MinPLogitsProcessor(optimized.MinPLogitsProcessor, LogitsProcessor):
    """min-p."""


class TopKLogitsProcessor(optimized.TopKLogitsProcessor, LogitsProcessor):
    """top-k."""


class TopPLogitsProcessor(optimized.TopPLogitsProcessor, LogitsProcessor):
    """top-p."""


class AdapterLogitsProcessor(optimized.AdapterLogitsProcessor, LogitsProcessor):
    """The base class of processors made of one callable for each request."""
