"""What a request asks for in `extra_args`, seen as the params that a fast processor reads.

vLLM always runs its own stages, and they read the request's own fields. So a request that wants a fast processor gives
the value in `extra_args` (`vllm_xargs` in OpenAI's protocol) under the field's own name, and leaves the field itself
neutral. Greedy is a request by its own temperature, and what stops it is its own too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from logitsproc.optimized.domains import require
from logitsproc.optimized.temperature import GREEDY_BELOW

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "allowed_token_ids": (None,),
    "bad_words_token_ids": (None, []),
    "min_tokens": (0,),
    "logit_bias": (None, {}),
    "repetition_penalty": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "temperature": (1,),
    "min_p": (0,),
    "top_k": (0, -1),
    "top_p": (1,),
}
"""PIPE-ORDER: field -> its neutral values, the default first, in the order of the stages."""
FIELDS = tuple(NEUTRAL)
MISPLACED: dict[str, tuple[str, ...]] = {
    "frequency_penalty": ("repetition_penalty",),
    "presence_penalty": ("repetition_penalty", "frequency_penalty"),
    "temperature": ("min_p",),
    "top_p": ("top_k",),
}
"""PIPE-ORDER: field -> the request's own fields whose stage vLLM runs on the wrong side of the field's processor."""
LATE = FIELDS[FIELDS.index("repetition_penalty") :]
MISPLACED_IN_ONE = {field: LATE[:place] for place, field in enumerate(LATE)}
"""The same of one processor for all fields: vLLM runs it before its own stages from the penalties on."""
DIGITS = 640
"""So many are an int whatever limit Python is given."""


def asked(params: Any) -> SimpleNamespace:
    """The params as a fast processor is to see them: each field as `extra_args` has it, neutral where they have not.

    params: with `extra_args`, `temperature`, `stop_token_ids` and `all_stop_token_ids`, which are the request's own.

    >>> own = {"temperature": 1.0, "stop_token_ids": [], "all_stop_token_ids": {7}}
    >>> view = asked(SimpleNamespace(extra_args={"min_p": 0.1, "logit_bias": '{"3": 1.5}'}, **own))
    >>> view.min_p, view.logit_bias, view.top_k, view.all_stop_token_ids
    (0.1, {3: 1.5}, 0, {7})
    """
    extra = params.extra_args if isinstance(params.extra_args, Mapping) else {}
    values = {field: extra.get(field, neutral[0]) for field, neutral in NEUTRAL.items()}
    values["bad_words_token_ids"] = from_json(values["bad_words_token_ids"])
    values["logit_bias"] = with_token_keys(from_json(values["logit_bias"]))
    if is_greedy(params):
        values["temperature"] = params.temperature
    stops = {"stop_token_ids": params.stop_token_ids, "all_stop_token_ids": params.all_stop_token_ids}
    return SimpleNamespace(**values, **stops)


def is_greedy(params: Any) -> bool:
    """TEMP-GREEDY: whether the request's own temperature makes it greedy."""
    return bool(params.temperature < GREEDY_BELOW)


def from_json(value: Any) -> Any:
    """What a text says, since `vllm_xargs` have neither objects nor lists of lists; anything else as it is.

    >>> from_json("[[1, 2]]"), from_json([[1, 2]]), from_json("[[1,")
    ([[1, 2]], [[1, 2]], '[[1,')
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def with_token_keys(value: Any) -> Any:
    """The mapping with ids for keys where JSON has made texts of them; anything else, and a token twice, as it is.

    >>> with_token_keys({"3": 1.5, 4: 2.0}), with_token_keys({"3": 1.5, "03": 2.0}), with_token_keys([3])
    ({3: 1.5, 4: 2.0}, {'3': 1.5, '03': 2.0}, [3])
    """
    if not isinstance(value, Mapping):
        return value
    ids = {token_of(key): number for key, number in value.items()}
    return ids if len(ids) == len(value) else value


def token_of(key: Any) -> Any:
    """The id that a text of digits says; anything else as it is."""
    is_id = isinstance(key, str) and len(key) <= DIGITS and key.isascii() and key.isdecimal()
    return int(key) if is_id else key


def check_asked(
    params: Any, fields: Iterable[str], misplaced: Mapping[str, tuple[str, ...]], validate: Callable[[Any], None]
) -> None:
    """VAL-DOMAIN, VAL-ERROR, PIPE-ORDER: raises ValueError, with one line, for what has no meaning in `extra_args`: a
    value outside its domain, and one beside which the request's own fields would act too, or out of their turn.

    fields: those that the processor serves. misplaced: field -> the own fields that have to be neutral beside it.
    validate: the processor's own check of params.
    """
    extra = params.extra_args
    require("extra_args", extra, "None or a mapping", extra is None or isinstance(extra, Mapping))
    view = asked(params)
    try:
        validate(view)
    except ValueError as error:
        raise ValueError(f"extra_args: {' '.join(str(error).split())}") from error
    for field in fields:
        is_own = field == "temperature" and is_greedy(params)
        if not is_own and getattr(view, field) not in NEUTRAL[field]:
            check_served(view, field)
            for own in (field, *misplaced.get(field, ())):
                check_own(params, field, own)


def check_served(view: SimpleNamespace, field: str) -> None:
    """TEMP-GREEDY: raises ValueError for a temperature of a greedy request, which vLLM would not know to be one."""
    if field == "temperature" and view.temperature < GREEDY_BELOW:
        raise ValueError(f"extra_args: temperature must be at least {GREEDY_BELOW}; a greedy request says so itself")


def check_own(params: Any, field: str, own: str) -> None:
    """PIPE-ORDER: raises ValueError when the request's own field is not neutral beside one that is asked for.

    >>> check_own(SimpleNamespace(top_k=5, temperature=1.0), "top_p", "top_k")
    Traceback (most recent call last):
    ValueError: top_p is in extra_args, so the request's own top_k must be 0, not 5
    """
    value, neutral = getattr(params, own), NEUTRAL[own]
    if own == "bad_words_token_ids":
        value = value or params.bad_words
    if value not in neutral and not (own == "temperature" and is_greedy(params)):
        raise ValueError(f"{field} is in extra_args, so the request's own {own} must be {neutral[0]}, not {value!r}")


def seen_within(params: Any, vocab: int) -> SimpleNamespace:
    """VAL-VOCABULARY, VAL-LATER: the view, less the tokens beyond the vocabulary: they have no logit to change.

    Of a list of allowed tokens there may be none left then, and the row is masked as a whole.
    params: accepted ones.

    >>> own = {"temperature": 1.0, "stop_token_ids": [], "all_stop_token_ids": {7, 8}}
    >>> view = seen_within(SimpleNamespace(extra_args={"logit_bias": {7: 1.0, 8: 1.0}}, **own), 8)
    >>> view.logit_bias, view.all_stop_token_ids, view.allowed_token_ids
    ({7: 1.0}, {7}, None)
    """
    view = asked(params)
    view.all_stop_token_ids = {token for token in view.all_stop_token_ids if token < vocab}
    if view.allowed_token_ids is not None:
        view.allowed_token_ids = [token for token in view.allowed_token_ids if token < vocab]
    if view.bad_words_token_ids is not None:
        view.bad_words_token_ids = [word for word in view.bad_words_token_ids if word[-1] < vocab]
    if view.logit_bias is not None:
        view.logit_bias = {token: number for token, number in view.logit_bias.items() if token < vocab}
    return view


def with_views(update: Any, vocab: int) -> Any:
    """The update, a dataclass as vLLM's is, with a view of its params for every request that is added."""
    added = [(row, seen_within(params, vocab), prompt, output) for row, params, prompt, output in update.added]
    return replace(update, added=added)
