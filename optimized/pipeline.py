"""The sampler's stages as one processor: one row table, one record a request, one selection for what is cut off.

The order is that of profile `v1`. What edits single tokens comes first, in place. Of a row that min-p, top-k or top-p
cut, only its largest tokens are then looked at; they alone are divided by the temperature.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from logitsproc.optimized.allowed_token_ids import AllowedTokenIdsLogitsProcessor, keep_allowed
from logitsproc.optimized.bad_words import BadWords, BadWordsLogitsProcessor, completing
from logitsproc.optimized.frequency_penalty import FrequencyPenaltyLogitsProcessor
from logitsproc.optimized.loading import load_processors
from logitsproc.optimized.logit_bias import Biases, LogitBiasLogitsProcessor, add_biases
from logitsproc.optimized.min_p import MinPLogitsProcessor, Shares, edges, keep_probable, mask_rows, shares
from logitsproc.optimized.min_tokens import Minimum, MinTokensLogitsProcessor, too_short
from logitsproc.optimized.packing import MASKED, Index, TokenIds, pack, token_ids
from logitsproc.optimized.penalties import Penalties, penalise_rows
from logitsproc.optimized.presence_penalty import PresencePenaltyLogitsProcessor
from logitsproc.optimized.records import (
    ALLOWED,
    CUT,
    DIVIDED,
    FEW,
    GREEDY,
    MIN_P,
    TOP_K,
    TOP_P,
    Columns,
    Flags,
    Mask,
    Packed,
    Record,
    SlotBiases,
    record,
)
from logitsproc.optimized.repetition_penalty import RepetitionPenaltyLogitsProcessor
from logitsproc.optimized.selection import Candidates, keep, largest, mask_below, stretches
from logitsproc.optimized.table import BatchUpdate, Users
from logitsproc.optimized.temperature import Run, TemperatureLogitsProcessor, divide, runs
from logitsproc.optimized.top_k import TopKLogitsProcessor, keep_largest, kth_largest, kth_of_row
from logitsproc.optimized.top_p import (
    WIDE,
    TopPLogitsProcessor,
    keep_nucleus,
    mask_tail,
    masses,
    nucleus,
    relative,
)

SPARE = 16
"""So many candidates more than k: their tokens may become equal when they are divided."""
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
"""slot -> tokens that would complete a bad word, and the slots of the requests that are too short."""


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

    random: whether a request is not greedy. rows: slot -> row. words, minima: slot -> what its request asks for.
    penalised, penalties: the rows of the requests that ask for penalties, and what they ask for. divided: the rows that
    are only divided. cuts, listed: None without rows. turns: None unless the cuts come in turn, and then there are no
    others.
    """

    random: bool
    rows: TokenIds
    allowed: dict[int, torch.Tensor]
    words: dict[int, BadWords]
    minima: dict[int, Minimum]
    biases: Biases | None
    penalised: TokenIds
    penalties: Collection[Penalties]
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
        self.users.states = self.columns = Columns()
        self.plan: Plan | None = None
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
            self.plan = None
            self.banned = {}, []
        for processor in self.custom:
            processor.update_state(batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """PIPE-ORDER, PIPE-FLOAT, PIPE-SKIP, PROC-LIVE-OUTPUTS, PROC-IDLE, PROC-UNTOUCHED, PROC-SHAPE, EMPTY-ROW:
        the input, changed where a request asks for it, or what custom processors made of it.

        logits: [rows, vocab], of any strides, on the CPU. float32 is changed in place, another dtype is converted.
        Raises IndexError for a token beyond the vocabulary.
        """
        plan = self.plan = self.plan or self.planned()
        if plan.listed is not None:
            check_listed(plan.listed, logits.shape[1])
        logits = self.edit(logits.to(torch.float32), plan)
        if not plan.random:
            return logits
        divide(logits, plan.divided)
        return draw(logits, plan) if plan.turns is None else self.draw_in_turn(logits, plan.turns)

    def planned(self) -> Plan:
        """PIPE-GREEDY, PIPE-SKIP: what the stages have to do with the batch as it is."""
        return plan(self.users, self.columns, self.custom, self.invariant, self.device)

    def edit(self, logits: torch.Tensor, plan: Plan) -> torch.Tensor:
        """PIPE-ORDER, PIPE-RETURNED: what every request gets, greedy ones too."""
        keep_allowed(logits, plan.allowed)
        self.ban(logits, plan)
        if plan.biases is not None:
            add_biases(logits, plan.biases)
        for processor in self.variant:
            logits = processor.apply(logits)
        if plan.penalties:
            penalise_rows(logits, plan.penalised, plan.penalties)
        return logits

    def ban(self, logits: torch.Tensor, plan: Plan) -> None:
        """BAD-COMPLETE, MINTOK-BLOCK: -inf for what would complete a bad word and for stop tokens that come too early.

        Which tokens that are is packed anew only when it has changed.
        """
        banned, blocked = completing(plan.words), too_short(plan.minima)
        if not banned and not blocked:
            return
        if (banned, blocked) != self.banned:
            tokens = [*map(token_ids, banned.values()), *(plan.minima[slot].stops for slot in blocked)]
            self.index = pack(plan.rows[[*banned, *blocked]], tokens, self.device)
            self.banned = banned, blocked
        logits.index_put_(self.index, self.masked)

    def draw_in_turn(self, logits: torch.Tensor, turns: Turns) -> torch.Tensor:
        """PIPE-ORDER, PIPE-RETURNED, PIPE-GREEDY: min-p, custom processors, top-k and top-p, after the temperature."""
        if turns.shares is not None:
            keep_probable(logits, turns.shares)
        for processor in self.invariant:
            logits = processor.apply(logits)
        keep_largest(logits, turns.ks)
        keep_nucleus(logits, turns.ps)
        return logits


def draw(logits: torch.Tensor, plan: Plan) -> torch.Tensor:
    """PIPE-GREEDY: temperature, min-p, top-k and top-p at once, of the rows that are cut."""
    if plan.cuts is not None:
        cut(logits, plan.cuts)
    if plan.listed is not None:
        cut_listed(logits, plan.listed)
    return logits


def has(flags: Flags, bit: int) -> Mask:
    """Where the bit is set."""
    mask: Mask = (flags & bit) != 0
    return mask


def states(users: Users[Record], rows: Mask, stage: str) -> dict[int, Any]:
    """row -> what is asked of one stage, in ascending order of rows. rows: where something is."""
    slots, records = users.table.slots, users.states
    of = operator.attrgetter(stage)
    return {row: of(records[slots[row]]) for row in np.flatnonzero(rows).tolist()}


def plan(users: Users[Record], columns: Columns, custom: list[Any], invariant: list[Any], device: torch.device) -> Plan:
    """users: those whose states are the columns'. custom: processors that see what every stage before them has done.
    invariant: those of them that see what min-p leaves, so that the cuts come in turn.
    """
    columns.pack(len(users.table.slots))
    slots = token_ids(users.table.slots)
    rows = np.empty_like(slots)
    rows[slots] = np.arange(len(slots))
    asked = columns.numbers[slots]
    flags = asked["flags"]
    shortened = has(flags, CUT) & (not invariant)
    few = shortened & has(flags, FEW) & (not custom)
    many = shortened & ~few
    divided = has(flags, DIVIDED) & ~shortened
    return Plan(
        sum(users.table.live) > int(has(flags, GREEDY).sum()),
        rows,
        states(users, has(flags, ALLOWED) & ~few, "allowed"),
        columns.words,
        columns.minima,
        biases_of(columns.biases, rows, device) if len(columns.biases.slots) else None,
        rows[token_ids(columns.penalties)],
        columns.penalties.values(),
        runs(states(users, divided, "temperature"), device),
        cuts(asked[many], np.flatnonzero(many)) if many.any() else None,
        listed(asked[few], states(users, few, "allowed")) if few.any() else None,
        in_turn(users, flags, device) if invariant else None,
    )


def biases_of(biased: SlotBiases, rows: TokenIds, device: torch.device) -> Biases:
    """The biases of the whole batch. rows: slot -> row."""
    index = torch.from_numpy(rows[biased.slots]).to(device), torch.from_numpy(biased.tokens).to(device)
    return index, torch.from_numpy(biased.values).to(device)


def listed(asked: Packed, lists: dict[int, torch.Tensor]) -> Listed:
    """asked: of the rows that have a list, one at least. lists: row -> its tokens, in ascending order of rows."""
    tokens = pad_sequence(list(lists.values()), batch_first=True)
    ended = torch.arange(tokens.shape[1]) >= torch.tensor([each.numel() for each in lists.values()])[:, None]
    return Listed(token_ids(lists), tokens, ended, int(tokens.max()), cuts(asked, np.arange(len(lists))))


def check_listed(asked: Listed, vocab: int) -> None:
    """VAL-VOCABULARY, PROC-UNTOUCHED: raises IndexError for a listed token beyond the vocabulary, which whoever lets
    requests in has to refuse, before a row is changed.
    """
    if asked.last >= vocab:
        raise IndexError(f"token {asked.last} of allowed_token_ids is beyond the vocabulary of {vocab} tokens")


def in_turn(users: Users[Record], flags: Flags, device: torch.device) -> Turns:
    """What the cuts of the batch are, each for itself."""
    log_shares = states(users, has(flags, MIN_P), "log_share")
    ks, ps = states(users, has(flags, TOP_K), "k"), states(users, has(flags, TOP_P), "p")
    return Turns(shares(log_shares, device) if log_shares else None, ks, ps)


def cuts(asked: Packed, rows: TokenIds) -> Cuts:
    """asked: of the rows that are cut, one at least. rows: where they stand, in ascending order."""

    def column(name: str) -> torch.Tensor:
        return torch.from_numpy(asked[name][:, None].copy())

    return Cuts(rows, column("temperature"), column("log_share"), asked["k"].copy(), column("p"))


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
