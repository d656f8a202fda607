"""What validate_params lets in: params in their domain, on its edges, and outside."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from logitsproc.conformance import interface
from logitsproc.conformance.bindings import PLAIN, VLLM, Binding, CannotRun, Subject, one_line
from logitsproc.conformance.findings import Finding
from logitsproc.conformance.kinds import Kind, Pool
from logitsproc.conformance.watch import WATCH

PARAMS = {
    VLLM: "from vllm import SamplingParams",
    PLAIN: "from logitsproc.conformance.interface import SamplingParams",
}
EDGES: dict[str, Pool] = {
    "allowed_token_ids": [{"allowed_token_ids": [0]}, {"allowed_token_ids": [*range(8)] * 2}],
    "bad_words": [{"bad_words_token_ids": [[0]]}, {"bad_words_token_ids": [[1] * 40, [2, 2]]}],
    "min_tokens": [{"min_tokens": 1, "stop_token_ids": [0, 0]}, {"min_tokens": 10**6, "stop_token_ids": [*range(8)]}],
    "logit_bias": [{"logit_bias": {0: 0.0}}, {"logit_bias": {1: -3e38, 2: 2e-38}}],
    "repetition_penalty": [{"repetition_penalty": value} for value in (1e-37, 2, 1e37)],
    "frequency_penalty": [{"frequency_penalty": -2}, {"frequency_penalty": 2.0}, {"frequency_penalty": 2e-38}],
    "presence_penalty": [{"presence_penalty": -2}, {"presence_penalty": 2.0}, {"presence_penalty": 2e-38}],
    "temperature": [{"temperature": 0}, {"temperature": 0.01}, {"temperature": 2}],
    "min_p": [{"min_p": 0}, {"min_p": 1}, {"min_p": 2e-38}, {"min_p": 1 - 1e-9}],
    "top_k": [{"top_k": -1}, {"top_k": 1}, {"top_k": 2**31 - 1}],
    "top_p": [{"top_p": 2e-38}, {"top_p": 1 - 1e-9}, {"top_p": 1}],
}
"""In the domain, at its edges."""

NAN, INFINITE = float("nan"), float("inf")
WORDS: tuple[Any, ...] = ("1", None)
"""What is no number and no comparison takes."""
OUTSIDE: dict[str, Pool] = {
    "allowed_token_ids": [{"allowed_token_ids": value} for value in ([], [-1], [1, -1], "1")],
    "bad_words": [
        {"bad_words_token_ids": [[]]},
        {"bad_words_token_ids": [[1], [2, -1]]},
        {"bad_words_token_ids": [1, 2]},
    ],
    "min_tokens": [{"min_tokens": value, "stop_token_ids": [1]} for value in (-1, *WORDS)],
    "logit_bias": [{"logit_bias": {-1: 1.0}}, {"logit_bias": {0: 1.0, -1: 1.0}}],
    "repetition_penalty": [{"repetition_penalty": value} for value in (0, -1.0, INFINITE, NAN, *WORDS)],
    "frequency_penalty": [{"frequency_penalty": value} for value in (-2.001, 2.001, NAN, *WORDS)],
    "presence_penalty": [{"presence_penalty": value} for value in (-2.001, 2.001, NAN, *WORDS)],
    "temperature": [{"temperature": value} for value in (-0.1, 2.1, INFINITE, NAN, *WORDS)],
    "min_p": [{"min_p": value} for value in (-0.001, 1.001, NAN, *WORDS)],
    "top_k": [{"top_k": value} for value in (-2, 1.5, *WORDS)],
    "top_p": [{"top_p": value} for value in (0.0, -0.1, 1.001, NAN, *WORDS)],
}

NO_FLOATS: dict[str, Pool] = {
    "logit_bias": [{"logit_bias": {0: value}} for value in (1e39, 1e-40, float("inf"), float("nan"))],
    "repetition_penalty": [{"repetition_penalty": value} for value in (1e-40, 1e38, 1e39)],
}
"""In the domain, and no float32 to calculate with."""

UNKNOWN: Pool = [{"logit_bias": {8: 1.0}}, {"stop_token_ids": [8], "min_tokens": 1}, {"allowed_token_ids": [1, 8]}]
"""Token ids that a vocabulary of 8 tokens does not have."""
UNKNOWN_VOCAB = 8


def has_validation(subject: Subject) -> bool:
    """Whether the subject has a validate_params."""
    return callable(getattr(subject.factory, "validate_params", None))


def fields_of(kind: Kind) -> list[str]:
    """The fields that a kind takes: its own, or all."""
    return [kind.field] if kind.field in EDGES else list(EDGES) if kind.field == "pipeline" else []


def edges(kind: Kind) -> Pool:
    """Params at the edges of the domains of a kind's fields."""
    return [params for field in fields_of(kind) for params in EDGES[field]]


def check_validation(subject: Subject, kind: Kind) -> Iterator[Finding]:
    """VAL-DOMAIN, VAL-ERROR, VAL-ACCEPT, VAL-PURE, VAL-FLOAT: what the subject's validate_params does with params."""
    if not has_validation(subject):
        return
    if isinstance(inspect.getattr_static(subject.factory, "validate_params"), FunctionType):
        yield Finding("VAL-PURE", "validate_params is no class method, it needs an instance", lines(subject, {}))
    for field in fields_of(kind):
        for params in EDGES[field]:
            yield from accepted(subject, params)
        for params in OUTSIDE[field]:
            yield from refused(subject, params, "VAL-DOMAIN")
        for params in NO_FLOATS.get(field, []):
            yield from refused(subject, params, "VAL-FLOAT")


def accepted(subject: Subject, params: dict[str, Any]) -> Iterator[Finding]:
    """VAL-ACCEPT, VAL-ERROR, VAL-PURE: params in their domain are accepted, and are afterwards what they were."""
    made = subject.binding.make_params(params)
    before = copy.deepcopy(made)
    error = outcome(subject, made)
    if error is not None and not isinstance(error, subject.binding.refusals):
        yield Finding("VAL-ERROR", f"validate_params raised {one_line(error)} for {params}", lines(subject, params))
        return
    trouble = None if error is None else f"validate_params refuses {params}: {one_line(error)}"
    yield Finding("VAL-ACCEPT", trouble, lines(subject, params))
    changed = made != before
    yield Finding("VAL-PURE", f"validate_params changed {params}" if changed else None, lines(subject, params))


def refused(subject: Subject, params: dict[str, Any], clause: str) -> Iterator[Finding]:
    """VAL-DOMAIN, VAL-ERROR, VAL-FLOAT: params outside are refused by the host, or with ValueError."""
    made = unverified(subject.binding, params)
    if made is None:
        yield Finding(clause)
        yield Finding("VAL-ERROR")
        return
    error = outcome(subject, made)
    if error is not None and not isinstance(error, subject.binding.refusals):
        trouble = f"validate_params refuses {params} with {one_line(error)}"
        yield Finding("VAL-ERROR", trouble, lines(subject, params))
        return
    yield Finding("VAL-ERROR")
    yield Finding(clause, f"validate_params accepts {params}" if error is None else None, lines(subject, params))


def unverified(binding: Binding, params: dict[str, Any]) -> Any:
    """The host's params object, which the plain host makes of anything; None where the host refuses.

    vLLM's tokenizer makes the token ids of bad words, so that nobody can ask for wrong ones.
    """
    if binding.name == PLAIN:
        return interface.SamplingParams(**params)
    if "bad_words_token_ids" in params:
        return None
    try:
        made = binding.make_params(params)
        binding.let_in(made, UNKNOWN_VOCAB)
    except (CannotRun, ValueError):
        return None
    return made


def outcome(subject: Subject, made: Any) -> BaseException | None:
    """What validate_params, called on the class, raises."""
    try:
        WATCH.call(subject.factory.validate_params, made)  # type: ignore[attr-defined]
    except (Exception, SystemExit) as error:
        return error
    return None


def lines(subject: Subject, params: dict[str, Any]) -> tuple[str, ...]:
    """The call as a script."""
    module, _, qualified = subject.target.partition(":")
    given = ", ".join(f"{field}={value!r}" for field, value in params.items())
    return (
        PARAMS[subject.binding.name],
        f"from {module} import {qualified.partition('.')[0]}",
        "",
        "inf, nan = float('inf'), float('nan')",
        f"params = SamplingParams({given})",
        f"{qualified}.validate_params(params)",
        "print(params)",
    )


def check_vocabulary(binding: Binding) -> Iterator[Finding]:
    """VAL-VOCABULARY: the host lets no token in that the vocabulary does not have, and every other."""
    for params in UNKNOWN:
        made = binding.make_params(params)
        script = (f"# a vocabulary of {UNKNOWN_VOCAB} tokens, and {params}",)
        for vocab, wanted in ((UNKNOWN_VOCAB, False), (UNKNOWN_VOCAB + 1, True)):
            trouble = f"the host {'refuses' if wanted else 'lets in'} {params} with {vocab} tokens"
            yield Finding("VAL-VOCABULARY", None if lets_in(binding, made, vocab) is wanted else trouble, script)


def lets_in(binding: Binding, made: Any, vocab: int) -> bool:
    """Whether the host lets the params in."""
    try:
        binding.let_in(made, vocab)
    except ValueError:
        return False
    return True
