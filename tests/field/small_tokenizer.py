"""A tokenizer with a word for each token id, where a processor wants one of a model that is not there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

MODELS = TemporaryDirectory(prefix="models-")
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


@cache
def saved(vocab: int) -> Path:
    """The folder of a model that has a tokenizer of this many words, and no weights."""
    folder = Path(MODELS.name) / str(vocab)
    words = {f"w{token}": token for token in range(vocab)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder
