"""The fast path: batch-level logits processors with vLLM V1's interface, on PyTorch CPU.

A row table follows the batch, a packed state is written once when its request is added, and `apply`
touches only the rows of requests that use the processor. Every class is built as
`(vllm_config, device, is_pin_memory)`.
"""

from logitsproc.optimized.logit_bias import LogitBiasLogitsProcessor
from logitsproc.optimized.min_p import MinPLogitsProcessor
from logitsproc.optimized.min_tokens import MinTokensLogitsProcessor
from logitsproc.optimized.table import RowTable, Users

__all__ = [
    "LogitBiasLogitsProcessor",
    "MinPLogitsProcessor",
    "MinTokensLogitsProcessor",
    "RowTable",
    "Users",
]
