"""What requests ask for in extra_args: the view of it, what is refused, and that nothing accepted raises later."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch

from logitsproc.conformance.interface import BatchUpdate, SamplingParams, host_config
from logitsproc.optimized import Pipeline
from logitsproc.optimized.asked import (
    FIELDS,
    MISPLACED,
    MISPLACED_IN_ONE,
    NEUTRAL,
    asked,
    check_asked,
    seen_within,
    with_views,
)
from logitsproc.optimized.pipeline import STAGES

VOCAB = 16
CPU = torch.device("cpu")
ASKED: dict[str, Any] = {
    "allowed_token_ids": [3, 1, 9],
    "bad_words_token_ids": [[1, 7], [2]],
    "min_tokens": 3,
    "logit_bias": {1: 2.5, 7: -1},
    "repetition_penalty": 1.5,
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "temperature": 0.5,
    "min_p": 0.2,
    "top_k": 4,
    "top_p": 0.7,
}
"""Something to ask of each stage."""
BEYOND = 10**30
ODD: list[Any] = [
    None, True, 0, -1, 5, BEYOND, -BEYOND, 0.0, -0.0, 0.5, 1e-40, 1e39, float("nan"), float("inf"), 2 + 1j,
    "", "null", "5", "0.5", "nan", "[", "[" * 5000, "9" * 5000, "{}", "[]", "[[]]", "[[1]]", "[5]", '{"1": 1}',
    '{"1": 1e999}', '{"01": 1, "1": 2}', '{"-1": 1}', '{"1": null}', '{"x": 1}', '{"٣": 1}', '{"1e3": 1}',
    f'{{"{BEYOND}": 1}}', f'{{"{"9" * 5000}": 1}}', f"[[{BEYOND}]]", f"[[{BEYOND}, 1]]", f"[[1, {BEYOND}]]",
    [], [5], [5, 5], (5,), {5}, [BEYOND], [5, BEYOND], [-1], [5.0], ["5"], [None], [[]], [[5]], [[5, 6]], [[5], []],
    {}, {5: 1.0}, {"5": 1.0}, {5: 1.0, "5": 2.0}, {-1: 1.0}, {BEYOND: 1.0}, {None: 1.0}, {5: "1"}, {5: None}, {"a": {}},
    b"5", ..., range(3), Decimal("0.5"), torch.tensor([0.5, 1.0]), torch.tensor(5),
]  # fmt: skip
"""What somebody might send."""


class Named:
    """Somebody's class, whose repr has several lines."""

    def __repr__(self) -> str:
        return "one\ntwo"


def asking(extra: Any, **own: Any) -> SamplingParams:
    return SamplingParams(extra_args=extra, **own)


def check_pipeline(params: SamplingParams) -> None:
    """As PipelineLogitsProcessor validates."""
    check_asked(params, FIELDS, MISPLACED_IN_ONE, Pipeline.validate_params)


def check_stage(field: str, params: SamplingParams) -> None:
    """As the class of one stage validates."""
    check_asked(params, (field,), MISPLACED, dict(zip(FIELDS, STAGES, strict=True))[field].validate_params)


def said_of(params: SamplingParams, check: Callable[[SamplingParams], None]) -> str:
    """Why the params are refused, or nothing."""
    try:
        check(params)
    except ValueError as error:
        return str(error)
    return ""


def refusal(params: SamplingParams) -> str:
    """Why the pipeline's class refuses the params."""
    said = said_of(params, check_pipeline)
    assert said
    return said


def update(*params: SamplingParams) -> BatchUpdate:
    return BatchUpdate(len(params), (), tuple((row, each, [1, 2], [1]) for row, each in enumerate(params)), ())


def applied(*params: SamplingParams) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and what the pipeline makes of them for these requests."""
    pipeline = Pipeline(host_config(VOCAB, max_num_seqs=8), CPU, False, custom=())
    pipeline.update_state(with_views(update(*params), VOCAB))
    logits = torch.randn(len(params), VOCAB, generator=torch.Generator().manual_seed(len(params))) * 3
    return logits, pipeline.apply(logits.clone())


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_what_extra_args_have_and_neutral_without(field: str) -> None:
    own = {name: value for name, value in ASKED.items() if name != "temperature"}
    assert getattr(asked(asking({field: ASKED[field]}, **own)), field) == ASKED[field]
    assert getattr(asked(asking({}, **own)), field) == NEUTRAL[field][0]
    assert getattr(asked(asking(None, **own)), field) == NEUTRAL[field][0]


def test_every_stage_has_its_field_and_neutral_values_are_the_defaults() -> None:
    assert len(FIELDS) == len(STAGES)
    plain = SamplingParams()
    for field, neutral in NEUTRAL.items():
        assert getattr(plain, field) in neutral


@pytest.mark.parametrize("temperature", [0, 0.0, 9e-6])
def test_a_request_is_greedy_by_its_own_temperature(temperature: float) -> None:
    assert asked(asking({"temperature": 0.7}, temperature=temperature)).temperature == temperature
    assert asked(asking({"temperature": 0.7}, temperature=1e-5)).temperature == 0.7


def test_what_stops_a_request_is_its_own() -> None:
    view = asked(asking({"min_tokens": 2, "stop_token_ids": [9]}, stop_token_ids=[3], eos_token_id=5))
    assert (view.stop_token_ids, view.all_stop_token_ids) == ([3], {3, 5})


@pytest.mark.parametrize("keys", [int, str])
def test_a_bias_as_json_gives_it(keys: type) -> None:
    bias = {keys(token): value for token, value in ASKED["logit_bias"].items()}
    for given in (bias, json.dumps(bias)):
        check_pipeline(asking({"logit_bias": given}))
        assert asked(asking({"logit_bias": given})).logit_bias == ASKED["logit_bias"]


def test_bad_words_as_json_gives_them() -> None:
    words = ASKED["bad_words_token_ids"]
    check_pipeline(asking({"bad_words_token_ids": json.dumps(words)}))
    assert asked(asking({"bad_words_token_ids": json.dumps(words)})).bad_words_token_ids == words


@pytest.mark.parametrize("field", [name for name in FIELDS if name not in ("logit_bias", "bad_words_token_ids")])
def test_no_other_field_is_read_out_of_a_text(field: str) -> None:
    assert refusal(asking({field: json.dumps(ASKED[field])})).startswith(f"extra_args: {field} must be ")


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_odd_is_refused_in_one_line_or_never_raises(field: str) -> None:
    """VAL-ERROR, VAL-LATER, VAL-PURE, PROC-INDEPENDENT: for one stage and for all, and beside another request."""
    for value in ODD:
        params = asking({field: value})
        before = repr(params.extra_args)
        said = said_of(params, check_pipeline)
        assert said == said_of(params, lambda params: check_stage(field, params))
        assert repr(params.extra_args) == before
        if said:
            assert field in said, value
            assert "\n" not in said, value
        else:
            logits, after = applied(SamplingParams(), params, SamplingParams(stop_token_ids=[BEYOND]))
            assert torch.equal(after[[0, 2]], logits[[0, 2]]), value


@pytest.mark.parametrize("extra", ["min_p", ["min_p"], 5, [("min_p", 0.5)]])
def test_extra_args_that_are_no_mapping(extra: Any) -> None:
    assert refusal(asking(extra)) == f"extra_args must be None or a mapping, not {extra!r}"
    assert asked(asking(extra)).min_p == 0


def test_a_message_is_one_line_also_for_a_value_that_is_written_in_several() -> None:
    assert refusal(asking({"min_p": Named()})) == "extra_args: min_p must be in [0, 1], not one two"


def test_what_others_put_into_extra_args_is_theirs() -> None:
    check_pipeline(asking({"kv_transfer_params": {"a": 1}, 3: 4, "minp": "x"}))


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0, True - 1])
def test_a_temperature_that_would_be_greedy_is_not_for_extra_args(temperature: float) -> None:
    assert "a greedy request says so itself" in refusal(asking({"temperature": temperature}))
    check_pipeline(asking({"temperature": temperature}, temperature=0.0))


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_given_one_way_only(field: str) -> None:
    """PIPE-ORDER: for one stage and for all; a neutral value asks for nothing."""
    both = asking({field: ASKED[field]}, **{field: ASKED[field]})
    for check in (check_pipeline, lambda params: check_stage(field, params)):
        with pytest.raises(ValueError, match=f"^{field} is in extra_args, so the request's own {field} must be "):
            check(both)
        for neutral in NEUTRAL[field]:
            check(asking({field: neutral}, **{field: ASKED[field]}))
            check(asking({field: ASKED[field]}, **{field: neutral}))


def test_bad_words_that_no_tokenizer_has_read_yet_count_too() -> None:
    params = asking({"bad_words_token_ids": [[1]]}, bad_words=["a"])
    assert refusal(params).endswith("own bad_words_token_ids must be None, not ['a']")


@pytest.mark.parametrize("field", FIELDS)
def test_beside_a_field_only_those_have_to_be_neutral_that_would_be_out_of_turn(field: str) -> None:
    for own in FIELDS:
        params = asking({field: ASKED[field]}, **{own: ASKED[own]})
        for said, misplaced in (
            (said_of(params, check_pipeline), MISPLACED_IN_ONE),
            (said_of(params, lambda params: check_stage(field, params)), MISPLACED),
        ):
            assert (f"own {own} must be " in said) == (own in (field, *misplaced.get(field, ()))), said


def test_a_request_that_asks_for_nothing_here_may_ask_for_anything_else() -> None:
    everything = {field: ASKED[field] for field in FIELDS}
    for own in (everything, everything | {"temperature": 0.0}):
        for extra in (None, {}, {"minimum": 3}):
            check_pipeline(asking(extra, **own))


def test_a_greedy_request_has_no_temperature_to_be_neutral() -> None:
    check_pipeline(asking({"presence_penalty": 0.5, "min_p": 0.1}, temperature=0.0))
    assert "own repetition_penalty" in refusal(asking({"min_p": 0.1}, temperature=0.0, repetition_penalty=2.0))


def test_tokens_beyond_the_vocabulary_are_left_out() -> None:
    extra = {
        "allowed_token_ids": [1, VOCAB, BEYOND],
        "bad_words_token_ids": [[VOCAB], [1, VOCAB], [VOCAB, 1], [2]],
        "logit_bias": {VOCAB - 1: 1.0, VOCAB: 2.0, BEYOND: 3.0},
    }
    view = seen_within(asking(extra, stop_token_ids=[2, VOCAB]), VOCAB)
    assert view.allowed_token_ids == [1]
    assert view.bad_words_token_ids == [[VOCAB, 1], [2]]
    assert view.logit_bias == {VOCAB - 1: 1.0}
    assert view.all_stop_token_ids == {2}


@pytest.mark.parametrize("more", [{}, {"top_k": 2}, {"top_p": 0.5, "temperature": 0.5}, {"min_p": 0.1}])
def test_of_a_list_that_has_nothing_left_the_row_is_masked(more: dict[str, Any]) -> None:
    """EMPTY-ROW, PROC-UNTOUCHED: alone, and beside a list of which something is left."""
    empty = asking({"allowed_token_ids": [VOCAB], **more})
    for others in ([], [asking({"allowed_token_ids": [3, VOCAB], **more}), SamplingParams()]):
        logits, after = applied(empty, *others)
        assert torch.equal(after[0], torch.full((VOCAB,), -torch.inf))
        if others:
            assert torch.isfinite(after[1]).nonzero().flatten().tolist() == [3]
            assert torch.equal(after[2], logits[2])


def test_the_update_itself_stays_as_it_was() -> None:
    given = update(asking({"min_p": 0.5}), SamplingParams())
    before = deepcopy(given)
    seen = with_views(given, VOCAB)
    assert given == before
    assert [view.min_p for _, view, _, _ in seen.added] == [0.5, 0]
    for (row, _, prompt, output), (_, _, seen_prompt, seen_output) in zip(given.added, seen.added, strict=True):
        assert (seen_prompt is prompt, seen_output is output) == (True, True), row


def test_the_request_that_the_page_shows_is_taken() -> None:
    page = (Path(__file__).parent.parent / "optimized" / "README.md").read_text()
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown
    asks = json.loads(shown[1])["vllm_xargs"]
    assert set(asks) <= set(FIELDS)
    check_pipeline(asking(asks))


def test_a_pipeline_that_is_given_its_custom_processors_loads_none() -> None:
    config = host_config(VOCAB, max_num_seqs=4, logits_processors=["nosuch:Class"])
    assert Pipeline(config, CPU, False, custom=()).custom == []
    with pytest.raises(ValueError, match="does not load"):
        Pipeline(config, CPU, False)


def test_the_views_make_the_pipeline_do_what_plain_params_do() -> None:
    chance = random.Random(0)
    for _ in range(200):
        fields = {field: ASKED[field] for field in FIELDS if chance.random() < 0.4}
        stops = {"stop_token_ids": [2], "eos_token_id": 5}
        logits, after = applied(asking(fields, **stops))
        plain = Pipeline(host_config(VOCAB, max_num_seqs=8), CPU, False)
        plain.update_state(update(SamplingParams(**fields, **stops)))
        assert torch.equal(plain.apply(logits.clone()), after), fields
