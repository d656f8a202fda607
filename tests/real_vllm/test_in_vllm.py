"""The fast processors as vLLM loads them: judged by the suite, beside its own stages, and in a real engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm.exceptions import VLLMValidationError

from logitsproc.conformance import check_processor
from logitsproc.conformance.bindings import load_subject, vllm_binding
from logitsproc.conformance.checks import is_admitted
from logitsproc.conformance.interface import SamplingParams, host_config
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.suite import Settings, run
from logitsproc.conformance.vllm_sampler import Repaired
from logitsproc.optimized import vllm as taken
from logitsproc.optimized.asked import FIELDS, MISPLACED, MISPLACED_IN_ONE, NEUTRAL
from logitsproc.reference.pipeline import pipeline
from logitsproc.reference.row.temperature import GREEDY_BELOW

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
import run as program
from engine import VOCAB, Scheduler, start

CPU = torch.device("cpu")
MODULE = "logitsproc.optimized.vllm"
PIPELINE = f"{MODULE}:PipelineLogitsProcessor"
CLASSES = {field: f"{MODULE}:{name}LogitsProcessor" for field, name in zip(FIELDS, program.FAST, strict=True)}
"""field -> the class that serves it alone."""
KIND_NAMES = dict(zip(FIELDS, KINDS, strict=False))
SECONDS = 90
"""More than any takes, so that time decides nothing."""
TOKENS = 32
PROMPT, OUTPUT, STOPS = [1, 7, 9], [4, 1], [3, 2]
ASKED: dict[str, Any] = {
    "allowed_token_ids": list(range(0, TOKENS, 2)),
    "bad_words_token_ids": [[1, 7], [2]],
    "min_tokens": 3,
    "logit_bias": {1: 2.5, 2: 3.0, 5: 1.0, 7: -1.0},
    "repetition_penalty": 1.5,
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "temperature": 0.5,
    "min_p": 0.2,
    "top_k": 4,
    "top_p": 0.7,
}
"""Something to ask of each stage, so that the order of two shows."""
COMMUTE = {
    ("presence_penalty", "frequency_penalty"),
    ("temperature", "repetition_penalty"),
    ("top_k", "temperature"),
    ("top_k", "min_p"),
}
"""What is refused out of its turn, and would differ by a rounding at most."""


def as_sent(fields: dict[str, Any]) -> dict[str, Any]:
    """Values for extra_args, as OpenAI's protocol lets them come: objects and lists of lists are texts."""
    return {
        field: json.dumps(value) if field in ("logit_bias", "bad_words_token_ids") else value
        for field, value in fields.items()
    }


def asked_in_extra_args(params: SamplingParams) -> SamplingParams:
    """The same wish: every field that the processors serve is in extra_args, and neutral else."""
    fields = {field: getattr(params, field) for field in FIELDS}
    own = {"stop_token_ids": params.stop_token_ids, "eos_token_id": params.eos_token_id}
    if isinstance(params.temperature, float | int) and 0 <= params.temperature < GREEDY_BELOW:
        own["temperature"] = fields.pop("temperature")
    return SamplingParams(**own, extra_args=as_sent(fields))


def turned(cls: Any) -> type:
    """The class, for hosts whose requests have what they ask for in the fields themselves, as the suite's have."""

    class Turned(cls):  # type: ignore[misc]
        @classmethod
        def validate_params(cls, params: Any) -> None:
            super().validate_params(asked_in_extra_args(params))

        def update_state(self, batch_update: Any) -> None:
            if batch_update is not None:
                added = [(row, asked_in_extra_args(params), *lists) for row, params, *lists in batch_update.added]
                batch_update = replace(batch_update, added=added)
            super().update_state(batch_update)

    return Turned


def class_of(target: str) -> Any:
    return getattr(taken, target.partition(":")[2])


@pytest.mark.parametrize(("field", "target"), CLASSES.items())
def test_a_class_is_what_the_reference_says_and_validates_as_the_spec_says(field: str, target: str) -> None:
    kind = KIND_NAMES[field]
    report = run(Settings(load_subject(turned(class_of(target)), "plain"), KINDS[kind], seconds=SECONDS))
    assert report.verdict == "conformant"
    assert report.scope == "every well-formed update"
    held = {result.clause.id for result in report.results if result.status == "held"}
    assert {"VAL-DOMAIN", "VAL-ERROR", "VAL-ACCEPT", "VAL-PURE", "PROC-UNTOUCHED", "UPD-OVERLAP"} <= held


def test_the_page_lists_the_classes_in_the_order_of_the_stages() -> None:
    page = (Path(__file__).parent.parent.parent / "optimized" / "README.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|all of them) \|$", page, re.MULTILINE)
    classes = {target.partition(":")[2]: field for field, target in CLASSES.items()}
    assert listed == [*classes.items(), (PIPELINE.partition(":")[2], "")]
    assert [class_of(target).SERVES for target in CLASSES.values()] == [(field,) for field in FIELDS]


def by_reference(field: str) -> Callable[..., torch.Tensor]:
    """What the reference says of the row of a request that asks for this field in extra_args."""

    def oracle(params: Any, prompt: list[int] | None, output: list[int], logits: torch.Tensor) -> torch.Tensor:
        extra = dict(params.extra_args or {})
        fields = {name: json.loads(value) if isinstance(value, str) else value for name, value in extra.items()}
        if "logit_bias" in fields:
            fields["logit_bias"] = {int(token): value for token, value in fields["logit_bias"].items()}
        fields |= {"stop_token_ids": sorted(params.all_stop_token_ids)}
        row = KINDS[KIND_NAMES[field]].row(fields, prompt, output, logits.tolist())
        return logits if row.untouched else torch.tensor(row.low, dtype=torch.float32)

    return oracle


@pytest.mark.parametrize("field", ["allowed_token_ids", "bad_words_token_ids", "min_tokens", "logit_bias"])
def test_a_class_reads_extra_args_of_vllms_params_and_nothing_else(field: str) -> None:
    """By an oracle that gives one row; where the reference leaves a choice, it judges itself, as above."""
    params = [
        {"extra_args": as_sent({field: ASKED[field]}), "stop_token_ids": STOPS},
        {field: ASKED[field], "stop_token_ids": STOPS},
        {"temperature": 0.0},
    ]
    report = check_processor(CLASSES[field], oracle=by_reference(field), params=params)
    assert report.verdict == "conformant"


def test_all_stages_in_one_hold_by_the_solo_law() -> None:
    together = {"extra_args": as_sent(ASKED), "stop_token_ids": STOPS}
    alone = [{"extra_args": as_sent({field: ASKED[field]})} for field in FIELDS]
    report = check_processor(PIPELINE, params=[together, together | {"temperature": 0.0}, *alone])
    assert report.verdict == "conformant"


def sampler_of(target: str, own: dict[str, Any], extra: dict[str, Any]) -> Repaired:
    """vLLM's sampler with this class loaded, without its known deviation, serving one request."""
    binding = vllm_binding()
    sampler = Repaired(host_config(TOKENS, 4, [target]), CPU, False)
    params = binding.make_params({**own, "stop_token_ids": STOPS, "extra_args": as_sent(extra)})
    sampler.update_state(binding.batch_update(1, [], [(0, params, list(PROMPT), list(OUTPUT))], []))
    return sampler


def is_right(target: str, own: dict[str, Any], extra: dict[str, Any]) -> bool:
    """Whether it draws from what the pipeline chapter says of both together."""
    sampler, fields = sampler_of(target, own, extra), {**own, **extra, "stop_token_ids": STOPS}
    for seed in range(30):
        logits = torch.randn(1, TOKENS, generator=torch.Generator().manual_seed(seed)) * 3
        wanted = pipeline(fields, PROMPT, OUTPUT, logits[0].tolist(), skipped=False)
        if not is_admitted(wanted, sampler.apply(logits)[0].tolist()):
            return False
    return True


@pytest.mark.parametrize("own", FIELDS)
@pytest.mark.parametrize("one", [False, True], ids=["a class for each stage", "one for all"])
def test_beside_vllms_own_stages_what_is_let_in_is_in_order_and_what_is_refused_is_not(own: str, one: bool) -> None:
    """PIPE-ORDER: one field is the request's own, another is in extra_args."""
    for field in FIELDS:
        misplaced = (MISPLACED_IN_ONE if one else MISPLACED).get(field, ())
        if field != own and (field, own) not in COMMUTE:
            right = is_right(PIPELINE if one else CLASSES[field], {own: ASKED[own]}, {field: ASKED[field]})
            assert right == (own not in misplaced), field


@pytest.mark.parametrize("target", [*CLASSES.values(), PIPELINE])
def test_requests_that_ask_for_nothing_are_left_alone(target: str) -> None:
    """PROC-UNTOUCHED: with every neutral value in extra_args, and with none."""
    logits = torch.randn(1, TOKENS)
    for extra in ({}, {field: neutral[0] for field, neutral in NEUTRAL.items()}):
        assert torch.equal(sampler_of(target, {}, extra).apply(logits.clone()), logits)


@pytest.mark.parametrize("target", [*CLASSES.values(), PIPELINE])
def test_a_device_that_there_is_nothing_for_is_one_line(target: str) -> None:
    for device, why in (("meta", "work on CPUs and NVIDIA GPUs, not on meta$"), ("cuda:1", "on cuda:1 .* need Triton")):
        with pytest.raises(ValueError, match=why):
            class_of(target)(host_config(TOKENS, 4), torch.device(device), False)


def test_one_for_all_in_an_engine_whose_every_row_is_judged() -> None:
    """Beside the classes of the stages, so that they all work twice; run.py judges each on the model's logits too."""
    command = [sys.executable, program.__file__, "priority", "--add", PIPELINE, "--requests", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["differences"] == 0
    assert all(counts[what] for what in ("resumed", "swaps", "one-way moves", "all greedy", "rows judged"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real engine with the class for all stages."""
    yield start(tmp_path_factory.mktemp("model"), Scheduler.PRIORITY, [PIPELINE])


def outputs(engine: Any, *requests: dict[str, Any]) -> list[list[int]]:
    """What the requests are given, served together."""
    made = vllm_binding().make_params
    for number, fields in enumerate(requests):
        params = made({"max_tokens": 6, "temperature": 0.0} | fields)
        engine.add_request(str(number), {"prompt_token_ids": [number + 1, 5, 9]}, params)
    tokens: dict[str, list[int]] = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            tokens[output.request_id.partition("-")[0]] = list(output.outputs[0].token_ids)
    return [tokens[str(number)] for number in range(len(requests))]


def test_an_engine_does_for_extra_args_what_it_does_for_the_fields(engine: Any) -> None:
    asked: list[dict[str, Any]] = [
        {"logit_bias": {3: 40.0, 4: 39.0}, "frequency_penalty": 1.5},
        {"allowed_token_ids": [8, 9], "repetition_penalty": 1.3},
        {"bad_words_token_ids": [[7]], "logit_bias": {7: 60.0, 6: 50.0}},
        {"min_tokens": 3, "logit_bias": {2: 50.0}},
    ]
    stops = {"stop_token_ids": [2]}
    plain = outputs(engine, *(fields | stops for fields in asked))
    assert len(plain[3]) == 4
    assert outputs(engine, *({"extra_args": as_sent(fields)} | stops for fields in asked)) == plain


def test_a_token_beyond_the_vocabulary_harms_neither_the_engine_nor_another_row(engine: Any) -> None:
    """VAL-VOCABULARY: vLLM's own check does not look into extra_args."""
    alone = outputs(engine, {}, {}, {}, {})
    beyond = [VOCAB, VOCAB + 7, 2**62]
    asked = {
        "logit_bias": dict.fromkeys(beyond, 50.0),
        "bad_words_token_ids": [[token] for token in beyond],
    }
    masked = {"extra_args": {"allowed_token_ids": beyond, "top_k": 3}}
    together = outputs(engine, {}, {"extra_args": as_sent(asked)}, {**masked, "temperature": 1.0}, masked)
    assert together[:2] == alone[:2]
    assert all(0 <= token < VOCAB for tokens in together for token in tokens)
    assert outputs(engine, {}, {}, {}, {}) == alone


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"extra_args": {"min_p": 2}}, "extra_args: min_p must be in [0, 1], not 2"),
        ({"extra_args": {"top_k": 4.0}}, "extra_args: top_k must be an int of at least -1, not 4.0"),
        (
            {"extra_args": {"top_p": 0.5}, "temperature": 0.7},
            "top_p is in extra_args, so the request's own temperature must be 1, not 0.7",
        ),
    ],
)
def test_an_engine_refuses_a_request_in_one_line_and_goes_on(engine: Any, fields: Any, message: str) -> None:
    with pytest.raises(VLLMValidationError) as refused:
        outputs(engine, {"temperature": 1.0} | fields)
    assert str(refused.value) == message
    assert len(outputs(engine, {})[0]) == 6
