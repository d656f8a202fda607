"""The host's side of the V1 interface, structurally equal to vLLM's, for subjects that do not derive from it.

Names, fields, defaults and enum members are those of vLLM 0.32 (vllm/v1/sample/logits_processor/interface.py and
vllm/sampling_params.py), as far as a processor sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import index
from types import SimpleNamespace
from typing import Any

from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, Update
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import GREEDY_BELOW
from logitsproc.reference.validation import in_vocabulary, is_number, validate


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


def as_update(given: Any, request_of: Callable[[Any], Request]) -> Update:
    """A host's update in the model's terms; request_of gives the request of an item of `added`, without its row.

    Raises AttributeError, TypeError or ValueError for what is no update.
    """
    added = tuple((index(row), request_of(rest)) for row, *rest in given.added)
    moved = tuple((index(source), index(to), direction(how)) for source, to, how in given.moved)
    return Update(index(given.batch_size), tuple(index(row) for row in given.removed), added, moved)


def direction(given: Any) -> str:
    """UNIDIRECTIONAL or SWAP, of an enum's member or its name; raises ValueError for anything else."""
    name = getattr(given, "name", given)
    if name not in (UNIDIRECTIONAL, SWAP):
        raise ValueError(f"no direction {given!r}")
    return str(name)


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
    bad_words_token_ids: list[list[int]] | None = None
    thinking_token_budget: int | None = None
    eos_token_id: int | None = None

    def __post_init__(self) -> None:
        """A greedy request asks for none of what is for random sampling only."""
        if is_number(self.temperature) and self.temperature < GREEDY_BELOW:
            self.top_p, self.top_k, self.min_p = 1.0, 0, 0.0

    def verify(self) -> None:
        """Raises ValueError for what vLLM's own refuses when it is made, as far as the suite's own kinds go."""
        validate(vars(self))
        if not isinstance(self.extra_args, dict | None):
            raise ValueError(f"extra_args must be a mapping, not {self.extra_args!r}")

    def verify_vocabulary(self, vocab: int) -> None:
        """VAL-VOCABULARY: raises ValueError when a token id is not in the vocabulary."""
        if not in_vocabulary(vars(self), vocab):
            raise ValueError(f"a token id is not in the vocabulary, which has {vocab} tokens")

    @property
    def all_stop_token_ids(self) -> set[int]:
        """The stop token ids and the end-of-sequence id."""
        return set(self.stop_token_ids or ()) | ({self.eos_token_id} if self.eos_token_id is not None else set())


def host_config(
    vocab: int, max_num_seqs: int, logits_processors: Sequence[type | str] | None = None
) -> SimpleNamespace:
    """An engine configuration with what processors read of vLLM's: batch limits, vocabulary, lengths, custom ones."""
    model_config = SimpleNamespace(
        get_vocab_size=lambda: vocab,
        max_model_len=4096,
        is_multimodal_model=False,
        hf_config=SimpleNamespace(vocab_size=vocab),
        hf_text_config=SimpleNamespace(vocab_size=vocab),
        model="",
        tokenizer="",
        logits_processors=logits_processors,
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
