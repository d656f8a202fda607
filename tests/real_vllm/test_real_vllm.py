"""The suite on the real vLLM: its built-in processors, its adapter, and its types."""

import re
from pathlib import Path

import adapters
import pytest
import torch
from vllm.v1.sample.logits_processor import (
    LogitBiasLogitsProcessor,
    LogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
)

from logitsproc import spec
from logitsproc.conformance import NotConformant, check_processor, interface
from logitsproc.conformance.bindings import load_subject, vllm_binding
from logitsproc.conformance.kinds import KINDS, kind_named
from logitsproc.conformance.notation import parse
from logitsproc.conformance.replaying import check_sights, play_history
from logitsproc.conformance.suite import Report, Settings, run
from logitsproc.conformance.vllm_sampler import SamplerPipeline

README = Path(__file__).parent.parent.parent / "README.md"
CLAUSE, TARGET = r"Breaks \[([A-Z-]+)\]", r"seen in\s+`([^`]+)`"
DEVIATIONS = [
    pytest.param(part, id=part.partition("\n")[0])
    for part in spec.chapter_text("deviations").split("\n## ")[1:]
    if "```history" in part
]
BUILTINS = {
    "min_p": MinPLogitsProcessor,
    "logit_bias": LogitBiasLogitsProcessor,
    "min_tokens": MinTokensLogitsProcessor,
}


def broken_beyond(report: Report) -> dict[str, int]:
    """The clauses that do not hold beyond reachable updates, and how many steps show it."""
    failures = [beyond.failure for beyond in report.beyond]
    return {failure.clause.id: len(failure.history.steps) for failure in failures if failure is not None}


@pytest.mark.parametrize("kind", BUILTINS)
def test_built_ins_hold_under_the_solo_law_on_reachable_updates_and_not_with_overlap(kind: str) -> None:
    report = check_processor(BUILTINS[kind])
    assert report.verdict == "conformant"
    assert report.scope == "reachable updates"
    assert report.settings.subject.binding.name == "vllm"
    beyond = broken_beyond(report)
    assert beyond.pop("UPD-OVERLAP") in (2, 3)
    assert set(beyond) == ({"PROC-SHRINK"} if kind == "min_tokens" else set())


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_every_deviation_shows_in_its_history(deviation: str) -> None:
    clause, target = re.search(CLAUSE, deviation), re.search(TARGET, deviation)
    (block,) = spec.BLOCK.findall(deviation)
    assert clause and target
    history = parse(block)
    check_sights(history, kind_named(history.kind))
    failure = play_history(history, load_subject(target[1]), None)
    assert failure is not None, "vLLM keeps the clause now"
    assert failure.clause.id == clause[1]


def test_every_clause_that_vllm_does_not_keep_is_a_deviation() -> None:
    table = re.search(r"<!-- vllm: .*? -->\n(.*?)<!-- /vllm -->", README.read_text(), re.DOTALL)
    assert table
    named = set(re.findall(r"\b[A-Z]+-[A-Z]+(?:-[A-Z]+)*\b", table[1]))
    assert named == set(re.findall(CLAUSE, spec.chapter_text("deviations")))


def test_the_sampler_draws_from_the_support_that_it_shows() -> None:
    """Greedy requests get a largest token, the others one that is not masked."""
    binding = vllm_binding()
    sampler = load_subject(SamplerPipeline).build(64)
    params = [{"temperature": 0.0}, {"top_k": 2}, {"top_p": 0.5}, {"allowed_token_ids": [5], "temperature": 0.7}]
    added = [(row, binding.make_params(fields), [1], []) for row, fields in enumerate(params)]
    sampler.update_state(binding.batch_update(len(params), [], added, []))
    for seed in range(20):
        logits = torch.randn(len(params), 64, generator=torch.Generator().manual_seed(seed)) * 3
        shown = sampler.apply(logits.clone())
        drawn = sampler.sampled.tolist()
        assert drawn[0] == int(logits[0].argmax())
        assert all(shown[row, token] > -torch.inf for row, token in enumerate(drawn))


@pytest.mark.parametrize(("adapter", "ban"), [(adapters.BansLast, "last"), (adapters.BansPrompt, "prompt")])
def test_adapters_hold_on_reachable_updates(adapter: type, ban: str) -> None:
    report = check_processor(adapter, params=[{"extra_args": {"ban": ban}}])
    assert report.verdict == "conformant"
    expected = {"UPD-OVERLAP", "PROC-PROMPT-NONE"} if ban == "prompt" else {"UPD-OVERLAP"}
    assert set(broken_beyond(report)) == expected


def test_a_wrong_adapter_is_caught() -> None:
    with pytest.raises(NotConformant, match="breaks PROC-FUNCTION"):
        check_processor(adapters.SharesOneCounter, params=[{"extra_args": {"ban": "last"}}])


def test_a_wrong_class_on_vllms_base_is_caught_by_its_clause() -> None:
    with pytest.raises(NotConformant, match="breaks PROC-STATE-DEPARTED"):
        check_processor(adapters.ForgetsToClear, params=[{"extra_args": {"token": 3}}])


def test_a_class_on_vllms_base_is_fed_vllms_types_and_any_other_ours() -> None:
    assert load_subject(adapters.ForgetsToClear).binding.name == "vllm"
    assert issubclass(adapters.ForgetsToClear, LogitsProcessor)
    assert load_subject("logitsproc.optimized:MinPLogitsProcessor").binding.name == "plain"


def test_the_bundled_processors_hold_on_vllms_types_too() -> None:
    subject = load_subject("logitsproc.optimized:MinTokensLogitsProcessor", "vllm")
    report = run(Settings(subject, KINDS["min_tokens"]))
    assert report.verdict == "conformant"
    assert report.scope == "every well-formed update"


def test_our_params_have_vllms_fields_and_defaults() -> None:
    """Structurally equal: every field that ours has, vLLM's has, with the same value when nothing is asked."""
    theirs = vllm_binding().make_params({"stop_token_ids": [3], "eos_token_id": 5})
    ours = interface.SamplingParams(stop_token_ids=[3], eos_token_id=5)
    for field in (*interface.SamplingParams.__dataclass_fields__, "all_stop_token_ids", "bad_words_token_ids"):
        assert getattr(ours, field) == getattr(theirs, field), field


def test_our_enum_and_update_have_vllms_names() -> None:
    from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality

    assert [item.name for item in MoveDirectionality] == [item.name for item in interface.MoveDirectionality]
    assert list(BatchUpdate.__dataclass_fields__) == list(interface.BatchUpdate.__dataclass_fields__)
