"""The sampler's stages as one processor: one row table, one record a request, one selection for what is cut off.

The order is that of profile `v1`. What edits single tokens comes first, in place. Of a row that min-p, top-k or top-p
cut, only its largest tokens are then looked at; they alone are divided by the temperature.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from logitsproc.optimized.allowed_token_ids import AllowedTokenIdsLogitsProcessor, allowed_tokens, keep_allowed
from logitsproc.optimized.bad_words import BadWords, BadWordsLogitsProcessor, bad_words, completing
from logitsproc.optimized.frequency_penalty import FrequencyPenaltyLogitsProcessor
from logitsproc.optimized.loading import load_processors
from logitsproc.optimized.logit_bias import Bias, Biases, LogitBiasLogitsProcessor, add_biases, bias, pack_biases
from logitsproc.optimized.min_p import MinPLogitsProcessor, Shares, edges, keep_probable, log_share, mask_rows, shares
from logitsproc.optimized.min_tokens import Minimum, MinTokensLogitsProcessor, minimum, too_short
from logitsproc.optimized.packing import MASKED, Index, TokenIds, float_values, pack, token_ids
from logitsproc.optimized.penalties import Penalties, penalise, penalties
from logitsproc.optimized.presence_penalty import PresencePenaltyLogitsProcessor
from logitsproc.optimized.repetition_penalty import RepetitionPenaltyLogitsProcessor
from logitsproc.optimized.selection import Candidates, keep, largest, mask_below, stretches
from logitsproc.optimized.table import BatchUpdate, Users
from logitsproc.optimized.temperature import GREEDY_BELOW, Run, TemperatureLogitsProcessor, divide, runs, temperature
from logitsproc.optimized.top_k import TopKLogitsProcessor, keep_largest, kth_largest, kth_of_row, top_k
from logitsproc.optimized.top_p import (
    WIDE,
    TopPLogitsProcessor,
    keep_nucleus,
    mask_tail,
    masses,
    nucleus,
    relative,
    top_p,
)

SPARE = 16
"""So many candidates more than k: their tokens may become equal when they are divided."""
LISTED = 4096
"""Longer lists of allowed tokens are not packed side by side."""
STAGES = (
    AllowedTokenIdsLogitsProcessor,
    BadWordsLogitsProcessor,
    MinTokensLogitsProcessor,
    LogitBiasLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    FrequencyPenaltyLogitsProcessor,
    PresencePenaltyLogitsProcessor,
    TemperatureLogitsProcessor,
    MinPLogitsProcessor,
    TopKLogitsProcessor,
    TopPLogitsProcessor,
)
Bans = tuple[dict[int, list[int]], list[int]]
"""row -> tokens that would complete a bad word, and the rows that are too short."""


class Record(NamedTuple):
    """What one request asks of each stage, None where that is nothing; a greedy one asks nothing of the last four."""

    greedy: bool
    allowed: torch.Tensor | None
    words: BadWords | None
    minimum: Minimum | None
    bias: Bias | None
    penalties: Penalties | None
    temperature: float | None
    log_share: float | None
    k: int | None
    p: float | None


class Cuts(NamedTuple):
    """What is cut off some rows, neutral where a request does not ask for it: temperature 1, share -inf, k 0, p inf.

    rows: [rows] int64, ascending. temperatures, log_shares: [rows, 1] float32. ks: [rows] int64. ps: [rows, 1] float64.
    """

    rows: TokenIds
    temperatures: torch.Tensor
    log_shares: torch.Tensor
    ks: TokenIds
    ps: torch.Tensor


class Listed(NamedTuple):
    """Rows that are cut and whose requests list their tokens.

    rows: [rows] int64, ascending. tokens: [rows, width] int64. ended: [rows, width] bool, where the list is over.
    last: the largest of the tokens. cuts: of these rows, by their place.
    """

    rows: TokenIds
    tokens: torch.Tensor
    ended: torch.Tensor
    last: int
    cuts: Cuts


class Turns(NamedTuple):
    """What min-p, top-k and top-p ask for, each for itself. shares: None without rows. ks, ps: row -> k, row -> p."""

    shares: Shares | None
    ks: dict[int, int]
    ps: dict[int, float]


class Plan(NamedTuple):
    """What the stages have to do with the batch as it is: row -> what its request asks for, or packed for all rows.

    random: whether a request is not greedy. divided: the rows that are only divided. cuts, listed: None without rows.
    turns: None unless the cuts come in turn, and then there are no others.
    """

    random: bool
    allowed: dict[int, torch.Tensor]
    words: dict[int, BadWords]
    minima: dict[int, Minimum]
    biases: Biases | None
    penalties: dict[int, Penalties]
    divided: list[Run]
    cuts: Cuts | None
    listed: Listed | None
    turns: Turns | None


class Pipeline:
    """Every stage of profile `v1` between the model's logits and the sample, custom processors included, in place."""

    def __init__(
        self, vllm_config: Any, device: torch.device, is_pin_memory: bool, custom: Sequence[Any] | None = None
    ) -> None:
        """custom: processors that are built already; None for those that are installed and configured."""
        self.device = device
        self.custom = load_processors(vllm_config, device, is_pin_memory) if custom is None else list(custom)
        invariant = [processor.is_argmax_invariant() for processor in self.custom]
        self.invariant = list(compress(self.custom, invariant))
        self.variant = list(compress(self.custom, map(operator.not_, invariant)))
        self.users = Users(record)
        self.plan = self.nothing = plan({}, False, self.custom, self.invariant, device)
        self.is_planned = True
        self.banned: Bans = {}, []
        self.index: Index | None = None
        self.masked = torch.tensor(MASKED, device=device)

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """VAL-DOMAIN, VAL-ERROR: raises ValueError for what a stage refuses."""
        for stage in STAGES:
            stage.validate_params(params)

    def is_argmax_invariant(self) -> bool:
        """PROC-ARGMAX: False, most stages can make another token the largest."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """UPD-NONE, PROC-STATE-DEPARTED, PIPE-EACH, PIPE-SKIP: the batch as it is now; None says that it is as it was.

        Outputs are not read here: they may still change before `apply`, which is also where the batch is packed.
        """
        if batch_update is not None:
            self.users.follow(batch_update)
            self.plan, self.is_planned = self.nothing, False
            self.banned = {}, []
        for processor in self.custom:
            processor.update_state(batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PIPE-ORDER, PIPE-FLOAT, PIPE-SKIP, PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE, EMPTY-ROW:
        the input, changed where a request asks for it, or what custom processors made of it.

        logits: [rows, vocab], of any strides, on the CPU. float32 is changed in place, another dtype is converted.
        Raises IndexError for a token beyond the vocabulary.
        """
        if not self.is_planned:
            self.plan, self.is_planned = self.planned(), True
        if self.plan.listed is not None:
            check_listed(self.plan.listed, logits.shape[1])
        logits = self.edit(logits.to(torch.float32))
        if not self.plan.random:
            return logits
        divide(logits, self.plan.divided)
        return self.draw(logits) if self.plan.turns is None else self.draw_in_turn(logits, self.plan.turns)

    def planned(self) -> Plan:
        """PIPE-GREEDY, PIPE-SKIP: what the stages have to do with the batch as it is."""
        greedy = sum(asked.greedy for asked in self.users.states.values())
        random = sum(self.users.table.live) > greedy
        return plan(self.users.by_row(), random, self.custom, self.invariant, self.device)

    def edit(self, logits: torch.Tensor) -> torch.Tensor:
        """PIPE-ORDER, PIPE-RETURNED: what every request gets, greedy ones too."""
        keep_allowed(logits, self.plan.allowed)
        self.ban(logits)
        if self.plan.biases is not None:
            add_biases(logits, self.plan.biases)
        for processor in self.variant:
            logits = processor.apply(logits)
        if self.plan.penalties:
            penalise(logits, self.plan.penalties)
        return logits

    def ban(self, logits: torch.Tensor) -> None:
        """BAD-COMPLETE, MINTOK-BLOCK: -inf for what would complete a bad word and for stop tokens that come too early.

        Which tokens that are is packed anew only when it has changed.
        """
        banned, blocked = completing(self.plan.words), too_short(self.plan.minima)
        if not banned and not blocked:
            return
        if (banned, blocked) != self.banned:
            tokens = [*map(token_ids, banned.values()), *(self.plan.minima[row].stops for row in blocked)]
            self.index = pack([*banned, *blocked], tokens, self.device)
            self.banned = banned, blocked
        logits.index_put_(self.index, self.masked)

    def draw(self, logits: torch.Tensor) -> torch.Tensor:
        """PIPE-GREEDY: temperature, min-p, top-k and top-p at once, of the rows that are cut."""
        if self.plan.cuts is not None:
            cut(logits, self.plan.cuts)
        if self.plan.listed is not None:
            cut_listed(logits, self.plan.listed)
        return logits

    def draw_in_turn(self, logits: torch.Tensor, turns: Turns) -> torch.Tensor:
        """PIPE-ORDER, PIPE-RETURNED, PIPE-GREEDY: min-p, custom processors, top-k and top-p, after the temperature."""
        if turns.shares is not None:
            keep_probable(logits, turns.shares)
        for processor in self.invariant:
            logits = processor.apply(logits)
        keep_largest(logits, turns.ks)
        keep_nucleus(logits, turns.ps)
        return logits


def record(params: Any, prompt: list[int] | None, output: list[int]) -> Record | None:
    """TEMP-GREEDY, PIPE-GREEDY: what the request asks for, or None for a random one that asks for nothing."""
    greedy = params.temperature < GREEDY_BELOW
    asked = Record(
        greedy,
        allowed_tokens(params, prompt, output),
        bad_words(params, prompt, output),
        minimum(params, prompt, output),
        bias(params, prompt, output),
        penalties(params, prompt, output),
        temperature(params, prompt, output),
        None if greedy else log_share(params, prompt, output),
        None if greedy else top_k(params, prompt, output),
        None if greedy else top_p(params, prompt, output),
    )
    return asked if greedy or any(stage is not None for stage in asked[1:]) else None


def column(records: dict[int, Record], stage: str) -> dict[int, Any]:
    """row -> what is asked of one stage, where something is."""
    states = map(operator.attrgetter(stage), records.values())
    return {row: state for row, state in zip(records, states, strict=True) if state is not None}


def plan(
    records: dict[int, Record], random: bool, custom: list[Any], invariant: list[Any], device: torch.device
) -> Plan:
    """records: row -> record, in ascending order of rows. random: whether a request is not greedy. custom: processors
    that see what every stage before them has done. invariant: those of them that see what min-p leaves, so that the
    cuts come in turn.
    """
    shortened = {row: each for row, each in records.items() if not invariant and is_cut(each)}
    divided = {row: each for row, each in records.items() if row not in shortened}
    few = {row: each for row, each in shortened.items() if not custom and lists_few(each)}
    many = {row: each for row, each in shortened.items() if row not in few}
    masked = {row: each for row, each in records.items() if row not in few}
    biases = column(records, "bias")
    return Plan(
        random,
        column(masked, "allowed"),
        column(records, "words"),
        column(records, "minimum"),
        pack_biases(biases, device) if biases else None,
        column(records, "penalties"),
        runs(column(divided, "temperature"), device),
        cuts(many, token_ids(many)) if many else None,
        listed(few) if few else None,
        in_turn(records, device) if invariant else None,
    )


def is_cut(asked: Record) -> bool:
    """Whether min-p, top-k or top-p may mask a token."""
    return asked.log_share is not None or asked.k is not None or asked.p is not None


def lists_few(asked: Record) -> bool:
    """Whether there is a list of tokens, not empty and short enough to be packed with others."""
    return asked.allowed is not None and 0 < asked.allowed.numel() <= LISTED


def listed(records: dict[int, Record]) -> Listed:
    """records: row -> record, all with a list, in ascending order of rows, at least one."""
    lists = list(column(records, "allowed").values())
    tokens = pad_sequence(lists, batch_first=True)
    ended = torch.arange(tokens.shape[1]) >= torch.tensor([each.numel() for each in lists])[:, None]
    return Listed(token_ids(records), tokens, ended, int(tokens.max()), cuts(records, np.arange(len(records))))


def check_listed(asked: Listed, vocab: int) -> None:
    """VAL-VOCABULARY, PROC-UNTOUCHED: raises IndexError for a listed token beyond the vocabulary, which whoever lets
    requests in has to refuse, before a row is changed.
    """
    if asked.last >= vocab:
        raise IndexError(f"token {asked.last} of allowed_token_ids is beyond the vocabulary of {vocab} tokens")


def in_turn(records: dict[int, Record], device: torch.device) -> Turns:
    """records: row -> record, in ascending order of rows."""
    log_shares = column(records, "log_share")
    return Turns(shares(log_shares, device) if log_shares else None, column(records, "k"), column(records, "p"))


def cuts(records: dict[int, Record], rows: TokenIds) -> Cuts:
    """records: row -> record, at least one. rows: where they are cut, in ascending order."""
    asked = records.values()
    temperatures = float_values([1.0 if each.temperature is None else each.temperature for each in asked])
    log_shares = float_values([MASKED if each.log_share is None else each.log_share for each in asked])
    ps = np.array([math.inf if each.p is None else each.p for each in asked])
    return Cuts(
        rows,
        torch.from_numpy(temperatures[:, None]),
        torch.from_numpy(log_shares[:, None]),
        token_ids([each.k or 0 for each in asked]),
        torch.from_numpy(ps[:, None]),
    )


def cut(logits: torch.Tensor, asked: Cuts) -> None:
    """PIPE-ORDER: temperature, then min-p, then top-k, then top-p, on the largest tokens of each row.

    A cut is settled where it leaves no token that is not among them; the other rows are cut as a whole.
    logits: [rows, vocab] float32 on the CPU, of any strides, changed in place.
    """
    ks = np.where(asked.ks < logits.shape[1], asked.ks, 0)
    found = largest(logits, asked.rows, np.where(ks > 0, ks + SPARE, WIDE))
    found = found._replace(values=found.values / asked.temperatures, rest=found.rest / asked.temperatures)
    kept, settled = survivors(logits, found, asked._replace(ks=ks))
    keep(logits, asked.rows[settled.numpy()], found.tokens[settled], found.values[settled], kept[settled])
    for place in (~settled).nonzero().flatten().tolist():
        cut_whole(logits, asked, place)


def cut_listed(logits: torch.Tensor, asked: Listed) -> None:
    """ALLOW-MASK, PIPE-ORDER: only the listed tokens are looked at, side by side, all others become -inf.

    A token that is not listed stays masked whatever the edits after the list ask for, so the list can come last.
    logits: [rows, vocab] float32 on the CPU, of any strides, changed in place.
    """
    few = torch.empty(asked.tokens.shape)
    for there, here in stretches(asked.rows):
        torch.gather(logits[there], 1, asked.tokens[here], out=few[here])
    cut(few.masked_fill_(asked.ended, MASKED), asked.cuts)
    keep(logits, asked.rows, asked.tokens, few, few != MASKED)


def survivors(logits: torch.Tensor, found: Candidates, asked: Cuts) -> tuple[torch.Tensor, torch.Tensor]:
    """PIPE-ORDER, EMPTY-ROW: which candidates stay, [rows, width], and in which rows no other token does, [rows]; bool.

    found: divided by the temperature. Without min-p and top-k, the mass that p is a part of is that of the whole row.
    """
    values, rest = found.values, found.rest
    edge = edges(values[:, :1].clone(), asked.log_shares).maximum(kth_largest(values, asked.ks))
    closed = (edge > rest) | (rest == MASKED)
    weights = relative(values).masked_fill_(values < edge, 0.0)
    totals = weights.sum(1, keepdim=True)
    whole = (asked.ps < math.inf) & (edge == MASKED) & (rest > MASKED) & totals.isfinite()
    rows = asked.rows[whole.numpy()[:, 0]]
    totals[whole] = masses(logits, rows, asked.temperatures[whole], values[:, :1][whole])
    within, reached = nucleus(weights, totals, asked.ps)
    settled = torch.where(asked.ps < math.inf, reached & (closed | whole), closed)
    return within & (values >= edge) & (values > MASKED), settled.flatten()


def cut_whole(logits: torch.Tensor, asked: Cuts, place: int) -> None:
    """PIPE-ORDER: temperature, then min-p, then top-k, then top-p, on all tokens of the row at this place of `asked`.

    logits: [rows, vocab] float32 on the CPU, of any strides, changed in place.
    """
    row, k, p = logits[asked.rows[place]], int(asked.ks[place]), float(asked.ps[place])
    row.div_(asked.temperatures[place])
    if asked.log_shares[place] > MASKED:
        mask_rows([row], asked.log_shares[place : place + 1])
    if 0 < k < len(row):
        mask_below([row], torch.tensor([[kth_of_row(row, k)]]))
    if p < math.inf:
        mask_tail(row, p)
