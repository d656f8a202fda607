"""The recorder inside vLLM: loaded by its name, told by vLLM's own input batch, asked by vLLM's own sampler."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm import SamplingParams, __version__
from vllm.v1.sample.logits_processor import (
    BatchUpdate,
    LogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
    build_logitsprocs,
)

from logitsproc.conformance.bindings import load_subject, vllm_binding
from logitsproc.conformance.history import History
from logitsproc.conformance.notation import parse
from logitsproc.conformance.plans import lifted, lifts, lower
from logitsproc.conformance.player import Player
from logitsproc.conformance.recorder import PATH, Recorder
from logitsproc.conformance.recording import Recording, read_recording
from logitsproc.conformance.replaying import first_breach, play_recording
from logitsproc.conformance.vllm_sampler import SamplerPipeline

RECORDER = "logitsproc.conformance.recorder:Recorder"
TEXT = """
vocab 8
A: min_p=0.5, seed=4, prompt=[5]
B: min_tokens=3, stop_token_ids=[1], eos_token_id=0, max_tokens=9, prompt=[6]
C: logit_bias={3: 1.5}, bad_words_token_ids=[[1, 2]], temperature=0.0, prompt=[7]
D: extra_args={'mine': [1]}, allowed_token_ids=[1, 2], prompt=[1]

add A@0; add B@1; add C@2
A += [4]; B += [?5]; C += [3]
move 2->0; swap 0<->1
add D@2; apply twice
B += [2]; add A@3
C += [1]; remove 3; swap 2<->0; no apply
add A@2 fresh
"""


class Recorded(SamplerPipeline):
    """vLLM's sampler with the recorder among its processors."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        vllm_config.model_config.logits_processors = [RECORDER]
        super().__init__(vllm_config, device, is_pin_memory)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "run.jsonl"
    monkeypatch.setenv(PATH, str(path))
    return path


def recording_of(history: History, path: Path) -> Recording:
    player = Player(load_subject(Recorded), replace(history, steps=()))
    for step in history.steps:
        player.play(step)
    return read_recording(path)


def test_vllm_loads_it_by_its_name(recorded: Path) -> None:
    config = vllm_binding().make_config(8, None)
    *_, recorder = build_logitsprocs(config, torch.device("cpu"), False, False, [RECORDER]).all
    assert type(recorder) is Recorder
    assert isinstance(recorder, LogitsProcessor)
    assert read_recording(recorded).host == f"vllm {__version__}"


def test_what_vllms_input_batch_tells_is_recorded_and_is_its_own_algorithm(recorded: Path) -> None:
    history = parse(TEXT)
    read = recording_of(history, recorded).history
    assert lower(lifted(read)).steps == history.steps
    assert first_breach(read) is None
    assert lifts(read) == 6
    for name, arrival in history.requests.items():
        assert read.requests[name] == arrival


def test_the_recording_is_played_to_vllms_processors(recorded: Path) -> None:
    read = recording_of(parse(TEXT), recorded).history
    for processor, kind in ((MinPLogitsProcessor, "min_p"), (MinTokensLogitsProcessor, "min_tokens")):
        assert play_recording(read, load_subject(processor), kind) is None


def test_what_vllm_makes_of_params_is_recorded(recorded: Path) -> None:
    params = SamplingParams(temperature=0.0, min_p=0.5, stop="x", bad_words=["y"], n=1, seed=-1, logprobs=True)
    config = vllm_binding().make_config(8, None)
    update = BatchUpdate(1, [], [(0, params, None, [])], [])
    Recorder(config, torch.device("cpu"), False).update_state(update)
    assert read_recording(recorded).history.requests["A"].params == {
        "temperature": 0.0,
        "stop": ["x"],
        "bad_words": ["y"],
        "logprobs": 1,
        "max_tokens": 16,
    }
