"""The fast path: batch-level logits processors with vLLM V1's interface, on PyTorch CPU.

A row table follows the batch, a packed state is written once when its request is added, and `apply`
touches only the rows of requests that use the processor. Every class is built as
`(vllm_config, device, is_pin_memory)`.
"""

from logitsproc.optimized.adapter import AdapterLogitsProcessor
from logitsproc.optimized.allowed_token_ids import AllowedTokenIdsLogitsProcessor
from logitsproc.optimized.bad_words import BadWordsLogitsProcessor
from logitsproc.optimized.frequency_penalty import FrequencyPenaltyLogitsProcessor
from logitsproc.optimized.loading import load_processors
from logitsproc.optimized.logit_bias import LogitBiasLogitsProcessor
from logitsproc.optimized.min_p import MinPLogitsProcessor
from logitsproc.optimized.min_tokens import MinTokensLogitsProcessor
from logitsproc.optimized.pipeline import Pipeline
from logitsproc.optimized.presence_penalty import PresencePenaltyLogitsProcessor
from logitsproc.optimized.repetition_penalty import RepetitionPenaltyLogitsProcessor
from logitsproc.optimized.table import RowTable, Users
from logitsproc.optimized.temperature import TemperatureLogitsProcessor
from logitsproc.optimized.top_k import TopKLogitsProcessor
from logitsproc.optimized.top_p import TopPLogitsProcessor

__all__ = [
    "AdapterLogitsProcessor",
    "AllowedTokenIdsLogitsProcessor",
    "BadWordsLogitsProcessor",
    "FrequencyPenaltyLogitsProcessor",
    "LogitBiasLogitsProcessor",
    "MinPLogitsProcessor",
    "MinTokensLogitsProcessor",
    "Pipeline",
    "PresencePenaltyLogitsProcessor",
    "RepetitionPenaltyLogitsProcessor",
    "RowTable",
    "TemperatureLogitsProcessor",
    "TopKLogitsProcessor",
    "TopPLogitsProcessor",
    "Users",
    "load_processors",
]
