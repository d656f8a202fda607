"""Requests that ask for everything there is, and the churn that they make of a batch; all drawn from one seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from engine import VOCAB, core_of

from logitsproc.conformance.bindings import vllm_binding

LONGEST_PROMPT, LONGEST_OUTPUT = 40, 30
WAVE = 20
GREEDY_WAVES = 4
"""Every fourth wave of requests is all greedy, and a wave comes when the one before it is over."""
HOT = range(16)
"""The tokens of lists and words, so that outputs repeat and words get completed."""
NEVER = -1000.0
"""The bias of a stop token, so that no request ends by what was sampled, and every machine has the same schedule."""
GREEDY = 0.25
"""The share of greedy requests in the other waves."""
ARRIVING, ABORTED, PREEMPTED = (0, 0, 1, 2), 0.04, 0.02
"""How many requests arrive in a step, and the chances of an abort and of a preemption of all in it."""
OWN = ("max_tokens", "stop_token_ids", "eos_token_id")
"""The fields that a request has of its own, whichever way it asks for the others."""
TEXTS = ("bad_words_token_ids", "logit_bias")
"""The fields that OpenAI's protocol has no form for in `vllm_xargs`, so that they are sent as JSON."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A request: its fields of SamplingParams, its prompt, and what the priority policy puts it at.

    fast: whether it asks the fast processors, in extra_args, and not vLLM's own stages.
    """

    fields: Fields
    prompt: list[int]
    priority: int
    fast: bool = False


def min_tokens(chance: Random) -> Fields:
    """A minimum with stop tokens, an end-of-sequence id or both, none of them hot."""
    stops = chance.sample(range(len(HOT), VOCAB), 3)
    eos = {"eos_token_id": stops.pop()} if chance.random() < 0.5 else {}
    listed = {"stop_token_ids": stops} if not eos or chance.random() < 0.5 else {}
    return {"min_tokens": chance.randint(1, LONGEST_OUTPUT), **eos, **listed}


def words(chance: Random) -> list[list[int]]:
    """Up to four bad words of one to three hot tokens."""
    return [[chance.choice(HOT) for _ in range(chance.randint(1, 3))] for _ in range(chance.randint(1, 4))]


def bias(chance: Random) -> dict[int, float]:
    """A bias of each of four tokens."""
    return {token: round(chance.uniform(-5, 5), 2) for token in chance.sample(range(VOCAB), 4)}


FIELDS: tuple[Callable[[Random], Fields], ...] = (
    min_tokens,
    lambda chance: {"allowed_token_ids": chance.sample(HOT, chance.randint(8, 12))},
    lambda chance: {"bad_words_token_ids": words(chance)},
    lambda chance: {"logit_bias": bias(chance)},
    lambda chance: {"repetition_penalty": round(chance.uniform(0.7, 1.6), 2)},
    lambda chance: {"frequency_penalty": round(chance.uniform(-1, 2), 2)},
    lambda chance: {"presence_penalty": round(chance.uniform(-2, 2), 2)},
)
RANDOM_FIELDS: tuple[Callable[[Random], Fields], ...] = (
    lambda chance: {"temperature": round(chance.uniform(0.5, 1.8), 2)},
    lambda chance: {"min_p": round(chance.uniform(0.01, 0.5), 3)},
    lambda chance: {"top_k": chance.randint(1, 30)},
    lambda chance: {"top_p": round(chance.uniform(0.3, 0.99), 3)},
)


def drawn(chance: Random, greedy: bool, fast: bool) -> Drawn:
    """A request with up to five of the fields, or with those that a greedy one can have."""
    pool = FIELDS if greedy else FIELDS + RANDOM_FIELDS
    fields: Fields = {"temperature": 0.0} if greedy else {}
    for field in chance.sample(pool, chance.randint(0, 5)):
        fields |= field(chance)
    fields["max_tokens"] = chance.randint(max(1, fields.get("min_tokens", 1)), LONGEST_OUTPUT)
    if stops := unlikely(fields):
        fields["logit_bias"] = fields.get("logit_bias", {}) | stops
    prompt = [chance.randrange(VOCAB) for _ in range(chance.randint(1, LONGEST_PROMPT))]
    return Drawn(fields, prompt, chance.randrange(3), fast)


def as_sent(request: Drawn) -> Fields:
    """The fields of SamplingParams: what the fast processors are asked for is in extra_args, as it comes from JSON."""
    if not request.fast:
        return request.fields
    own = {name: value for name, value in request.fields.items() if name in OWN or (name, value) == ("temperature", 0)}
    asked = {name: value for name, value in request.fields.items() if name not in own}
    return own | {"extra_args": {name: json.dumps(value) if name in TEXTS else value for name, value in asked.items()}}


def unlikely(fields: Fields) -> dict[int, float]:
    """The bias that keeps every stop token from being sampled."""
    stops = [*fields.get("stop_token_ids", ()), fields.get("eos_token_id")]
    return {token: NEVER for token in stops if token is not None}


def waves(number: int, chance: Random) -> Iterator[list[tuple[int, Drawn]]]:
    """This many requests, numbered, wave by wave; every other one asks the fast processors."""
    for first in range(0, number, WAVE):
        greedy = first // WAVE % GREEDY_WAVES == GREEDY_WAVES - 1
        size = min(WAVE, number - first)
        numbers = range(first, first + size)
        yield [(each, drawn(chance, greedy or chance.random() < GREEDY, bool(each % 2))) for each in numbers]


def steps(engine: Any, number: int, seed: int, asked: dict[str, Drawn]) -> Iterator[None]:
    """Sends this many requests to the engine and steps it until all are over; yields after every step.

    asked: what each request asks for, by the engine's id, is put there before the engine steps.
    """
    chance = Random(seed)
    for waiting in waves(number, chance):
        living: dict[str, str] = {}
        while waiting or engine.has_unfinished_requests():
            for _ in range(min(chance.choice(ARRIVING), len(waiting))):
                send(engine, *waiting.pop(0), living, asked)
            disturb(engine, chance, living)
            for output in engine.step():
                if output.finished:
                    living.pop(output.request_id, None)
            yield


def send(engine: Any, number: int, request: Drawn, living: dict[str, str], asked: dict[str, Drawn]) -> None:
    """Adds a request, living under its number and asked under the engine's id. The arrival time breaks ties."""
    params = vllm_binding().make_params(as_sent(request))
    prompt = {"prompt_token_ids": request.prompt}
    priority = request.priority if core_of(engine).scheduler.policy.value == "priority" else 0
    sent = engine.add_request(str(number), prompt, params, arrival_time=float(number), priority=priority)
    living[str(number)], asked[sent] = sent, request


def disturb(engine: Any, chance: Random, living: dict[str, str]) -> None:
    """Now and then one request is aborted, or all that run are preempted."""
    if living and chance.random() < ABORTED:
        engine.abort_request([living.pop(chance.choice(sorted(living)))], internal=True)
    if chance.random() < PREEMPTED:
        core_of(engine).scheduler.reset_prefix_cache(reset_running_requests=True)
