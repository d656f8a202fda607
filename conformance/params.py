"""The author's params: a JSON list of SamplingParams fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.kinds import Pool


def read_params(path: Path) -> Pool:
    """The list in the file; raises CannotRun when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise CannotRun(f"{path} cannot be read: {reason}") from error
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotRun(f"{path} is not JSON: {' '.join(str(error).split())}") from error
    return checked_params(value, str(path))


def checked_params(value: Any, source: str) -> Pool:
    """The value as params; raises CannotRun when it is not a list of objects."""
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise CannotRun(f"{source} is not a list of objects with SamplingParams fields")
    return [with_token_keys(item, source) for item in value]


def with_token_keys(params: dict[str, Any], source: str) -> dict[str, Any]:
    """The params with the keys of logit_bias, which JSON makes strings, as token ids."""
    if params.get("bad_words"):
        raise CannotRun(f"{source}: bad_words take a tokenizer; give their ids as bad_words_token_ids")
    bias = params.get("logit_bias")
    if bias is None:
        return params
    try:
        return params | {"logit_bias": {int(token): float(value) for token, value in bias.items()}}
    except (AttributeError, TypeError, ValueError):
        raise CannotRun(f"{source}: logit_bias is not an object of token id: number") from None
