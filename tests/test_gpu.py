"""The GPU backend with its kernels interpreted: beside the CPU backend's stages, in every way through the kernels."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import weakref
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_pipeline import (
    PLAIN,
    STAGES,
    Request,
    Tokens,
    arrival,
    asking,
    check,
    one_step,
    some_stages,
    started,
)
from test_selection import KINDS, as_slice, as_transposed, check_top_p, odd_rows, same_bits

from logitsproc import optimized
from logitsproc.conformance.interface import BatchUpdate, SamplingParams
from logitsproc.optimized import gpu
from logitsproc.optimized.gpu import batch as device_batch
from logitsproc.optimized.gpu import slots

sys.path.insert(0, str(Path(__file__).parent / "device"))
import interpreted

interpreted.hurry(overflows=True)
VOCABS = [1, 2, 7, 33, 64, 1000]
ALONE = [name for name in gpu.__all__ if name != "Pipeline"]
FAR = 2**31
WAYS = [(128, (256,)), (1, (16,)), (3, (16, 64))]
"""How many candidates are wanted, and for how many there is room."""
every_way = pytest.mark.parametrize(("wide", "widths"), WAYS)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch, wide: int, widths: tuple[int, ...]) -> None:
    """Selection with other numbers, so that small vocabularies take every way through the kernels."""
    monkeypatch.setattr(device_batch, "WIDE", wide)
    monkeypatch.setattr(device_batch, "WIDTHS", widths)


@pytest.mark.parametrize("vocab", VOCABS)
@pytest.mark.usefixtures("narrow")
@every_way
def test_all_stages(vocab: int, wide: int) -> None:
    chance = random.Random(vocab + wide)
    for rows in (1, len(KINDS)):
        batch = [asking(some_stages(chance), vocab, chance) for _ in range(rows)]
        logits = odd_rows(rows, vocab, chance.randrange(1000))
        changed = logits.clone()
        assert started(gpu.Pipeline, vocab, batch).apply(changed) is changed
        check(batch, logits, changed)


@pytest.mark.parametrize("stages", [["min-p"], ["top-k"], ["top-p"], ["min-p", "top-p"]])
@pytest.mark.usefixtures("narrow")
@every_way
def test_what_is_cut_off(stages: list[str], wide: int) -> None:
    chance = random.Random(wide)
    batch = [asking(stages, 300, chance) for _ in KINDS]
    logits = odd_rows(len(batch), 300)
    check(batch, logits, started(gpu.Pipeline, 300, batch).apply(logits.clone()))


def test_several_slices_and_blocks() -> None:
    vocab, chance = 9001, random.Random(0)
    batch = [asking(some_stages(chance), vocab, chance) for _ in range(4)]
    logits = torch.cat([odd_rows(2, vocab), odd_rows(2, vocab, 1)])
    check(batch, logits, started(gpu.Pipeline, vocab, batch).apply(logits.clone()))


def test_one_slice_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_batch, "PROGRAMS", 1)
    vocab, chance = 5003, random.Random(1)
    batch = [asking(["top-p", "temperature"], vocab, chance) for _ in range(3)]
    logits = odd_rows(3, vocab)
    check(batch, logits, started(gpu.Pipeline, vocab, batch).apply(logits.clone()))


@pytest.mark.parametrize("vocab", [7, 64])
@pytest.mark.parametrize("name", ALONE)
def test_each_stage_alone(name: str, vocab: int) -> None:
    chance = random.Random(vocab)
    batch = [asking(list(STAGES) if row % 3 else [], vocab, chance) for row in range(len(KINDS))]
    logits = odd_rows(len(batch) + 1, vocab)
    changed = logits.clone()
    assert started(getattr(gpu, name), vocab, batch).apply(changed) is changed
    expected = started(getattr(optimized, name), vocab, batch).apply(logits.clone())
    if name != "TopPLogitsProcessor":
        assert same_bits(changed, expected)
    for (params, _, _), before, after in zip(batch, logits, changed, strict=False):
        check_top_p(before, after, params.top_p) if name == "TopPLogitsProcessor" else None


@pytest.mark.parametrize("name", ALONE)
def test_a_stage_answers_as_the_cpus(name: str) -> None:
    mine, cpus = (started(getattr(module, name), 8, []) for module in (gpu, optimized))
    assert mine.is_argmax_invariant() is cpus.is_argmax_invariant()
    with pytest.raises(ValueError):
        mine.validate_params(wrong())


def wrong() -> SamplingParams:
    """Params that every stage refuses."""
    params = SamplingParams(min_tokens=1)
    for field in vars(params):
        setattr(params, field, "no")
    return params


@pytest.mark.parametrize("layout", [as_slice, as_transposed])
@pytest.mark.parametrize("kind", [gpu.Pipeline, gpu.MinPLogitsProcessor])
def test_logits_of_any_strides(layout: Any, kind: type) -> None:
    chance = random.Random(0)
    batch = [asking(list(STAGES), 40, chance) for _ in range(4)]
    logits = odd_rows(4, 40)
    expected = started(kind, 40, batch).apply(logits.clone())
    lying = layout(logits)
    assert started(kind, 40, batch).apply(lying) is lying
    assert same_bits(lying, expected)


def test_rows_that_are_farther_apart_than_32_bits_reach() -> None:
    chance = random.Random(0)
    batch = [asking(list(STAGES), 64, chance) for _ in range(2)]
    logits = odd_rows(2, 64)
    expected = started(gpu.Pipeline, 64, batch).apply(logits.clone())
    far = torch.empty(FAR + 128).as_strided((2, 64), (FAR + 32, 1)).copy_(logits)
    assert same_bits(started(gpu.Pipeline, 64, batch).apply(far).clone(), expected)


@pytest.mark.usefixtures("narrow")
@every_way
def test_out_of_place_every_row_is_written_and_the_input_keeps_its_bits(wide: int) -> None:
    chance = random.Random(wide)
    stages = [stage for stage in STAGES if stage not in ("bias", "words", "minimum")]
    batch = [asking(stages if row % 3 else [], 70, chance) for row in range(len(KINDS))]
    logits = odd_rows(len(batch) + 1, 70)
    expected = started(gpu.Pipeline, 70, batch).apply(logits.clone())
    processor, given, out = started(gpu.Pipeline, 70, batch), logits.clone(), as_slice(torch.zeros_like(logits))
    processor.prepare(given)
    with np.errstate(all="ignore"):
        processor.batch.launch(given, out)
    assert same_bits(out, expected)
    assert same_bits(given, logits)


@pytest.mark.parametrize("custom", [None, ["test_pipeline:Shift"], ["test_pipeline:ThreeLargest"]])
def test_any_history_gives_what_a_fresh_pipeline_gives(custom: list[Any] | None) -> None:
    chance = random.Random(0)
    vocab, batch = 65, [asking(some_stages(chance), 65, chance) for _ in range(3)]
    processor = started(gpu.Pipeline, vocab, batch, custom)
    for step in range(12):
        for _, _, output in batch:
            change = chance.randrange(4)
            output[len(output) - (change == 0) :] = [chance.randrange(-1, vocab)] * (change > 1)
        processor.update_state(one_step(batch, vocab, chance) if chance.random() < 0.7 else None)
        logits = odd_rows(len(batch) + 1, vocab, step)
        fresh = started(gpu.Pipeline, vocab, deepcopy(batch), custom).apply(logits.clone())
        assert same_bits(processor.apply(logits.clone()), fresh)
        assert same_bits(processor.apply(logits.clone()), fresh)
        if custom is not None:
            cpus = started(optimized.Pipeline, vocab, deepcopy(batch), custom).apply(logits.clone())
            assert torch.equal(fresh.isneginf().sum(1), cpus.isneginf().sum(1))
        else:
            check(batch, logits[:-1], fresh[:-1])


def test_slots_grow_with_what_is_asked_and_keep_what_they_have() -> None:
    batch: list[Request] = [(SamplingParams(min_p=0.5, presence_penalty=1.0), [1], [2, 2])]
    processor = started(gpu.Pipeline, 200, batch)
    logits = odd_rows(1, 200)
    processor.apply(logits.clone())
    first = processor.batch.generation
    for size in (3, 300):
        batch += [(SamplingParams(logit_bias=dict.fromkeys(range(100), 1.0), temperature=0.7), [], [5])]
        batch += [(SamplingParams(bad_words_token_ids=[[token] for token in range(60)]), [], [])] * size
        processor.update_state(arrival(batch))
        logits = odd_rows(len(batch), 200)
        check(batch, logits, processor.apply(logits.clone()))
    assert processor.batch.generation > first


def test_another_vocabulary_fills_the_slots_anew() -> None:
    chance = random.Random(0)
    batch = [asking(list(STAGES), 8, chance) for _ in range(3)]
    processor = started(gpu.Pipeline, 8, batch)
    for vocab in (8, 90, 8):
        logits = odd_rows(3, vocab)
        check(batch, logits, processor.apply(logits.clone()))


def test_what_the_device_holds_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(device_batch, "arrival", lambda *given: sent.append(1) or slots.arrival(*given))
    output = [3]
    batch: list[Request] = [(SamplingParams(min_p=0.5, frequency_penalty=1.0), [1], output), (PLAIN, [], [])]
    processor = started(gpu.Pipeline, 16, batch)
    processor.apply(odd_rows(2, 16))
    mail = processor.batch.sent
    processor.update_state(None)
    processor.apply(odd_rows(2, 16))
    quiet = processor.batch.sent
    processor.apply(odd_rows(2, 16))
    assert processor.batch.sent is quiet
    output.append(4)
    processor.apply(odd_rows(2, 16))
    assert sent == [1]
    assert len(quiet) < len(processor.batch.sent) < len(mail)


@pytest.mark.parametrize("departure", [((1,), (), ()), ((), ((1, PLAIN, [], []),), ())])
def test_nothing_is_kept_of_a_request_that_left(departure: Any) -> None:
    params, prompt, output = asking(list(STAGES), 16, random.Random(0))
    params.temperature, prompt, output = 0.5, Tokens([1]), Tokens(output)
    left = weakref.ref(params), weakref.ref(prompt), weakref.ref(output)
    processor = started(gpu.Pipeline, 16, [(PLAIN, [], []), (params, prompt, output)])
    processor.apply(odd_rows(2, 16))
    del params, prompt, output
    processor.update_state(BatchUpdate(2, *departure))
    gc.collect()
    assert [reference() for reference in left] == [None] * 3


@pytest.mark.parametrize("kind", [gpu.Pipeline, gpu.LogitBiasLogitsProcessor, gpu.AllowedTokenIdsLogitsProcessor])
@pytest.mark.parametrize("rows", [0, 2])
def test_nothing_to_do(kind: type, rows: int) -> None:
    logits = odd_rows(rows, 16) if rows else torch.empty(0, 16)
    before = logits.clone()
    processor = started(kind, 16, [(PLAIN, [], [])] * rows)
    assert processor.apply(logits) is logits and same_bits(logits, before)


@pytest.mark.parametrize(
    "asked", [{"allowed_token_ids": [16]}, {"logit_bias": {16: 1.0}}, {"bad_words_token_ids": [[16]]}]
)
def test_a_token_beyond_the_vocabulary_changes_nothing(asked: dict[str, Any]) -> None:
    good: Request = (SamplingParams(repetition_penalty=2.0, min_p=0.1), [1], [2])
    processor, logits = started(gpu.Pipeline, 16, [good, (SamplingParams(**asked), [], [])]), odd_rows(2, 16)
    before = logits.clone()
    for _ in range(2):
        with pytest.raises(IndexError, match="token 16 is beyond the vocabulary of 16 tokens"):
            processor.apply(logits)
    assert same_bits(logits, before)
    processor.update_state(BatchUpdate(1, (1,), (), ()))
    check([good], before[:1], processor.apply(logits[:1]))


def test_a_request_without_a_row_is_an_error() -> None:
    with pytest.raises(IndexError, match="there is no row 1 in logits of 1 rows"):
        started(gpu.Pipeline, 16, [(SamplingParams(min_p=0.5), [], [])] * 2).apply(odd_rows(1, 16))


def test_without_a_gpu_or_the_interpreter_one_line_says_so() -> None:
    command = [Path(sys.executable).parent / "logitsproc", "check", "logitsproc.optimized.gpu:Pipeline"]
    done = subprocess.run(
        [*command, "--as", "pipeline"], capture_output=True, text=True, env={"TRITON_INTERPRET": "0"}, timeout=60
    )
    assert done.returncode == 2
    assert "need a GPU, or TRITON_INTERPRET=1" in done.stderr and "Traceback" not in done.stderr
