"""The selection without a sort, and top-k and top-p on it, beside a sort of every row."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from logitsproc.conformance.interface import BatchUpdate, SamplingParams, host_config
from logitsproc.optimized import TopKLogitsProcessor, TopPLogitsProcessor, selection, top_k, top_p
from logitsproc.optimized.selection import keep, largest, mask_below

LARGEST = torch.finfo(torch.float32).max
EDGES = [-math.inf, -LARGEST, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, LARGEST, math.inf, math.nan]
VOCABS = [1, 2, 7, 63, 64, 65, 1000]
KINDS = (
    "dense",
    "peaked",
    "ties",
    "masked",
    "few left",
    "empty",
    "flat",
    "uniform",
    "nan",
    "all nan",
    "infinite",
    "subnormal",
    "huge",
    "zeros",
)
every_vocab = pytest.mark.parametrize("vocab", VOCABS)


def odd_row(kind: str, vocab: int, generator: torch.Generator) -> torch.Tensor:
    """A row of one kind: [vocab] float32."""
    row = torch.randn(vocab, generator=generator) * 2
    some = torch.randint(vocab, (1 + vocab // 20,), generator=generator)
    match kind:
        case "peaked":
            row[some] += 9
        case "ties":
            row = row.round()
        case "masked":
            row[torch.rand(vocab, generator=generator) < 0.5] = -math.inf
        case "few left":
            kept = row[some]
            row = row.fill_(-math.inf).index_copy_(0, some.unique(), kept[: len(some.unique())])
        case "empty":
            row = row.fill_(-math.inf)
        case "flat":
            row = row.fill_(float(row[0]))
        case "uniform":
            row = torch.rand(vocab, generator=generator)
        case "nan":
            row[some] = math.nan
        case "all nan":
            row = row.fill_(math.nan)
        case "infinite":
            row[some] = math.inf
        case "subnormal":
            row = row * 1e-44
        case "huge":
            row = row.clamp_(-1, 1) * LARGEST
        case "zeros":
            row = row.sign() * 0.0
    return row


def odd_rows(count: int, vocab: int, seed: int = 0) -> torch.Tensor:
    """Rows of all kinds in turn: [count, vocab] float32."""
    generator = torch.Generator().manual_seed(seed * 1000 + vocab)
    return torch.stack([odd_row(KINDS[row % len(KINDS)], vocab, generator) for row in range(count)])


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))


def as_slice(logits: torch.Tensor) -> torch.Tensor:
    """The same logits as a part of a wider tensor."""
    return torch.full((len(logits), logits.shape[1] + 5), 9.0)[:, 2:-3].copy_(logits)


def as_transposed(logits: torch.Tensor) -> torch.Tensor:
    """The same logits with the tokens of a row apart from each other."""
    return torch.empty(logits.shape[::-1]).t().copy_(logits)


every_way = pytest.mark.parametrize(
    ("size", "most", "layout"),
    [
        (2, 1, torch.clone),
        (4, 1, as_slice),
        (2, 6, as_transposed),
        (4, 6, torch.clone),
        (64, 20, as_slice),
        (2, 1024, as_slice),
        (4, 1024, as_transposed),
        (64, 1024, torch.clone),
    ],
)
"""Tokens in a block, what selection.MOST is, and how the logits lie."""


def numbers(row: torch.Tensor) -> list[float]:
    """What the row has above -inf, in descending order, NaN first."""
    return row[~row.isneginf()].sort(descending=True).values.tolist()


def check_candidates(logits: torch.Tensor, rows: list[int], wanted: list[int], size: int) -> int:
    """The candidates are the largest tokens, no tie of theirs is outside; gives how many rows have none."""
    found = largest(logits, np.array(rows), np.array(wanted), size)
    missing = 0
    for place, (row, number) in enumerate(zip(rows, wanted, strict=True)):
        there = numbers(logits[row])
        count = int((found.values[place] > -math.inf).sum())
        tokens, values = found.tokens[place, :count], found.values[place, :count]
        if found.rest[place].isnan():
            missing += 1
            assert logits[row].isnan().any() or number > selection.MOST or len(there) > selection.TIED
            assert not count
            continue
        assert count >= min(number, len(there))
        assert values.tolist() == there[:count]
        assert same_bits(logits[row][tokens], values) and len(tokens.unique()) == count
        rest = logits[row].clone().index_fill_(0, tokens, -math.inf)
        assert rest.max() <= found.rest[place] and (not count or found.rest[place] < values[-1])
    return missing


@every_vocab
@every_way
def test_candidates_are_the_largest(
    monkeypatch: pytest.MonkeyPatch, vocab: int, size: int, most: int, layout: Any
) -> None:
    monkeypatch.setattr(selection, "MOST", most)
    logits = layout(odd_rows(len(KINDS) * 2, vocab))
    before = logits.clone()
    every = list(range(len(logits)))
    for number in (1, 3, vocab, vocab + 3):
        check_candidates(logits, every, [number] * len(every), size)
    rows = [0, 1, 4, 5, 6, 9, len(logits) - 1]
    check_candidates(logits, rows, [1 + row % 5 for row in rows], size)
    assert same_bits(logits, before)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"flat", "zeros", "nan", "all nan", "empty"}))
def test_candidates_of_a_wide_row(kind: str) -> None:
    logits = torch.stack([odd_row(kind, 128256, torch.Generator().manual_seed(seed)) for seed in range(3)])
    missing = check_candidates(logits, [0, 2], [60, 5], selection.BLOCK)
    assert missing == (2 if kind in ("infinite", "huge") else 0)


def test_ordinary_rows_have_few_candidates() -> None:
    logits = torch.randn(4, 128256, generator=torch.Generator().manual_seed(0))
    found = largest(logits, np.arange(4), np.array([20, 50, 100, 200]))
    counts = (found.values > -math.inf).sum(1).tolist()
    assert all(wanted <= count < 1.2 * wanted for wanted, count in zip((20, 50, 100, 200), counts, strict=True))


def test_rows_without_anything_kept_and_rows_between() -> None:
    logits = odd_rows(5, 7)
    expected = logits.clone()
    expected[[0, 2, 3]] = -math.inf
    expected[2, 5], expected[2, 1], expected[3, 6] = 1.0, -0.0, 2.0
    tokens, values = torch.tensor([[0, 0], [5, 1], [6, 3]]), torch.tensor([[9.0, 9.0], [1.0, -0.0], [2.0, 9.0]])
    kept = torch.tensor([[False, False], [True, True], [True, False]])
    keep(logits, np.array([0, 2, 3]), tokens, values, kept)
    assert same_bits(logits, expected)


@pytest.mark.parametrize(
    "edge", [-math.inf, -LARGEST, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, LARGEST, math.inf, math.nan]
)
def test_what_is_below_an_edge(edge: float) -> None:
    row = torch.tensor([-math.inf, -LARGEST, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, LARGEST, math.inf, math.nan])
    expected = torch.where((row >= edge) | row.isnan(), row, -math.inf)
    mask_below([row], torch.tensor([[edge]]))
    assert same_bits(row, expected)


def started(kind: type[Any], vocab: int, params: list[SamplingParams]) -> Any:
    processor = kind(host_config(vocab, max_num_seqs=len(params)), torch.device("cpu"), False)
    processor.update_state(BatchUpdate(len(params), (), tuple((row, p, [], []) for row, p in enumerate(params)), ()))
    return processor


def top_k_of(row: torch.Tensor, k: int) -> torch.Tensor:
    """top-k by a sort; torch puts NaN first."""
    if not 0 < k < len(row):
        return row.clone()
    return torch.where((row >= row.sort(descending=True).values[k - 1]) | row.isnan(), row, -math.inf)


def check_top_p(row: torch.Tensor, after: torch.Tensor, p: float) -> None:
    """What is kept is the shortest prefix of a sort whose mass reaches p, but for the band."""
    top = row.max()
    if p == 1 or not top.isfinite():
        assert same_bits(row, after)
        return
    kept = ~after.isneginf()
    assert same_bits(row[kept], after[kept])
    ordered = row.double().sort(descending=True).values
    through = (ordered - top).exp().cumsum(0)
    shares, band = through / through[-1], 2.0**-18 + 2.0**-24 * math.log2(len(row))
    least, most = (1 + int((shares < edge).sum()) for edge in (p - band, p + band))
    count = int(kept.sum())
    assert count >= 1 and least <= count <= min(most, len(row))
    assert count == len(row) or row[kept].min() >= row[~kept].max()


@every_vocab
@every_way
def test_top_k_beside_a_sort(monkeypatch: pytest.MonkeyPatch, vocab: int, size: int, most: int, layout: Any) -> None:
    monkeypatch.setattr(selection, "MOST", most)
    monkeypatch.setattr(top_k, "largest", partial(largest, size=size))
    ks = [0, 1, -1, 2, 3, 10, 50, vocab - 1, vocab, 10**30]
    logits = odd_rows(len(KINDS) * len(ks), vocab)
    params = [SamplingParams(top_k=ks[row // len(KINDS)]) for row in range(len(logits))]
    expected = torch.stack([top_k_of(row, p.top_k) for row, p in zip(logits, params, strict=True)])
    changed = layout(logits)
    assert started(TopKLogitsProcessor, vocab, params).apply(changed) is changed
    assert same_bits(changed, expected)


@every_vocab
@every_way
def test_top_p_beside_a_sort(monkeypatch: pytest.MonkeyPatch, vocab: int, size: int, most: int, layout: Any) -> None:
    monkeypatch.setattr(selection, "MOST", most)
    monkeypatch.setattr(top_p, "largest", partial(largest, size=size))
    monkeypatch.setattr(top_p, "WIDE", 12)
    ps = [1.0, 1e-300, 1e-3, 0.3, 0.5, 0.9, 0.999, 1 - 2**-53]
    logits = odd_rows(len(KINDS) * len(ps), vocab)
    params = [SamplingParams(top_p=ps[row // len(KINDS)]) for row in range(len(logits))]
    changed = layout(logits)
    assert started(TopPLogitsProcessor, vocab, params).apply(changed) is changed
    for row, after, p in zip(logits, changed, params, strict=True):
        check_top_p(row, after, p.top_p)


@pytest.mark.parametrize("kind", KINDS)
def test_wide_rows(kind: str) -> None:
    generator = torch.Generator().manual_seed(1)
    row = odd_row(kind, 128256, generator)
    ks, ps = [1, 50, 999, 5000, 128255], [0.01, 0.5, 0.9, 0.999]
    processor = started(TopKLogitsProcessor, len(row), [SamplingParams(top_k=k) for k in ks])
    expected = torch.stack([top_k_of(row, k) for k in ks])
    assert same_bits(processor.apply(row.repeat(len(ks), 1)), expected)
    after = started(TopPLogitsProcessor, len(row), [SamplingParams(top_p=p) for p in ps]).apply(row.repeat(len(ps), 1))
    for changed, p in zip(after, ps, strict=True):
        check_top_p(row, changed, p)


def test_many_rows() -> None:
    logits = odd_rows(256, 4999)
    processor = started(TopKLogitsProcessor, 4999, [SamplingParams(top_k=row % 80) for row in range(256)])
    expected = torch.stack([top_k_of(row, place % 80) for place, row in enumerate(logits)])
    assert same_bits(processor.apply(logits.clone()), expected)
    after = started(TopPLogitsProcessor, 4999, [SamplingParams(top_p=0.7)] * 256).apply(logits.clone())
    for row, changed in zip(logits, after, strict=True):
        check_top_p(row, changed, 0.7)


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (4, 2), (10, 5)])
def test_top_p_keeps_as_many_equals_as_the_mass_asks_for(count: int, kept: int) -> None:
    for most in (1, selection.MOST):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection, "MOST", most)
            after = started(TopPLogitsProcessor, count, [SamplingParams(top_p=0.45)]).apply(torch.zeros(1, count))
            assert int((after == 0).sum()) == kept


@pytest.mark.parametrize("k", [-2, 1.0, None])
def test_a_top_k_that_is_none(k: Any) -> None:
    with pytest.raises(ValueError, match="top_k must be an int"):
        TopKLogitsProcessor.validate_params(SamplingParams(top_k=k))


@pytest.mark.parametrize("p", [0.0, -0.1, 1.5, math.nan])
def test_a_top_p_that_is_none(p: float) -> None:
    with pytest.raises(ValueError, match="top_p must be in"):
        TopPLogitsProcessor.validate_params(SamplingParams(top_p=p))


@pytest.mark.parametrize("kind", [TopKLogitsProcessor, TopPLogitsProcessor])
def test_both_are_argmax_invariant_and_take_what_is_in_range(kind: type[Any]) -> None:
    assert started(kind, 4, []).is_argmax_invariant()
    for k, p in ((-1, 1.0), (0, 1), (7, 1e-9)):
        assert kind.validate_params(SamplingParams(top_k=k, top_p=p)) is None
