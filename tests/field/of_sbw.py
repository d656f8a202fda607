"""vllm-sbw's watermark, with a tokenizer in the place of the model's."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from small_tokenizer import saved
from vllm_sbw import SBWLogitsProcessor, logits_processor

logits_processor.AutoTokenizer = SimpleNamespace(from_pretrained=cache(logits_processor.AutoTokenizer.from_pretrained))
"""As it is, but read once: the suite makes many processors."""


class Watermark(SBWLogitsProcessor):
    """The processor for a model whose tokenizer has as many words as the vocabulary has tokens."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        vllm_config.model_config.model = str(saved(vllm_config.model_config.get_vocab_size()))
        super().__init__(vllm_config, device, is_pin_memory)
