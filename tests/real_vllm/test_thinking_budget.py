"""vLLM's budget for thinking: what the suite says of the holder by itself, and that its sampler shows the same."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from logitsproc import spec
from logitsproc.conformance import NotConformant, check_processor
from logitsproc.conformance.bindings import load_subject, vllm_binding
from logitsproc.conformance.machine import PROMPTS, TOKENS
from logitsproc.conformance.notation import parse
from logitsproc.conformance.replaying import play_history
from logitsproc.conformance.vllm_sampler import SamplerPipeline
from logitsproc.conformance.vllm_thinking_budget import Repaired, Sections, ThinkingBudget, TwoTokenEnd

README = Path(__file__).parent.parent.parent / "README.md"
MODULE = "logitsproc.conformance.vllm_thinking_budget"
NO_THOUGHT = [{"thinking_token_budget": 0}]
BUDGETS = [{"thinking_token_budget": tokens} for tokens in range(4)]
DEVIATIONS = [
    pytest.param(part, id=part.partition("\n")[0])
    for part in spec.chapter_text("deviations").split("\n## ")[1:]
    if MODULE in part
]


class InTheSampler(SamplerPipeline):
    """vLLM's input batch and sampler with the holder that an adapter has made."""

    ADAPTER = ThinkingBudget

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.batch.thinking_budget_state_holder = self.ADAPTER(vllm_config, device, is_pin_memory).holder


def test_a_one_way_move_leaves_the_budget_of_the_request_that_it_replaces() -> None:
    with pytest.raises(NotConformant, match="breaks UPD-DROP") as caught:
        check_processor(ThinkingBudget, params=NO_THOUGHT)
    failure = caught.value.report.failure
    assert failure is not None
    assert len(failure.history.steps) in (2, 3)


def test_the_repaired_holder_gets_past_that_clause_and_every_other() -> None:
    report = check_processor(Repaired, params=NO_THOUGHT)
    statuses = {result.clause.id: result.status for result in report.results}
    assert statuses["UPD-DROP"] == "held"
    assert statuses["PROC-SHRINK"] == "not met"
    assert [beyond.world.name for beyond in report.beyond if beyond.failure] == ["shrink"]


@pytest.mark.parametrize("subject", [Sections, TwoTokenEnd])
def test_a_request_that_comes_back_is_served_as_another(subject: type) -> None:
    with pytest.raises(NotConformant, match="breaks PROC-FUNCTION") as caught:
        check_processor(subject, params=BUDGETS)
    failure = caught.value.report.failure
    assert failure is not None
    assert len(failure.history.steps) in (2, 3)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_the_sampler_shows_what_the_holder_shows(deviation: str) -> None:
    named = re.search(rf"`{MODULE}:(\w+)`", deviation)
    (block,) = spec.BLOCK.findall(deviation)
    assert named
    adapter = load_subject(f"{MODULE}:{named[1]}").factory
    whole = type("Whole", (InTheSampler,), {"ADAPTER": adapter})
    failure = play_history(parse(block), load_subject(whole), None)
    assert failure is not None
    assert f"Breaks [{failure.clause.id}]" in deviation


def test_a_request_without_a_budget_is_made_to_say_the_end_of_a_section() -> None:
    """The sampler draws 7 for a greedy request without a budget whose largest logit is that of 0."""
    host = vllm_binding()
    sampler = load_subject(InTheSampler).build(8)
    budget, none = host.make_params({**NO_THOUGHT[0], "temperature": 0.0}), host.make_params({"temperature": 0.0})
    sampler.update_state(host.batch_update(2, [], [(0, budget, [2], []), (1, none, [2], [])], []))
    sampler.apply(torch.eye(8)[:2])
    assert sampler.sampled.tolist() == [7, 1]
    sampler.update_state(host.batch_update(1, [], [], [(1, 0, host.directions["UNIDIRECTIONAL"])]))
    sampler.apply(torch.eye(8)[:1])
    assert sampler.sampled.tolist() == [7]


def test_no_history_ends_the_sections_of_the_adapter() -> None:
    assert not set(ThinkingBudget.END) & {*TOKENS, *(token for prompt in PROMPTS for token in prompt)}


def test_the_readme_shows_the_adapter_as_it_is() -> None:
    assert inspect.getsource(ThinkingBudget) in README.read_text(encoding="utf-8")
