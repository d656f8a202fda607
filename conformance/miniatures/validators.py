"""Right transformations that let the wrong params in, or refuse them in the wrong way; and a host that lets all in."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import LogitBias, MinP
from logitsproc.reference.validation import has_floats, validate


class ValidatedMinP(MinP):
    """min-p with a right validate_params."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """Raises ValueError for a min_p that is not from 0 to 1."""
        validate({"min_p": params.min_p})


class ValidatedBias(LogitBias):
    """Logit bias with a right validate_params."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """Raises ValueError for negative ids and for numbers that float32 does not hold."""
        validate({"logit_bias": params.logit_bias})
        if not has_floats({"logit_bias": params.logit_bias}):
            raise ValueError("float32 does not hold the bias")


class LetsEverythingIn(ValidatedMinP):
    """VAL-DOMAIN: refuses nothing."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        pass


class Asserts(ValidatedMinP):
    """VAL-ERROR: refuses with an AssertionError."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        assert 0 <= params.min_p <= 1, "min_p"


class RefusesOne(ValidatedMinP):
    """VAL-ACCEPT: takes the end of the domain for outside."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        if not 0 <= params.min_p < 1:
            raise ValueError("min_p must be below 1")


class Corrects(ValidatedMinP):
    """VAL-PURE: sets a tiny min_p to 0 in the params that it is to look at."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        super().validate_params(params)
        if params.min_p < 1e-30:
            params.min_p = 0.0 if params.min_p else 1e-30


class RaisesLater(ValidatedMinP):
    """VAL-LATER: lets a tiny min_p in, and cannot calculate with it."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if params.min_p < 1e-30:
            raise ZeroDivisionError("min_p is too small")
        super().transform(logits, params, prompt, output)


class RaisesWhenAdded(ValidatedMinP):
    """VAL-LATER: lets a tiny min_p in, and refuses it in update_state."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if 0 < params.min_p < 1e-30:
            raise ValueError("min_p is too small")
        super().add(row, params, prompt, output)


class LetsInfinityIn(ValidatedBias):
    """VAL-FLOAT: looks at the ids only."""

    @classmethod
    def validate_params(cls, params: Any) -> None:
        validate({"logit_bias": params.logit_bias})


def lets_everyone_in(params: Any, vocab: int) -> None:
    """VAL-VOCABULARY: a host that does not look at token ids."""
