"""The fast path on a GPU: the classes of logitsproc.optimized under the same names, with Triton's kernels.

They need Triton (the extra `gpu`) and a GPU, or TRITON_INTERPRET=1, with which Triton interprets the kernels on a CPU:
for tests, as it takes milliseconds for what a GPU does in microseconds.
"""

from logitsproc.optimized.gpu.pipeline import (
    AllowedTokenIdsLogitsProcessor,
    BadWordsLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    LogitBiasLogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
    Pipeline,
    PresencePenaltyLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsProcessor,
    TopKLogitsProcessor,
    TopPLogitsProcessor,
)

__all__ = [
    "AllowedTokenIdsLogitsProcessor",
    "BadWordsLogitsProcessor",
    "FrequencyPenaltyLogitsProcessor",
    "LogitBiasLogitsProcessor",
    "MinPLogitsProcessor",
    "MinTokensLogitsProcessor",
    "Pipeline",
    "PresencePenaltyLogitsProcessor",
    "RepetitionPenaltyLogitsProcessor",
    "TemperatureLogitsProcessor",
    "TopKLogitsProcessor",
    "TopPLogitsProcessor",
]
