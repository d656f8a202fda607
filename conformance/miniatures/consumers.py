"""Processors that follow the batch wrongly: min-p, unless the clause is about outputs or the state is a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import (
    BadWords,
    ForgetsToClear,
    FrequencyPenalty,
    MaskTable,
    MinP,
    MinTokens,
    NoRepeat,
    State,
)


class ShiftsOnRemove(MinP):
    """UPD-REMOVE: takes the batch for a Python list from which a removed row is popped."""

    def remove(self, row: int) -> None:
        self.rows = {at - (at > row): state for at, state in self.rows.items() if at != row}


class AppendsOnAdd(MinP):
    """UPD-ADD: appends a new request behind the last one that it knows, whatever its row."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().add(max(self.rows, default=-1) + 1, params, prompt, output)


class KeepsFirst(MinP):
    """UPD-REPLACE: setdefault, so that the first user of a row stays until somebody removes it."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if row not in self.rows:
            super().add(row, params, prompt, output)


class CountsUsers(MinP):
    """UPD-REPLACE: counts its users, and one that replaces another down only, so that apply soon returns early."""

    users = 0

    def put(self, row: int, state: State | None) -> None:
        self.users += -1 if row in self.rows else state is not None
        super().put(row, state)

    def remove(self, row: int) -> None:
        self.put(row, None)

    def swap(self, row: int, other: int) -> None:
        before = self.users
        super().swap(row, other)
        self.users = before

    def move(self, source: int, destination: int) -> None:
        before = self.users - (destination in self.rows)
        super().move(source, destination)
        self.users = before

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits) if self.users > 0 else logits


class NeverExtends(MinP):
    """UPD-EXTEND: takes an add beyond the rows it has seen for a mistake, once there are any."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        self.size = 0

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        if update is not None:
            self.size = update.batch_size

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if row < self.size or not self.size:
            super().add(row, params, prompt, output)


class IgnoresMoves(MinP):
    """UPD-MOVE: knows swaps only."""

    def move(self, source: int, destination: int) -> None:
        pass


class IgnoresAllMoves(IgnoresMoves):
    """UPD-MOVE: knows removals and additions only."""

    def swap(self, row: int, other: int) -> None:
        pass


class CondensesDirty(MaskTable):
    """UPD-MOVE: a one-way move copies the mask and leaves it at the source, where a request without one writes none."""

    size = 0

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        self.size = update.batch_size if update is not None else self.size

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if row < self.size or self.wants(params):
            super().add(row, params, prompt, output)

    def move(self, source: int, destination: int) -> None:
        self.masks[destination] = self.masks[source]


class KeepsDestination(MinP):
    """UPD-DROP: a one-way move of a row without state leaves the destination's state where it is."""

    def move(self, source: int, destination: int) -> None:
        if source in self.rows:
            super().move(source, destination)


class SwapsByAssignment(MinP):
    """UPD-SWAP: with one empty side both rows end up with the state."""

    def swap(self, row: int, other: int) -> None:
        held, opposite = self.rows.get(row), self.rows.get(other)
        if held is not None:
            self.rows[other] = held
        if opposite is not None:
            self.rows[row] = opposite


class SwapsViews(MaskTable):
    """UPD-SWAP: exchanges views of two tensor rows, so that the first is overwritten before it is read."""

    def swap(self, row: int, other: int) -> None:
        held, opposite = self.masks[row], self.masks[other]
        self.masks[row], self.masks[other] = opposite, held


class MovesFirst(MinP):
    """UPD-ORDER: follows the moves before it looks at what was removed and added."""

    def update_state(self, update: Any) -> None:
        if update is None:
            return
        self.move_all(update.moved)
        for row in update.removed:
            self.remove(row)
        for added in update.added:
            self.add(*added)


class MovesFromSnapshot(MinP):
    """UPD-SEQUENCE: reads every move from the batch as it was before the first."""

    def move_all(self, moved: Any) -> None:
        before = dict(self.rows)
        for source, destination, direction in moved:
            self.put(destination, before.get(source))
            self.put(source, before.get(destination) if direction.name == "SWAP" else None)


class ClearsOnNone(MinP):
    """UPD-NONE: takes None for an empty batch."""

    def update_state(self, update: Any) -> None:
        if update is None:
            self.rows.clear()
        super().update_state(update)


class CutsFirst(MinP):
    """UPD-SIZE: cuts its table to batch_size before it follows the moves."""

    def update_state(self, update: Any) -> None:
        self.size = update.batch_size if update is not None else 0
        super().update_state(update)

    def move_all(self, moved: Any) -> None:
        self.rows = {row: state for row, state in self.rows.items() if row < self.size}
        super().move_all(moved)


class AddsFirst(MinP):
    """UPD-OVERLAP: processes added before removed, as vLLM's helper does."""

    def update_state(self, update: Any) -> None:
        if update is None:
            return
        for added in update.added:
            self.add(*added)
        for row in update.removed:
            self.remove(row)
        self.move_all(update.moved)


class NormalisesAll(MinP):
    """PROC-UNTOUCHED: gives every row back as log-probabilities."""

    def is_argmax_invariant(self) -> bool:
        return False

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(torch.log_softmax(logits, dim=-1))


class ForgetsReplacement(ForgetsToClear, MinP):
    """PROC-STATE-DEPARTED: a request without min-p that replaces one with it inherits its state."""


class RestartsOnAdd(MinTokens):
    """PROC-FUNCTION: counts the tokens since the add, so that a resumed request starts again."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().add(row, (params, len(output)), prompt, output)

    def wants(self, params: Any) -> bool:
        return bool(params[0].min_tokens)

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params[0], prompt, output[params[1] :])


class LastRules(MinP):
    """PROC-INDEPENDENT: keeps one min_p for the whole batch, that of the highest row."""

    def ruling(self) -> int:
        """The row whose params count."""
        return max(self.rows)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        ruler = self.rows[self.ruling()][0] if self.rows else None
        for row in self.rows:
            self.transform(logits[row], ruler, None, [])
        return logits


class PadsToTheLongest(FrequencyPenalty):
    """PROC-INDEPENDENT: pads the outputs with token 0 to the longest of the batch, and counts the padding."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        longest = max((len(output) for _, _, output in self.rows.values()), default=0)
        for row, (params, prompt, output) in self.rows.items():
            self.transform(logits[row], params, prompt, output + [0] * (longest - len(output)))
        return logits


class CopiesOutputs(MinTokens):
    """PROC-LIVE-OUTPUTS: copies the output list when the request is added."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().add(row, params, prompt, list(output))


class ReadsEarly(NoRepeat):
    """PROC-PLACEHOLDER: reads the newest id during update_state, when it may be -1."""

    newest: Mapping[int, list[int]] = {}

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        self.newest = {row: state[2][-1:] for row, state in self.rows.items()}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, newest in self.newest.items():
            self.transform(logits[row], None, None, newest)
        return logits


class SleepsWhenQuiet(MinTokens):
    """PROC-QUIET: looks at the outputs only when there is an update."""

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        if update is not None:
            self.seen = {row: list(state[2]) for row, state in self.rows.items()}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, prompt, _) in self.rows.items():
            self.transform(logits[row], params, prompt, self.seen[row])
        return logits


class CountsApplies(MinTokens):
    """PROC-APPLY-STATELESS: takes every apply for a token."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().add(row, params, prompt, list(output))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        logits = super().apply(logits)
        for _, _, counted in self.rows.values():
            counted.append(0)
        return logits


class ClaimsInvariance(MinP):
    """PROC-ARGMAX: bans the largest token of its rows and says that this changes no argmax."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[logits == logits.max()] = -math.inf


class ReturnsHalf(MinP):
    """PROC-SHAPE: computes in float16 and forgets to go back."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits.half())


class TrustsItsTable(MinP):
    """PROC-EXCEPTION: a swap with a row it has no state for is a KeyError."""

    def swap(self, row: int, other: int) -> None:
        self.rows[row], self.rows[other] = self.rows[other], self.rows[row]


class ConsumesTheUpdate(MinP):
    """PROC-READONLY: pops the removed rows off the update that the next processor gets."""

    def update_state(self, update: Any) -> None:
        while update is not None and update.removed:
            self.remove(update.removed.pop())
        super().update_state(update)


class NeverRearms(MinTokens):
    """PROC-SHRINK: forgets a request for good once it has enough tokens."""

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        self.rows = {row: state for row, state in self.rows.items() if self.is_short(state)}

    def is_short(self, state: State) -> bool:
        """Whether the request has too few tokens."""
        return len(state[2]) < int(state[0].min_tokens)


class WantsAPrompt(MinP):
    """PROC-PROMPT-NONE: reads the length of the prompt without asking whether there is one."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.longest = max(len(prompt), 0)  # type: ignore[arg-type]
        super().add(row, params, prompt, output)


class AlwaysCopies(MinP):
    """PROC-IDLE: works on a copy, also when nobody uses it."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return super().apply(logits.clone())


class KeepsTheRemoved(MinP):
    """UPD-REMOVE: never takes the state of a request that has left out of its table."""

    def remove(self, row: int) -> None:
        pass


class CompactsNone(MinP):
    """PROC-INDEPENDENT: has one entry for each row, leaves out those that are None, and counts rows by what is left."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        kept = [self.rows[row] for row in range(len(logits)) if row in self.rows]
        for row, (params, prompt, output) in enumerate(kept):
            self.transform(logits[row], params, prompt, output)
        return logits


class TakesMovesForSwaps(MinP):
    """UPD-DROP: does not look at the direction, so that what stood at the destination of a one-way move lives on."""

    def move(self, source: int, destination: int) -> None:
        self.swap(source, destination)


class ComparesWithAString(MinP):
    """UPD-SWAP: compares the direction with a string, which it never equals, so that every move is a one-way move."""

    def move_all(self, moved: Any) -> None:
        for source, destination, direction in moved:
            if direction == "SWAP":
                self.swap(source, destination)
            else:
                self.move(source, destination)


class MovesBeforeAdds(MinP):
    """UPD-ORDER: follows the moves after what was removed and before what was added."""

    def update_state(self, update: Any) -> None:
        if update is None:
            return
        for row in update.removed:
            self.remove(row)
        self.move_all(update.moved)
        for added in update.added:
            self.add(*added)


class ReadsOneAStep(MinTokens):
    """PROC-FUNCTION: reads on by one token in every step, and stays behind when several land in one."""

    def update_state(self, update: Any) -> None:
        for _, live, read in self.rows.values():
            read.extend((live or [])[len(read) :][:1])
        super().update_state(update)

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().add(row, params, output, list(output))


class EmptyIsOff(FrequencyPenalty):
    """PROC-LIVE-OUTPUTS: keeps the output list as its state, and takes one that is empty at the add for none."""

    def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        self.put(row, (params, prompt, output) if self.wants(params) and output else None)


class FirstRules(LastRules):
    """PROC-INDEPENDENT: keeps one min_p for the whole batch, that of the lowest row."""

    def ruling(self) -> int:
        return min(self.rows)


class SharesByParams(MinTokens):
    """PROC-INDEPENDENT: keeps its progress with the params object, which several requests may have."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        furthest = max((held for other, _, held in self.rows.values() if other is params), key=len)
        super().transform(logits, params, prompt, furthest)


class WaitsForAll(FrequencyPenalty):
    """PROC-INDEPENDENT: gives the batch back as it came while one of its rows has no outputs yet."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        ready = all(output for _, _, output in self.rows.values())
        return super().apply(logits) if ready else logits


class CompletesEarly(BadWords):
    """PROC-PLACEHOLDER: reads the ids during update_state, where the newest may be -1, which completes no word."""

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        self.read = {row: list(state[2]) for row, state in self.rows.items()}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, prompt, _) in self.rows.items():
            self.transform(logits[row], params, prompt, self.read[row])
        return logits


class DeletesTheUntracked(MinP):
    """PROC-EXCEPTION: to remove a row that it has no state for is a KeyError."""

    def remove(self, row: int) -> None:
        del self.rows[row]


class NeedsExtraArgs(MinP):
    """PROC-EXCEPTION: looks into extra_args without asking whether there are any."""

    def wants(self, params: Any) -> bool:
        return bool(params.extra_args.get("min_p", params.min_p))
