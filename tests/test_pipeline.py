"""All stages as one: beside the stages' own processors in turn, and beside a sort for what is cut off."""

from __future__ import annotations

import gc
import math
import random
import weakref
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from test_selection import KINDS, check_top_p, every_way, odd_rows, same_bits, top_k_of

from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality, SamplingParams, host_config
from logitsproc.optimized import (
    AllowedTokenIdsLogitsProcessor,
    BadWordsLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    LogitBiasLogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
    Pipeline,
    PresencePenaltyLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsProcessor,
    TopKLogitsProcessor,
    pipeline,
    records,
    selection,
)
from logitsproc.optimized.selection import largest

Request = tuple[SamplingParams, list[int] | None, list[int]]
"""params, prompt, live output"""

ONE_WAY, SWAP = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP
EDITS = (
    AllowedTokenIdsLogitsProcessor,
    BadWordsLogitsProcessor,
    MinTokensLogitsProcessor,
    LogitBiasLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    PresencePenaltyLogitsProcessor,
)
CUTS_BUT_TOP_P = (TemperatureLogitsProcessor, MinPLogitsProcessor, TopKLogitsProcessor)
VOCABS = [1, 2, 7, 63, 64, 65, 1000]
PLAIN = SamplingParams()


def fields(vocab: int, chance: random.Random) -> dict[str, dict[str, Any]]:
    """What to ask of each stage: stage -> fields of params."""

    def some(most: int) -> list[int]:
        return [chance.randrange(vocab) for _ in range(chance.randint(1, most))]

    return {
        "allowed": {"allowed_token_ids": some(vocab)},
        "words": {"bad_words_token_ids": [some(2) for _ in range(4)]},
        "minimum": {"min_tokens": chance.randint(0, 6), "stop_token_ids": some(3)},
        "bias": {"logit_bias": {token: chance.uniform(-9, 9) for token in some(5)}},
        "repetition": {"repetition_penalty": chance.choice([0.5, 1.1, 2.0])},
        "frequency": {"frequency_penalty": chance.uniform(-2, 2)},
        "presence": {"presence_penalty": chance.uniform(-2, 2)},
        "temperature": {"temperature": chance.choice([0.0, 0.3, 0.5, 0.7, 1.3, 1.9])},
        "min-p": {"min_p": chance.choice([1e-4, 0.02, 0.3, 0.9, 1.0])},
        "top-k": {"top_k": chance.choice([-1, 1, 2, 5, 40, vocab, 10**30])},
        "top-p": {"top_p": chance.choice([1e-3, 0.3, 0.8, 0.95])},
    }


STAGES = tuple(fields(8, random.Random(0)))


def asking(stages: list[str], vocab: int, chance: random.Random) -> Request:
    """A request that asks these stages for something, with some prompt and output."""
    choice = fields(vocab, chance)
    params = SamplingParams(**{field: value for stage in stages for field, value in choice[stage].items()})
    prompt = [chance.randrange(vocab) for _ in range(chance.randint(0, 5))]
    output = [chance.randrange(vocab) for _ in range(chance.randint(0, 8))]
    return params, chance.choice([None, prompt, prompt]), output


def some_stages(chance: random.Random) -> list[str]:
    """Sometimes none, sometimes all."""
    share = chance.choice([0.0, 0.2, 0.5, 1.0])
    return [stage for stage in STAGES if chance.random() < share]


def configuration(vocab: int, custom: list[Any] | None = None) -> SimpleNamespace:
    config = host_config(vocab, max_num_seqs=256)
    config.model_config.logits_processors = custom
    return config


def build(kind: type[Any], vocab: int, custom: list[Any] | None = None) -> Any:
    return kind(configuration(vocab, custom), torch.device("cpu"), False)


def started(kind: type[Any], vocab: int, batch: list[Request], custom: list[Any] | None = None) -> Any:
    processor = build(kind, vocab, custom)
    processor.update_state(arrival(batch))
    return processor


def arrival(batch: list[Request]) -> BatchUpdate:
    return BatchUpdate(len(batch), (), tuple((row, *request) for row, request in enumerate(batch)), ())


def in_turn(kinds: tuple[type[Any], ...], batch: list[Request], logits: torch.Tensor) -> torch.Tensor:
    """The processors one after the other."""
    for kind in kinds:
        logits = started(kind, logits.shape[1], batch).apply(logits)
    return logits


def cut_by_sort(params: SamplingParams, row: torch.Tensor) -> torch.Tensor:
    """Temperature, min-p and top-k of one row, the latter by a sort."""
    if params.temperature < 1e-5:
        return row
    row = row / torch.tensor(params.temperature)
    top = row.max()
    if params.min_p and top.isfinite():
        row = torch.where(row >= top + torch.tensor(math.log(params.min_p)), row, -math.inf)
    return top_k_of(row, params.top_k)


def check(batch: list[Request], logits: torch.Tensor, after: torch.Tensor) -> None:
    """The pipeline's rows are what the stages give in turn; bit for bit up to top-p, which has its band."""
    edited = in_turn(EDITS, batch, logits.clone())
    before = in_turn(CUTS_BUT_TOP_P, batch, edited.clone()) if is_random(batch) else edited
    for (params, _, _), one, other, changed in zip(batch, edited, before, after, strict=True):
        if is_random(batch):
            assert same_bits(cut_by_sort(params, one), other)
        check_top_p(other, changed, params.top_p)


def is_random(batch: list[Request]) -> bool:
    return any(params.temperature >= 1e-5 for params, _, _ in batch)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("vocab", VOCABS)
def test_each_stage_alone(stage: str, vocab: int) -> None:
    chance = random.Random(vocab)
    batch = [asking([stage] if row % 3 else [], vocab, chance) for row in range(2 * len(KINDS))]
    logits = odd_rows(len(batch), vocab)
    check(batch, logits, started(Pipeline, vocab, batch).apply(logits.clone()))


@pytest.mark.parametrize("vocab", VOCABS)
@every_way
def test_all_stages(monkeypatch: pytest.MonkeyPatch, vocab: int, size: int, most: int, layout: Any) -> None:
    monkeypatch.setattr(selection, "MOST", most)
    monkeypatch.setattr(records, "LISTED", 9 if most == 1 else 4096)
    monkeypatch.setattr(pipeline, "largest", partial(largest, size=size))
    monkeypatch.setattr(pipeline, "WIDE", 12)
    chance = random.Random(vocab * size + most)
    for rows in (1, 5, 3 * len(KINDS)):
        batch = [asking(some_stages(chance), vocab, chance) for _ in range(rows)]
        logits = odd_rows(rows, vocab, chance.randrange(1000))
        changed = layout(logits)
        assert started(Pipeline, vocab, batch).apply(changed) is changed
        check(batch, logits, changed)


def test_many_rows() -> None:
    chance = random.Random(0)
    batch = [asking(some_stages(chance), 4999, chance) for _ in range(256)]
    logits = odd_rows(256, 4999)
    check(batch, logits, started(Pipeline, 4999, batch).apply(logits.clone()))


def test_wide_rows() -> None:
    chance = random.Random(0)
    batch = [asking(some_stages(chance), 128256, chance) for _ in range(3 * len(KINDS))]
    logits = odd_rows(len(batch), 128256)
    check(batch, logits, started(Pipeline, 128256, batch).apply(logits.clone()))


@pytest.mark.parametrize("size", [2, 64])
@pytest.mark.parametrize("p", [1.0, 0.4])
def test_tokens_that_are_equal_after_the_division(monkeypatch: pytest.MonkeyPatch, size: int, p: float) -> None:
    monkeypatch.setattr(pipeline, "largest", partial(largest, size=size))
    monkeypatch.setattr(pipeline, "SPARE", 0)
    logits = (1.9 + torch.arange(64) * 2.0**-23).repeat(40, 1)
    assert len((logits[0] / 1.8).unique()) < 64
    batch: list[Request] = [(SamplingParams(temperature=1.8, top_k=1 + k, top_p=p), None, []) for k in range(40)]
    check(batch, logits, started(Pipeline, 64, batch).apply(logits.clone()))


def test_rows_of_requests_that_ask_for_nothing_keep_their_bits() -> None:
    chance = random.Random(0)
    batch = [asking(list(STAGES) if row % 2 else [], 65, chance) for row in range(2 * len(KINDS))]
    logits = odd_rows(len(batch) + 2, 65)
    after = started(Pipeline, 65, batch).apply(logits.clone())
    assert same_bits(after[:-2:2], logits[:-2:2]) and same_bits(after[-2:], logits[-2:])


@pytest.mark.parametrize(
    "batch", [[], [(PLAIN, [], [])] * 3, [(SamplingParams(temperature=0.0), [], [])], [(PLAIN, None, [5])]]
)
def test_the_input_comes_back_when_nobody_asks_for_anything(batch: list[Request]) -> None:
    logits = odd_rows(3, 16)
    before = logits.clone()
    for processor in (build(Pipeline, 16), started(Pipeline, 16, batch)):
        assert processor.apply(logits) is logits and same_bits(logits, before)


def test_a_batch_that_has_become_empty() -> None:
    processor = started(Pipeline, 16, [asking(list(STAGES), 16, random.Random(0))])
    processor.update_state(BatchUpdate(0, (0,), (), ()))
    assert processor.apply(torch.empty(0, 16)).shape == (0, 16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_dtype_is_converted_and_not_changed(dtype: torch.dtype) -> None:
    chance = random.Random(0)
    batch = [asking(list(STAGES), 65, chance) for _ in KINDS]
    logits = odd_rows(len(batch), 65).to(dtype)
    before = logits.clone()
    after = started(Pipeline, 65, batch).apply(logits)
    assert after.dtype == torch.float32 and torch.equal(logits.nan_to_num(), before.nan_to_num())
    assert same_bits(after, started(Pipeline, 65, batch).apply(logits.float()))
    assert same_bits(started(Pipeline, 65, []).apply(logits), logits.float())


def test_a_row_that_is_emptied_is_all_masked() -> None:
    for only in ({}, {"min_p": 0.1, "top_k": 1, "top_p": 0.5, "temperature": 0.5}, {"temperature": 0.0}):
        params = SamplingParams(allowed_token_ids=[2], bad_words_token_ids=[[2]], logit_bias={2: 9.0}, **only)
        after = started(Pipeline, 8, [(params, [2], [2])]).apply(odd_rows(1, 8))
        assert after.isneginf().all()


def test_a_token_that_is_not_listed_stays_masked_whatever_else_is_asked() -> None:
    params = SamplingParams(
        allowed_token_ids=[2, 3, 4], logit_bias={0: 9.0, 2: 1.0}, repetition_penalty=0.5, presence_penalty=-2.0, top_k=2
    )
    logits = torch.tensor([[1.0, math.nan, 3.0, 2.0, -1.0, math.inf]])
    after = started(Pipeline, 6, [(params, [0, 1, 3], [5])]).apply(logits)
    assert after.tolist() == [[-math.inf, -math.inf, 4.0, 4.0, -math.inf, -math.inf]]


def test_a_token_beyond_the_vocabulary_never_reaches_the_next_row() -> None:
    for asked in ({"allowed_token_ids": [16], "top_k": 2}, {"logit_bias": {16: 1.0}}, {"bad_words_token_ids": [[16]]}):
        with pytest.raises((IndexError, RuntimeError)):
            started(Pipeline, 16, [(SamplingParams(**asked), [], []), (PLAIN, [], [])]).apply(odd_rows(2, 16))


def test_bans_follow_the_outputs_and_the_requests() -> None:
    outputs: list[list[int]] = [[], [7]]
    batch: list[Request] = [
        (SamplingParams(min_tokens=2, stop_token_ids=[1]), None, outputs[0]),
        (SamplingParams(min_tokens=2, stop_token_ids=[2], bad_words_token_ids=[[7, 3]]), None, outputs[1]),
    ]
    processor = started(Pipeline, 8, batch)

    def banned() -> list[list[int]]:
        processor.update_state(None)
        return processor.apply(torch.zeros(2, 8)).isneginf().nonzero().tolist()

    assert banned() == [[0, 1], [1, 2], [1, 3]]
    outputs[1].append(6)
    assert banned() == [[0, 1]]
    outputs[0] += [6, 6]
    assert banned() == []
    outputs[1].append(7)
    assert banned() == [[1, 3]]
    outputs[0].clear()
    assert banned() == [[0, 1], [1, 3]]
    outputs[1].pop()
    assert banned() == [[0, 1]]
    processor.update_state(
        BatchUpdate(2, (), ((0, SamplingParams(min_tokens=1, stop_token_ids=[4, 5]), None, []),), ())
    )
    assert banned() == [[0, 4], [0, 5]]


class Tokens(list[int]):
    """A list that can be watched leaving."""


@pytest.mark.parametrize(
    "departure",
    [
        BatchUpdate(2, (1,), (), ()),
        BatchUpdate(2, (), ((1, PLAIN, [], []),), ()),
        BatchUpdate(2, (), (), ((0, 1, ONE_WAY),)),
        BatchUpdate(2, (), (), ((0, 1, SWAP), (1, 0, ONE_WAY))),
    ],
)
def test_nothing_is_kept_of_a_request_that_left(departure: BatchUpdate) -> None:
    params, prompt, output = asking(list(STAGES), 16, random.Random(0))
    params.temperature, prompt, output = 0.5, Tokens([1]), Tokens(output)
    left = weakref.ref(params), weakref.ref(prompt), weakref.ref(output)
    processor = started(Pipeline, 16, [(PLAIN, [], []), (params, prompt, output)])
    processor.apply(odd_rows(2, 16))
    del params, prompt, output
    processor.update_state(departure)
    gc.collect()
    assert [reference() for reference in left] == [None] * 3


@pytest.mark.parametrize("custom", [None, ["test_pipeline:Shift"], ["test_pipeline:ThreeLargest"]])
def test_any_history_gives_what_a_fresh_pipeline_gives(custom: list[Any] | None) -> None:
    chance = random.Random(0)
    vocab, batch = 65, [asking(some_stages(chance), 65, chance) for _ in range(6)]
    processor = started(Pipeline, vocab, batch, custom)
    for step in range(60):
        for _, _, output in batch:
            change = chance.randrange(4)
            output[len(output) - (change == 0) :] = [chance.randrange(vocab)] * (change > 1)
        processor.update_state(one_step(batch, vocab, chance) if chance.random() < 0.7 else None)
        logits = odd_rows(len(batch) + 1, vocab, step)
        expected = started(Pipeline, vocab, deepcopy(batch), custom).apply(logits.clone())
        assert same_bits(processor.apply(logits.clone()), expected)
        assert same_bits(processor.apply(logits), expected)


def one_step(batch: list[Request], vocab: int, chance: random.Random) -> BatchUpdate:
    """An update as an engine emits it, done to the batch too: replaced, added, condensed, swapped."""
    leaving = sorted(chance.sample(range(len(batch)), chance.randint(0, min(3, len(batch)))))
    arriving = [asking(some_stages(chance), vocab, chance) for _ in range(chance.randint(0, 3))]
    added, moved = [], []
    while leaving and arriving:
        row = leaving.pop(0)
        batch[row] = arriving.pop()
        added.append((row, *batch[row]))
    for request in arriving:
        added.append((len(batch), *request))
        batch.append(request)
    removed = list(reversed(leaving))
    while leaving:
        last = len(batch) - 1
        if leaving[-1] == last:
            leaving.pop()
        else:
            batch[leaving[0]] = batch[last]
            moved.append((last, leaving.pop(0), ONE_WAY))
        batch.pop()
    for _ in range(chance.randint(0, 2) if batch else 0):
        one, other = (chance.randrange(len(batch)) for _ in range(2))
        batch[one], batch[other] = batch[other], batch[one]
        moved.append((one, other, SWAP))
    return BatchUpdate(len(batch), removed, added, moved)


class Watched:
    """A custom processor that notes what it is called with. made: all of them, in order."""

    made: ClassVar[list[Watched]] = []
    invariant = False

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.updates: list[BatchUpdate | None] = []
        self.seen: list[torch.Tensor] = []
        self.asked = 0
        Watched.made.append(self)

    def is_argmax_invariant(self) -> bool:
        self.asked += 1
        return self.invariant

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        self.updates.append(batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        self.seen.append(logits.clone())
        return logits


class Shift(Watched):
    """Adds 1 to token 0, in a new tensor."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits) + torch.eye(1, logits.shape[1])


class Double(Watched):
    """Doubles every logit, in a new tensor."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits) * 2


class ThreeLargest(Watched):
    """Keeps three tokens of each row, in a new tensor."""

    invariant = True

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        super().apply(logits)
        return torch.full_like(logits, -math.inf).scatter_(1, (kept := logits.topk(3)).indices, kept.values)


def watched(batch: list[Request], *custom: type[Watched]) -> tuple[Any, list[Watched]]:
    """A pipeline with custom processors, and these."""
    Watched.made = []
    return started(Pipeline, 4, batch, list(custom)), Watched.made


def test_custom_processors_see_every_update_and_are_asked_once() -> None:
    processor, made = watched([(PLAIN, [], [])], Watched, ThreeLargest, Double)
    changes = [arrival([(PLAIN, [], [])]), None, BatchUpdate(0, (0,), (), ()), None]
    for change in changes:
        processor.update_state(change)
    assert [(type(each), each.updates[1:], each.asked) for each in made] == [
        (kind, changes, 1) for kind in (Watched, ThreeLargest, Double)
    ]


def test_custom_edits_come_in_their_order_after_the_bias_and_before_the_penalties() -> None:
    params = SamplingParams(logit_bias={0: 1.0}, presence_penalty=0.5)
    processor, (one, other) = watched([(params, [], [0])], Shift, Double)
    after = processor.apply(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert one.seen[0].tolist() == [[2.0, 2.0, 3.0, 4.0]]
    assert other.seen[0].tolist() == [[3.0, 2.0, 3.0, 4.0]]
    assert after.tolist() == [[5.5, 4.0, 6.0, 8.0]]


def test_custom_edits_see_what_is_allowed() -> None:
    params = SamplingParams(allowed_token_ids=[1, 2], top_k=1)
    processor, (one,) = watched([(params, [], [])], Double)
    after = processor.apply(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert one.seen[0].tolist() == [[-math.inf, 2.0, 3.0, -math.inf]]
    assert after.tolist() == [[-math.inf, -math.inf, 6.0, -math.inf]]


def test_custom_cuts_come_after_min_p_and_before_top_k() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.5, 2.5], [4.0, 3.0, 2.0, 1.0]])
    asked = [{"temperature": 0.5, "min_p": 0.1}, {"top_k": 2, "top_p": 0.7}, {"temperature": 0.0}]
    processor, (one,) = watched([(SamplingParams(**fields), [], []) for fields in asked], ThreeLargest)
    after = processor.apply(logits)
    masked = -math.inf
    assert one.seen[0].tolist() == [[masked, masked, 6.0, 8.0], [4.0, 3.0, 2.5, 2.5], [4.0, 3.0, 2.0, 1.0]]
    assert after.tolist() == [[masked, masked, 6.0, 8.0], [4.0, masked, masked, masked], [4.0, 3.0, 2.0, masked]]


def test_what_is_for_random_sampling_is_skipped_exactly_while_all_requests_are_greedy() -> None:
    greedy, drawn = SamplingParams(temperature=0.0), SamplingParams(top_k=1)
    greedy.top_k, greedy.min_p, greedy.top_p = 1, 1.0, 0.1
    processor, (edit, cut) = watched([(greedy, [], []), (drawn, [], [])], Watched, ThreeLargest)
    for change, calls in (
        (None, 1),
        (BatchUpdate(2, (), ((1, greedy, [], []),), ()), 1),
        (BatchUpdate(2, (), ((0, PLAIN, [], []),), ()), 2),
        (BatchUpdate(1, (), (), ((1, 0, ONE_WAY),)), 2),
        (None, 2),
        (BatchUpdate(2, (), ((1, drawn, [], []),), ((0, 1, SWAP),)), 3),
        (BatchUpdate(1, (0,), (), ((1, 0, ONE_WAY),)), 3),
        (BatchUpdate(0, (0,), (), ()), 3),
        (arrival([(PLAIN, [], []), (PLAIN, [], [])]), 4),
        (arrival([(greedy, [], []), (greedy, [], [])]), 4),
    ):
        processor.update_state(change)
        after = processor.apply(torch.tensor([[5.0, 1.0, 4.0, 3.0]] * 2))
        assert len(cut.seen) == calls
    assert len(edit.seen) == 10 and after.tolist() == [[5.0, 1.0, 4.0, 3.0]] * 2


@pytest.mark.parametrize("custom", [None, [Watched], [ThreeLargest]])
def test_greedy_rows_are_not_cut_beside_others(custom: list[Any] | None) -> None:
    greedy = SamplingParams(temperature=0.0)
    greedy.top_k, greedy.min_p, greedy.top_p = 1, 1.0, 0.1
    logits = torch.tensor([[3.0, 3.0, 2.0, 3.0], [4.0, 3.0, 3.0, 1.0]])
    batch: list[Request] = [(greedy, [], []), (SamplingParams(top_k=1), [], [])]
    after = started(Pipeline, 4, batch, custom).apply(logits)
    kept = [3.0, 3.0, -math.inf if custom == [ThreeLargest] else 2.0, 3.0]
    assert after.tolist() == [kept, [4.0, -math.inf, -math.inf, -math.inf]]


@pytest.mark.parametrize(
    "asked",
    [
        {"allowed_token_ids": []},
        {"bad_words_token_ids": [[]]},
        {"min_tokens": -1},
        {"logit_bias": {-1: 1.0}},
        {"repetition_penalty": 0.0},
        {"frequency_penalty": 3.0},
        {"presence_penalty": -3.0},
        {"temperature": -1.0},
        {"min_p": 2.0},
        {"top_k": -2},
        {"top_p": 0.0},
    ],
)
def test_what_one_stage_refuses_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(asked))):
        Pipeline.validate_params(SimpleNamespace(**vars(PLAIN) | asked, all_stop_token_ids=set()))


def test_params_in_range_are_accepted_and_the_pipeline_is_no_invariant_one() -> None:
    assert not build(Pipeline, 8).is_argmax_invariant()
    for seed in range(20):
        params, _, _ = asking(list(STAGES), 8, random.Random(seed))
        assert Pipeline.validate_params(params) is None
