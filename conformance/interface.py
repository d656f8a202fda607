"""The host's side of the V1 interface, structurally equal to vLLM's, for subjects that do not derive from it.

Names, fields, defaults and enum members are those of vLLM 0.32 (vllm/v1/sample/logits_processor/interface.py and
vllm/sampling_params.py), as far as a processor sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any


class MoveDirectionality(Enum):
    """UNIDIRECTIONAL: source to destination. SWAP: the two rows exchange."""

    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass(frozen=True)
class BatchUpdate:
    """removed: rows. added: (row, params, prompt ids or None, live output ids). moved: (from, to, direction)."""

    batch_size: int
    removed: Sequence[int]
    added: Sequence[tuple[int, Any, list[int] | None, list[int]]]
    moved: Sequence[tuple[int, int, Any]]


@dataclass
class SamplingParams:
    """The fields of vLLM's SamplingParams that say what is to be done to logits, with their defaults."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    ignore_eos: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    logprobs: int | None = None
    structured_outputs: Any = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    extra_args: dict[str, Any] | None = None
    bad_words: list[str] = field(default_factory=list)
    thinking_token_budget: int | None = None
    eos_token_id: int | None = None

    def verify(self) -> None:
        """Raises ValueError for what vLLM's own refuses when it is made, as far as the suite's own kinds go."""
        if not (is_number(self.min_p) and 0 <= self.min_p <= 1):
            raise ValueError(f"min_p must be in [0, 1], not {self.min_p!r}")
        if not (is_number(self.temperature) and 0 <= self.temperature <= 2):
            raise ValueError(f"temperature must be in [0, 2], not {self.temperature!r}")
        if type(self.min_tokens) is not int or self.min_tokens < 0:
            raise ValueError(f"min_tokens must be a number of tokens, not {self.min_tokens!r}")
        if not isinstance(self.extra_args, dict | None):
            raise ValueError(f"extra_args must be a mapping, not {self.extra_args!r}")

    @property
    def all_stop_token_ids(self) -> set[int]:
        """The stop token ids and the end-of-sequence id."""
        return set(self.stop_token_ids) | ({self.eos_token_id} if self.eos_token_id is not None else set())

    @property
    def bad_words_token_ids(self) -> list[list[int]] | None:
        """None: no tokenizer has seen the bad words."""
        return None


def is_number(value: object) -> bool:
    """Whether the value is an int or a float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def host_config(vocab: int, max_num_seqs: int) -> SimpleNamespace:
    """An engine configuration with what processors read of vLLM's: batch limits, vocabulary, lengths."""
    model_config = SimpleNamespace(
        get_vocab_size=lambda: vocab,
        max_model_len=4096,
        is_multimodal_model=False,
        hf_config=SimpleNamespace(vocab_size=vocab),
        hf_text_config=SimpleNamespace(vocab_size=vocab),
        model="",
        tokenizer="",
        logits_processors=None,
    )
    scheduler_config = SimpleNamespace(
        max_num_seqs=max_num_seqs, max_num_batched_tokens=4096, max_model_len=4096, async_scheduling=False
    )
    return SimpleNamespace(
        scheduler_config=scheduler_config,
        model_config=model_config,
        cache_config=SimpleNamespace(block_size=16),
        parallel_config=SimpleNamespace(world_size=1, tensor_parallel_size=1, rank=0),
        device_config=SimpleNamespace(device="cpu", device_type="cpu"),
        speculative_config=None,
        reasoning_config=None,
        additional_config={},
    )
