"""Right processors in the shapes in which people write them: where state is kept, when it is read, what is returned.

Each takes its transformation from a control and keeps its requests in its own way.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from logitsproc.conformance.miniatures.adapters import Adapter
from logitsproc.conformance.miniatures.controls import (
    AllowedTokenIds,
    BadWords,
    ByRow,
    FrequencyPenalty,
    LogitBias,
    MinP,
    MinTokens,
    NoRepeat,
    PresencePenalty,
    RepetitionPenalty,
    State,
    Temperature,
    TopK,
    TopP,
)
from logitsproc.conformance.miniatures.pipelines import Pipeline


class HolesInAList(ByRow):
    """A list by row with None where nobody uses it, as long as the batch."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.held: list[State | None] = []

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        if update is not None:
            del self.held[update.batch_size :]
            self.held += [None] * (update.batch_size - len(self.held))

    def remove(self, row: int) -> None:
        self.held[row] = None

    def put(self, row: int, state: State | None) -> None:
        self.held += [None] * (row + 1 - len(self.held))
        self.held[row] = state

    def move(self, source: int, destination: int) -> None:
        self.held[destination], self.held[source] = self.held[source], None

    def swap(self, row: int, other: int) -> None:
        self.held[row], self.held[other] = self.held[other], self.held[row]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, state in enumerate(self.held):
            if state is not None:
                self.transform(logits[row], *state)
        return logits


class BiasInAList(HolesInAList, LogitBias):
    """Logit bias, in a list with holes."""


class BadWordsInAList(HolesInAList, BadWords):
    """Bad words, in a list with holes."""


class AdapterInAList(HolesInAList, Adapter):
    """An adapter that keeps requests in a list with holes."""


class ParallelTensors(MinP):
    """min-p as float32 [max_num_seqs] beside bool [max_num_seqs], moved by assignment, all rows at once."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        rows = vllm_config.scheduler_config.max_num_seqs
        self.shares, self.enabled = torch.zeros(rows), torch.zeros(rows, dtype=torch.bool)

    def remove(self, row: int) -> None:
        self.enabled[row] = False

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.shares[row], self.enabled[row] = params.min_p, self.wants(params)

    def move(self, source: int, destination: int) -> None:
        self.shares[destination], self.enabled[destination] = self.shares[source], self.enabled[source]
        self.enabled[source] = False

    def swap(self, row: int, other: int) -> None:
        for held in (self.shares, self.enabled):
            held[[row, other]] = held[[other, row]]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        shares, enabled = self.shares[: len(logits), None], self.enabled[: len(logits), None]
        if not len(logits) or not enabled.any():
            return logits
        largest = logits.amax(dim=-1, keepdim=True)
        return logits.masked_fill_(enabled & largest.isfinite() & (logits < largest + shares.log()), -math.inf)


class NeutralElsewhere(MinP):
    """min-p as one float32 [max_num_seqs] of thresholds; -inf, which masks nothing, where nobody uses it."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.below = torch.full((vllm_config.scheduler_config.max_num_seqs,), -math.inf)

    def remove(self, row: int) -> None:
        self.below[row] = -math.inf

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.below[row] = math.log(params.min_p) if params.min_p else -math.inf

    def move(self, source: int, destination: int) -> None:
        self.below[destination] = self.below[source]
        self.below[source] = -math.inf

    def swap(self, row: int, other: int) -> None:
        held = self.below[row].item()
        self.below[row] = self.below[other]
        self.below[other] = held

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, largest in enumerate(logits.amax(dim=-1).tolist() if len(logits) else []):
            if math.isfinite(largest):
                logits[row].masked_fill_(logits[row] < largest + self.below[row], -math.inf)
        return logits


class DenseBias(LogitBias):
    """Logit bias as float32 [max_num_seqs, vocab]; -0.0, which changes no logit, where there is none."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        rows = vllm_config.scheduler_config.max_num_seqs
        self.biases = torch.full((rows, vllm_config.model_config.get_vocab_size()), -0.0)

    def remove(self, row: int) -> None:
        self.biases[row] = -0.0

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.biases[row] = -0.0
        for token, bias in (params.logit_bias or {}).items():
            self.biases[row, token] = bias or -0.0

    def move(self, source: int, destination: int) -> None:
        self.biases[destination] = self.biases[source]
        self.biases[source] = -0.0

    def swap(self, row: int, other: int) -> None:
        self.biases[row], self.biases[other] = self.biases[other].clone(), self.biases[row].clone()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits.add_(self.biases[: len(logits)])


class SlotTable(ByRow):
    """Requests stay in their slots; rows lead to slots by a permutation, which is all that moves."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.slots: list[State | None] = [None] * vllm_config.scheduler_config.max_num_seqs
        self.slot_of = list(range(len(self.slots)))

    def remove(self, row: int) -> None:
        self.put(row, None)

    def put(self, row: int, state: State | None) -> None:
        self.slots[self.slot_of[row]] = state

    def move(self, source: int, destination: int) -> None:
        self.remove(destination)
        self.swap(source, destination)

    def swap(self, row: int, other: int) -> None:
        self.slot_of[row], self.slot_of[other] = self.slot_of[other], self.slot_of[row]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row in range(len(logits)):
            if (state := self.slots[self.slot_of[row]]) is not None:
                self.transform(logits[row], *state)
        return logits


class FrequencySlots(SlotTable, FrequencyPenalty):
    """Frequency penalty, in slots."""


class MinTokensSlots(SlotTable, MinTokens):
    """min-tokens, in slots."""


class RowOfSlot(NoRepeat):
    """Slots in order of arrival, never moved, that say at which row each stands now: the inverse of a row table."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.slots: list[State] = []
        self.row_of: list[int] = []

    def leave(self, row: int) -> None:
        """Whoever stands at the row is gone, and the last slot closes the gap."""
        if row in self.row_of:
            slot = self.row_of.index(row)
            self.slots[slot], self.row_of[slot] = self.slots[-1], self.row_of[-1]
            self.slots.pop()
            self.row_of.pop()

    def remove(self, row: int) -> None:
        self.leave(row)

    def put(self, row: int, state: State | None) -> None:
        self.leave(row)
        if state is not None:
            self.slots.append(state)
            self.row_of.append(row)

    def move(self, source: int, destination: int) -> None:
        self.leave(destination)
        self.row_of = [destination if row == source else row for row in self.row_of]

    def swap(self, row: int, other: int) -> None:
        self.row_of = [{row: other, other: row}.get(at, at) for at in self.row_of]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, state in zip(self.row_of, self.slots, strict=True):
            self.transform(logits[row], *state)
        return logits


class GathersCounts(FrequencyPenalty):
    """Gathers the counts of its rows, in ascending order, into int64 [users, vocab] at each apply."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        rows = sorted(self.rows)
        if not rows:
            return logits
        vocab = logits.shape[1]
        outputs = [torch.tensor(self.rows[row][2], dtype=torch.long) for row in rows]
        counts = torch.stack([torch.bincount(output, minlength=vocab) for output in outputs])
        penalties = torch.tensor([self.rows[row][0].frequency_penalty for row in rows])[:, None]
        taken = logits[rows]
        logits[rows] = torch.where(counts > 0, taken - penalties * counts, taken)
        return logits


class GathersTemperatures(Temperature):
    """Gathers the rows of its users, divides them as one tensor, and scatters them back."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if rows := sorted(self.rows):
            temperatures = torch.tensor([self.rows[row][0].temperature for row in rows])
            logits.index_copy_(0, torch.tensor(rows), logits[rows] / temperatures[:, None])
        return logits


class PadsSeenTokens(PresencePenalty):
    """Pads the seen tokens of its users to one length, with the first of each, and indexes all pairs at once."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        seen = {row: sorted(set(self.rows[row][2])) for row in sorted(self.rows) if self.rows[row][2]}
        if not seen:
            return logits
        rows, longest = list(seen), max(map(len, seen.values()))
        padded = torch.tensor([tokens + tokens[:1] * (longest - len(tokens)) for tokens in seen.values()])
        penalties = torch.tensor([self.rows[row][0].presence_penalty for row in rows])[:, None]
        at = torch.tensor(rows)[:, None]
        logits[at, padded] = logits[at, padded] - penalties
        return logits


class DerivesAfresh(ByRow):
    """Keeps every request, also those that do not use it, and asks all that there is to ask in apply."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.put(row, (params, prompt, output))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, prompt, output) in sorted(self.rows.items()):
            if self.wants(params):
                self.transform(logits[row], params, prompt, output)
        return logits


class BadWordsAfresh(DerivesAfresh, BadWords):
    """Bad words, derived afresh."""


class NoRepeatAfresh(DerivesAfresh, NoRepeat):
    """No repeat, derived afresh."""


class DirtyFlag(LogitBias):
    """Index tensors of all biases, made anew in apply when an update has come since they were made last."""

    dirty = True

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        self.dirty = self.dirty or update is not None

    def refresh(self) -> None:
        """The rows, tokens and biases of all, as tensors."""
        biases = [
            (row, token, bias) for row, (params, *_) in self.rows.items() for token, bias in params.logit_bias.items()
        ]
        rows, tokens, values = zip(*biases, strict=True) if biases else ((), (), ())
        self.at = torch.tensor(rows, dtype=torch.long), torch.tensor(tokens, dtype=torch.long)
        self.values = torch.tensor(values, dtype=torch.float32)
        self.dirty = False

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if self.dirty:
            self.refresh()
        if self.rows:
            logits[self.at] += self.values
        return logits


class RetiresWhenDone(MinTokens):
    """Recomputes at each step which of its rows have too few outputs, from the lengths, as index tensors."""

    waiting: tuple[torch.Tensor, torch.Tensor] | None = None

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        pairs = [
            (row, token)
            for row, (params, _, output) in self.rows.items()
            if len(output) < params.min_tokens
            for token in params.all_stop_token_ids
        ]
        self.waiting = (torch.tensor([row for row, _ in pairs]), torch.tensor([t for _, t in pairs])) if pairs else None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits if self.waiting is None else logits.index_put_(self.waiting, torch.tensor(-math.inf))


class Cursor(FrequencyPenalty):
    """Counts on from a cursor in the live list, in update_state too; rewinds when what it has read is no longer there.

    What it has read is no longer there when the list has shrunk, or when a -1 has become an id.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.read: dict[int, tuple[list[int], Counter[int]]] = {}

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        lists = {id(output): output for _, _, output in self.rows.values()}
        self.read = {key: self.read.get(key, ([], Counter())) for key in lists}
        for output in lists.values():
            self.catch_up(output)

    def catch_up(self, output: list[int]) -> Counter[int]:
        """The counts of the list as it is now."""
        seen, counts = self.read[id(output)]
        if output[: len(seen)] != seen:
            seen.clear()
            counts.clear()
        counts.update(output[len(seen) :])
        seen += output[len(seen) :]
        return counts

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, _, output) in self.rows.items():
            for token, count in self.catch_up(output).items():
                logits[row, token] -= params.frequency_penalty * count
        return logits


class CursorBehindPlaceholders(RepetitionPenalty):
    """Keeps the set of seen tokens by row, read as far as there are ids; a list that shrank is read from its start."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        reading = (params, set(prompt or ()), [0, set()])
        self.put(row, (reading, prompt, output) if self.wants(params) else None)

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        for reading, _, output in self.rows.values():
            self.read_on(reading[2], output)

    def wants(self, params: Any) -> bool:
        return super().wants(params[0] if isinstance(params, tuple) else params)

    def read_on(self, cursor: list[Any], output: list[int]) -> None:
        """Reads up to the end, or the first placeholder."""
        if len(output) < cursor[0]:
            cursor[:] = [0, set()]
        while cursor[0] < len(output) and output[cursor[0]] != -1:
            cursor[1].add(output[cursor[0]])
            cursor[0] += 1

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        asked, from_prompt, cursor = params
        self.read_on(cursor, output)
        super().transform(logits, asked, sorted(from_prompt), sorted(cursor[1]))


class Replays(ByRow):
    """Keeps every update that it was handed, as it is, and replays them all at each apply."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.updates: list[Any] = []

    def update_state(self, update: Any) -> None:
        self.updates.append(update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        self.rows = {}
        for update in self.updates:
            super().update_state(update)
        return super().apply(logits)


class MinTokensReplays(Replays, MinTokens):
    """min-tokens by replaying."""


class NoRepeatReplays(Replays, NoRepeat):
    """No repeat by replaying."""


class FoldsTheUpdate(LogitBias):
    """Folds the whole update into one map from new rows to old ones or new requests, and takes it in one go."""

    def update_state(self, update: Any) -> None:
        if update is None:
            return
        come = {row: (params, prompt, output) for row, params, prompt, output in update.added}
        stay = {row: state for row, state in self.rows.items() if row not in update.removed}
        state_of: dict[int, Any] = {**stay, **come}
        origin = {row: row for row in state_of}
        for source, destination, direction in update.moved:
            held, opposite = origin.get(source), origin.get(destination)
            origin = {row: at for row, at in origin.items() if row not in (source, destination)}
            back = opposite if direction.name == "SWAP" else None
            origin |= {row: at for row, at in ((destination, held), (source, back)) if at is not None}
        self.rows = {row: state_of[at] for row, at in origin.items() if self.wants(state_of[at][0])}


class OutOfPlace(MinP):
    """Leaves the tensor that it is given alone and always returns a new one."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits.clone())


class NewWhenUsed(FrequencyPenalty):
    """Returns a new tensor when somebody uses it, and else the very one it was given."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits.clone()) if self.rows else logits


class ConcatenatesRows(TopK):
    """Builds its answer from rows, the untouched ones as they are."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if not self.rows:
            return logits
        rows = list(logits.clone())
        for row, (params, prompt, output) in self.rows.items():
            self.transform(rows[row], params, prompt, output)
        return torch.stack(rows)


class Buffered:
    """Has a buffer of its own, float32 [max_num_seqs, vocab]."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)  # type: ignore[call-arg]
        rows = vllm_config.scheduler_config.max_num_seqs
        self.buffer = torch.empty(rows, vllm_config.model_config.get_vocab_size())


class FixedBuffer(Buffered, BadWords):
    """Works in its buffer, and copies the result back."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        view = self.buffer[: len(logits)]
        view.copy_(logits)
        return logits.copy_(super().apply(view))


class ReturnsItsBuffer(Buffered, MinTokens):
    """Returns a slice of its buffer, which the next apply writes over."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(self.buffer[: len(logits)].copy_(logits))


class ByIdentity(NoRepeat):
    """State by the identity of the output list; rows hold the lists, and what no row holds is swept out."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.params: dict[int, Any] = {}
        self.lists: dict[int, list[int]] = {}

    def remove(self, row: int) -> None:
        self.lists.pop(row, None)

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.lists[row], self.params[id(output)] = output, params

    def move(self, source: int, destination: int) -> None:
        self.lists[destination] = self.lists.pop(source)

    def swap(self, row: int, other: int) -> None:
        turned = {row: other, other: row}
        self.lists = {turned.get(at, at): output for at, output in self.lists.items()}

    def move_all(self, moved: Any) -> None:
        super().move_all(moved)
        held = set(map(id, self.lists.values()))
        self.params = {key: params for key, params in self.params.items() if key in held}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, output in self.lists.items():
            if self.wants(params := self.params[id(output)]):
                self.transform(logits[row], params, None, output)
        return logits


class Closures(TopP):
    """A function of one row for each request, made when it is added."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.functions: dict[int, Callable[[torch.Tensor], None]] = {}

    def remove(self, row: int) -> None:
        self.functions.pop(row, None)

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.functions.pop(row, None)
        if self.wants(params):
            self.functions[row] = lambda logits: self.transform(logits, params, prompt, output)

    def move(self, source: int, destination: int) -> None:
        self.functions.pop(destination, None)
        if source in self.functions:
            self.functions[destination] = self.functions.pop(source)

    def swap(self, row: int, other: int) -> None:
        turned = {row: other, other: row}
        self.functions = {turned.get(at, at): function for at, function in self.functions.items()}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, function in self.functions.items():
            function(logits[row])
        return logits


@dataclass
class Ban:
    """The bad words of one request, and the row at which it stands."""

    row: int
    words: list[list[int]]
    output: list[int]

    def banned(self) -> list[int]:
        """The tokens that would complete a word."""
        ends = [(word[:-1], word[-1]) for word in self.words]
        return [last for before, last in ends if self.output[len(self.output) - len(before) :] == before]


class ObjectPerRequest(BadWords):
    """A list of objects, one for each request that uses it, that know their rows."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.bans: list[Ban] = []

    def remove(self, row: int) -> None:
        self.bans = [ban for ban in self.bans if ban.row != row]

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.remove(row)
        if self.wants(params):
            self.bans.append(Ban(row, params.bad_words_token_ids, output))

    def move(self, source: int, destination: int) -> None:
        self.remove(destination)
        for ban in self.bans:
            ban.row = destination if ban.row == source else ban.row

    def swap(self, row: int, other: int) -> None:
        for ban in self.bans:
            ban.row = {row: other, other: row}.get(ban.row, ban.row)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for ban in self.bans:
            logits[ban.row, ban.banned()] = -math.inf
        return logits


@dataclass
class Stops:
    """What one row of min-tokens needs; with its defaults it asks for nothing."""

    least: int = 0
    tokens: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)


class AlwaysADataclass(MinTokens):
    """A dataclass for every row there has been, one that asks for nothing where nobody uses it."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.stops: defaultdict[int, Stops] = defaultdict(Stops)

    def remove(self, row: int) -> None:
        self.stops[row] = Stops()

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.stops[row] = Stops(params.min_tokens, list(params.all_stop_token_ids), output)

    def move(self, source: int, destination: int) -> None:
        self.stops[destination], self.stops[source] = self.stops[source], Stops()

    def swap(self, row: int, other: int) -> None:
        self.stops[row], self.stops[other] = self.stops[other], self.stops[row]

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row in range(len(logits)):
            stops = self.stops[row]
            if len(stops.output) < stops.least:
                logits[row, stops.tokens] = -math.inf
        return logits


class Ordered(PresencePenalty):
    """An OrderedDict by row, the latest last, gone through from the latest to the first."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.rows = OrderedDict()

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, state in reversed(self.rows.items()):
            self.transform(logits[row], *state)
        return logits


class KeepsNone(AllowedTokenIds):
    """A dictionary that has an entry for every row there has been, None for those that do not use it."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.entries: dict[int, State | None] = {}

    def remove(self, row: int) -> None:
        self.entries[row] = None

    def put(self, row: int, state: State | None) -> None:
        self.entries[row] = state

    def move(self, source: int, destination: int) -> None:
        self.entries[destination] = self.entries.get(source)
        self.entries[source] = None

    def swap(self, row: int, other: int) -> None:
        self.entries[row], self.entries[other] = self.entries.get(other), self.entries.get(row)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, state in self.entries.items():
            if state is not None:
                self.transform(logits[row], *state)
        return logits


class GroupsByValue(TopK):
    """The rows of each k together, so that one call serves all that ask for the same."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for row, (params, _, _) in self.rows.items():
            groups[min(params.top_k, logits.shape[1])].append(row)
        for count, rows in groups.items():
            least = logits[rows].topk(count).values[:, -1:]
            below = torch.where(least.isnan(), ~logits[rows].isnan(), logits[rows] < least)
            logits[rows] = logits[rows].masked_fill(below, -math.inf)
        return logits


class Remembers(BadWords):
    """Remembers what it has masked for which outputs, across requests and rows."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.known: dict[tuple[Any, ...], list[int]] = {}

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        words = tuple(map(tuple, params.bad_words_token_ids))
        if (key := (words, tuple(output))) not in self.known:
            self.known[key] = Ban(0, params.bad_words_token_ids, output).banned()
        logits[self.known[key]] = -math.inf


class RowByRow(Pipeline):
    """A pipeline that takes each row through all stages before it looks at the next."""

    def run(self, stages: list[Any], logits: torch.Tensor) -> torch.Tensor:
        own = {id(stage) for stage in (*self.first, *self.penalties, *self.scaled, *self.cut)}
        parts: list[tuple[bool, list[Any]]] = []
        for stage in stages:
            if not parts or parts[-1][0] is not (id(stage) in own):
                parts.append((id(stage) in own, []))
            parts[-1][1].append(stage)
        for are_own, part in parts:
            logits = self.by_row(part, logits) if are_own else super().run(part, logits)
        return logits

    def by_row(self, stages: list[ByRow], logits: torch.Tensor) -> torch.Tensor:
        """Rows outside, stages inside."""
        for row in range(len(logits)):
            for stage in stages:
                if row in stage.rows:
                    stage.transform(logits[row], *stage.rows[row])
        return logits


SHAPES: tuple[type, ...] = (
    BiasInAList,
    BadWordsInAList,
    AdapterInAList,
    ParallelTensors,
    NeutralElsewhere,
    DenseBias,
    FrequencySlots,
    MinTokensSlots,
    RowOfSlot,
    GathersCounts,
    GathersTemperatures,
    PadsSeenTokens,
    BadWordsAfresh,
    NoRepeatAfresh,
    DirtyFlag,
    RetiresWhenDone,
    Cursor,
    CursorBehindPlaceholders,
    MinTokensReplays,
    NoRepeatReplays,
    FoldsTheUpdate,
    OutOfPlace,
    NewWhenUsed,
    ConcatenatesRows,
    FixedBuffer,
    ReturnsItsBuffer,
    ByIdentity,
    Closures,
    ObjectPerRequest,
    AlwaysADataclass,
    Ordered,
    KeepsNone,
    GroupsByValue,
    Remembers,
    RowByRow,
)
