"""A batch on the device: the slots, the mail, and the launches over one tensor of logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

from logitsproc.optimized.gpu import kernels
from logitsproc.optimized.gpu.slots import (
    NO_COUNTS,
    Layout,
    Letter,
    Words,
    arrival,
    banned_now,
    bans,
    counts_of,
    layout,
    mail,
    roomy,
    words,
)
from logitsproc.optimized.packing import token_ids
from logitsproc.optimized.records import CUT, Record

WIDE = 128
"""So many candidates are looked for in a row when how many stay depends on its logits."""
WIDTHS = (256, 512, 1024)
"""Candidates that there is room for; twice as many as are wanted, or the row may be looked at as a whole."""
PROGRAMS = 4 * 132
"""So many programs are enough for a GPU of 132 multiprocessors."""
WARPS = {"update": 4, "scan": 4, "select": 16, "slow": 8, "emit": 4}
"""Of 32 threads, for each kernel."""
ALL_STAGES = -1
Launch = Callable[[], object]


class User(NamedTuple):
    """A request that asks for something, where it stands, and where its state is."""

    row: int
    slot: int
    asked: Record


class Demand(NamedTuple):
    """The most that a request of the batch asks for, and how many slots there have to be. k: as it is asked for, which
    may be more than a vocabulary. is_cut: whether any row is cut."""

    slots: int
    biases: int
    bans: int
    k: int
    is_cut: bool


class Sizes(NamedTuple):
    """How the launches over logits of one vocabulary are cut up; the last four are powers of 2."""

    vocab: int
    per_slice: int
    slices: int
    scanned: int
    part: int
    whole: int
    width: int


class Scratch(NamedTuple):
    """What the kernels hand on: as they say, for logits of one shape."""

    maxima: torch.Tensor
    masses: torch.Tensor
    found: torch.Tensor
    tokens: torch.Tensor
    values: torch.Tensor
    counts: torch.Tensor
    status: torch.Tensor


class DeviceBatch:
    """The states of requests in slots on the device, and the kernels over them.

    What the device holds of a slot is known by the record that was sent there, so that a slot is written once when its
    request is added, and later only where the request's output has changed something. `generation` grows when tensors
    are made anew; launches captured before are then of no use.
    """

    def __init__(self, device: torch.device, slots: int) -> None:
        self.device = device
        self.capacity = max(slots, 1)
        self.users: list[User] = []
        self.demand = demand_of([])
        self.held: dict[int, Record] = {}
        self.banned: dict[int, list[int]] = {}
        self.generation = 0
        self.at: Layout | None = None
        self.slots = torch.empty(0, dtype=torch.int32, device=device)
        self.sent: Words = np.empty(0, np.int32)
        self.letterbox = torch.empty(0, dtype=torch.int32, device=device)
        self.scratch: dict[Sizes, Scratch] = {}

    def follow(self, users: list[User]) -> None:
        """PROC-STATE-DEPARTED: these requests are in the batch, and nothing is kept of others. users: in ascending
        order of rows."""
        self.users, self.demand = users, demand_of(users)
        here = {user.slot: user.asked for user in users}
        self.held = {slot: asked for slot, asked in self.held.items() if here.get(slot) is asked}
        self.banned = {slot: banned for slot, banned in self.banned.items() if slot in self.held}

    def prepare(self, rows: int, vocab: int) -> None:
        """PROC-LIVE-OUTPUTS: sends what is new, in one copy that the host does not wait for.

        Raises IndexError for a token beyond the vocabulary, and for a request whose row is not among the logits.
        """
        if self.users and self.users[-1].row >= rows:
            raise IndexError(f"there is no row {self.users[-1].row} in logits of {rows} rows")
        self.make_room(vocab)
        slots = np.full(rows, -1, np.int32)
        slots[[user.row for user in self.users]] = [user.slot for user in self.users]
        try:
            letters = {user.row: self.letter(user) for user in self.users}
        except IndexError:
            self.held.clear()
            raise
        self.send(mail(slots, {row: letter for row, letter in letters.items() if letter is not None}))

    def letter(self, user: User) -> Letter | None:
        """What the device does not hold yet of a request."""
        assert self.at is not None
        asked, slot = user.asked, user.slot
        if self.held.get(slot) is not asked:
            banned = banned_now(asked)
            letter = arrival(asked, token_ids(banned), self.at)
            self.held[slot], self.banned[slot] = asked, banned
            return letter
        copies, counts = [], None
        if (banned := banned_now(asked)) != self.banned[slot]:
            copies.append(bans(token_ids(banned), self.at))
            self.banned[slot] = banned
        if asked.penalties is not None and (new := asked.penalties.seen.follow()):
            counts = counts_of(asked.penalties.seen, dict.fromkeys(new), self.at.vocab)
        if not copies and counts is None:
            return None
        return Letter(copies, NO_COUNTS if counts is None else counts)

    def make_room(self, vocab: int) -> None:
        """Slots that hold what the requests ask for; larger ones are filled anew."""
        at, (slots, biases, banned, *_) = self.at, self.demand
        if at is not None and at.vocab == vocab and slots <= self.capacity:
            if biases <= at.biases and banned <= at.bans:
                return
            biases, banned = max(biases, at.biases), max(banned, at.bans)
        if slots > self.capacity:
            self.capacity = 2 * slots
        self.at = layout(vocab, roomy(biases), roomy(banned))
        self.slots = torch.zeros((self.capacity, self.at.size), dtype=torch.int32, device=self.device)
        self.held.clear()
        self.generation += 1

    def send(self, new: Words) -> None:
        """The mail goes into the letterbox, unless it is there already."""
        if np.array_equal(new, self.sent):
            return
        if len(new) > len(self.letterbox):
            self.letterbox = torch.empty(2 * len(new), dtype=torch.int32, device=self.device)
            self.generation += 1
        source = torch.from_numpy(new)
        if self.device.type != "cpu":
            source = source.pin_memory()
        self.letterbox[: len(new)].copy_(source, non_blocking=True)
        self.sent = new

    def launch(self, logits: torch.Tensor, out: torch.Tensor, stages: int = ALL_STAGES) -> None:
        """The kernels, without a word to or from the host, so that they can be captured in a graph.

        logits: [rows, vocab] float32, of which the last dimension is contiguous; not changed but by `update`, if `out`
        is another tensor, which then has every row.
        """
        for run in self.launches(logits, out, stages).values():
            run()

    def launches(self, logits: torch.Tensor, out: torch.Tensor, stages: int = ALL_STAGES) -> dict[str, Launch]:
        """What `launch` does: kernel -> its launch, in order. Rows that are cut need all of them but `emit`, and that
        too if the work is done in place."""
        at, (rows, vocab) = self.at, logits.shape
        assert at is not None
        is_apart = out.data_ptr() != logits.data_ptr()
        is_cutting = bool(stages & kernels.CUT.value) and self.demand.is_cut
        sizes, groups = self.sizes(rows, vocab), words(vocab)
        scratch = self.scratch_for(rows, vocab, sizes)
        state = (self.slots, at.size, self.letterbox)
        lists = (at.biased_at, at.values_at, at.banned_at, at.seen_at, at.counts_at)
        shape = (logits, out, logits.stride(0), out.stride(0), vocab)
        given = (*shape, *state, stages, groups, at.allowed_at, at.seen_at, at.counts_at)
        kept = (scratch.tokens, scratch.values, scratch.counts, scratch.status)
        found = {"ALL": power(groups), "SLICES": power(sizes.slices), "WIDTH": sizes.width, "PART": sizes.part}
        all_rows, all_slices = (rows,), (rows, sizes.slices)

        def launch(kernel: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> Launch:
            run = getattr(kernels, kernel)[grid]
            return partial(run, *arguments, **constants, num_warps=WARPS[kernel], enable_fp_fusion=False)

        runs = {
            "update": launch("update", all_rows, logits, logits.stride(0), *state, rows, stages, *lists, BLOCK=128),
            "scan": launch("scan", all_slices, *given, scratch.maxima, scratch.masses, sizes.per_slice,
                           GROUPS=sizes.scanned, APART=is_apart),
        }  # fmt: skip
        if is_cutting:
            runs["select"] = launch("select", all_rows, *given, scratch.maxima, scratch.masses, sizes.slices,
                                    scratch.found, *kept, WIDE, **found, APART=is_apart)  # fmt: skip
            runs["slow"] = launch("slow", all_rows, *given, scratch.maxima, scratch.status, GROUPS=sizes.whole)
        if is_cutting and not is_apart:
            runs["emit"] = launch("emit", all_slices, logits, logits.stride(0), vocab, *kept, sizes.per_slice,
                                  GROUPS=sizes.scanned, WIDTH=sizes.width, PART=128)  # fmt: skip
        return runs

    def sizes(self, rows: int, vocab: int) -> Sizes:
        """For this shape and the largest k of the batch."""
        groups = power(words(vocab))
        scanned = min(64, groups)
        blocks = -(-words(vocab) // scanned)
        per_slice = -(-blocks // max(min(PROGRAMS // rows, blocks), 1))
        width = next((width for width in WIDTHS if 2 * min(self.demand.k, vocab) <= width), WIDTHS[-1])
        slices = -(-blocks // per_slice)
        return Sizes(vocab, per_slice, slices, scanned, min(32, groups), min(16, groups), width)

    def scratch_for(self, rows: int, vocab: int, sizes: Sizes) -> Scratch:
        """The tensors between the kernels, kept for these sizes."""
        if sizes not in self.scratch or len(self.scratch[sizes].status) < rows:
            self.generation += sizes in self.scratch
            self.scratch[sizes] = new_scratch(rows, vocab, sizes, self.device)
        return self.scratch[sizes]


def new_scratch(rows: int, vocab: int, sizes: Sizes, device: torch.device) -> Scratch:
    """Tensors with room for these logits."""

    def integers(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int32, device=device)

    masses = torch.empty((rows, sizes.slices, 2), dtype=torch.float32, device=device)
    values = torch.empty((rows, sizes.width), dtype=torch.float32, device=device)
    kept = integers(rows, sizes.width), integers(rows, sizes.width), values
    return Scratch(integers(rows, words(vocab)), masses, *kept, integers(rows), integers(rows))


def demand_of(users: list[User]) -> Demand:
    """What these requests ask for."""
    asked = [user.asked for user in users]
    return Demand(
        max((user.slot + 1 for user in users), default=0),
        max((len(each.bias.tokens) for each in asked if each.bias is not None), default=0),
        max(map(most_bans, asked), default=0),
        max((each.k for each in asked if each.k is not None), default=0),
        any(each.flags & CUT for each in asked),
    )


def most_bans(asked: Record) -> int:
    """So many tokens a request can have banned at most."""
    single, longer = ((), {}) if asked.words is None else (asked.words.single, asked.words.longer)
    stops = () if asked.minimum is None else asked.minimum.stops
    return len(single) + max(map(len, longer.values()), default=0) + len(stops)


def power(number: int) -> int:
    """The next power of 2.

    >>> [power(number) for number in (1, 3, 4)]
    [1, 4, 4]
    """
    return int(triton.next_power_of_2(number))
