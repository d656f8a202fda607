"""Ways to get the bookkeeping wrong, each the list law with one thing changed, and each naming the clause it breaks.

A fault says which request it *believes* to be at a row. Run beside the model it shows when a clause was witnessed:
the moment at which somebody with this fault would have been caught. Run beside a subject that failed, it explains.
"""

from __future__ import annotations

from collections.abc import Callable

from logitsproc.conformance.history import Step
from logitsproc.reference.batch import SWAP, Update
from logitsproc.reference.request import Request

PLACEHOLDER = -1
Uses = Callable[[Request], bool]


class Belief:
    """The list law over a dictionary: what a right consumer believes. Faults override one method."""

    reads_outputs = False

    def __init__(self, uses: Uses) -> None:
        self.rows: dict[int, Request] = {}
        self.uses = uses

    def follow(self, update: Update | None, step: Step) -> None:
        """One update_state."""
        if update is None:
            self.quiet()
            return
        for row in update.removed:
            self.remove(row)
        for row, request in update.added:
            self.add(row, request)
        self.move_all(update)

    def move_all(self, update: Update) -> None:
        """The moves, in the order listed."""
        for source, destination, direction in update.moved:
            if direction == SWAP:
                self.swap(source, destination)
            else:
                self.move(source, destination)

    def quiet(self) -> None:
        """None: nothing changes."""

    def remove(self, row: int) -> None:
        """The row is empty."""
        self.rows.pop(row, None)

    def add(self, row: int, request: Request) -> None:
        """The request is at the row."""
        self.rows[row] = request

    def move(self, source: int, destination: int) -> None:
        """The source's request is at the destination, and nowhere else."""
        self.put(destination, self.rows.pop(source, None))

    def swap(self, row: int, other: int) -> None:
        """Each has what the other had."""
        held, opposite = self.rows.pop(row, None), self.rows.pop(other, None)
        self.put(other, held)
        self.put(row, opposite)

    def put(self, row: int, request: Request | None) -> None:
        """The request at the row, or nothing."""
        if request is None:
            self.rows.pop(row, None)
        else:
            self.rows[row] = request

    def applied(self) -> None:
        """After an apply."""

    def at(self, row: int) -> Request | None:
        """Whom the row is believed to serve, with the outputs it is believed to have."""
        return self.rows.get(row)

    def reaches_beyond(self, batch_size: int) -> bool:
        """Whether a row that is not in the batch is believed to serve a user."""
        return any(row >= batch_size and self.is_user(request) for row, request in self.rows.items())

    def is_user(self, request: Request | None) -> bool:
        """Whether the request uses the processor."""
        return request is not None and self.uses(request)


class ShiftsDown(Belief):
    """UPD-REMOVE: rows above a removed one move down by one."""

    def remove(self, row: int) -> None:
        self.rows = {at - (at > row): held for at, held in self.rows.items() if at != row}


class RemovesNothing(Belief):
    """UPD-REMOVE: removals are not looked at."""

    def remove(self, row: int) -> None:
        pass


class Appends(Belief):
    """UPD-ADD: an added request goes behind the last, whatever its row."""

    def add(self, row: int, request: Request) -> None:
        self.rows[max(self.rows, default=-1) + 1] = request


class AppendsUsers(Belief):
    """UPD-ADD: an added request that uses the processor goes behind the last that does, whatever its row."""

    def add(self, row: int, request: Request) -> None:
        if self.is_user(request):
            self.rows[max(self.rows, default=-1) + 1] = request


class AddsOnlyUsers(Belief):
    """PROC-STATE-DEPARTED: an added request that does not use the processor leaves the row's old state."""

    def add(self, row: int, request: Request) -> None:
        if self.is_user(request) or not self.is_user(self.rows.get(row)):
            self.rows[row] = request


class AddsOnlyUsersForgetsRemovals(AddsOnlyUsers):
    """PROC-STATE-DEPARTED: removals are not looked at, and a request without the feature does not clear the row."""

    def remove(self, row: int) -> None:
        pass


class KeepsFirst(Belief):
    """UPD-REPLACE: an occupied row is not replaced."""

    def add(self, row: int, request: Request) -> None:
        if not self.is_user(self.rows.get(row)):
            self.rows[row] = request


class NeverExtends(Belief):
    """UPD-EXTEND: a row that was never there before is not added."""

    def follow(self, update: Update | None, step: Step) -> None:
        self.size = len(self.rows)
        super().follow(update, step)

    def add(self, row: int, request: Request) -> None:
        if row < self.size or not self.size:
            self.rows[row] = request


class IgnoresMoves(Belief):
    """UPD-MOVE: one-way moves are not looked at."""

    def move(self, source: int, destination: int) -> None:
        pass


class IgnoresAllMoves(IgnoresMoves):
    """UPD-MOVE: what moves is not looked at, one way or both."""

    def swap(self, row: int, other: int) -> None:
        pass


class LosesMoves(Belief):
    """UPD-MOVE: what moves one way is lost, and the destination keeps what stood there."""

    def move(self, source: int, destination: int) -> None:
        self.rows.pop(source, None)


class CopiesMoves(Belief):
    """UPD-MOVE: a one-way move leaves its request at the source as well."""

    def move(self, source: int, destination: int) -> None:
        self.put(destination, self.rows.get(source))


class LeavesCopies(Belief):
    """UPD-MOVE: a one-way move leaves its state at the source as well, and a request without any inherits it there."""

    def __init__(self, uses: Uses) -> None:
        super().__init__(uses)
        self.left: set[int] = set()

    def move(self, source: int, destination: int) -> None:
        self.put(destination, self.rows.get(source))
        self.left = self.left - {destination} | {source}

    def add(self, row: int, request: Request) -> None:
        if self.is_user(request) or row not in self.left:
            super().add(row, request)
        self.left.discard(row)


class MovesBackwards(Belief):
    """UPD-MOVE: source and destination of one-way moves are mixed up."""

    def move(self, source: int, destination: int) -> None:
        super().move(destination, source)


class SwapsMoves(Belief):
    """UPD-DROP: a one-way move is taken for a swap, and what stood at the destination lives on."""

    def move(self, source: int, destination: int) -> None:
        self.swap(source, destination)


class MovesOnlyUsers(Belief):
    """UPD-DROP: a one-way move of a request that does not use the processor leaves the destination's old state."""

    def move(self, source: int, destination: int) -> None:
        if self.is_user(self.rows.get(source)) or not self.is_user(self.rows.get(destination)):
            super().move(source, destination)
        else:
            self.rows.pop(source, None)


class IgnoresSwaps(Belief):
    """UPD-SWAP: swaps are not looked at."""

    def swap(self, row: int, other: int) -> None:
        pass


class SwapsOneWay(Belief):
    """UPD-SWAP: a swap is taken for a one-way move."""

    def swap(self, row: int, other: int) -> None:
        self.move(row, other)


class SwapsByCopy(Belief):
    """UPD-SWAP: swapped with a row that has no state, the state stays behind as well."""

    def swap(self, row: int, other: int) -> None:
        held, opposite = self.rows.get(row), self.rows.get(other)
        if self.is_user(held) and self.is_user(opposite):
            super().swap(row, other)
        elif held is not None and self.is_user(held):
            self.rows[other] = held
        elif opposite is not None and self.is_user(opposite):
            self.rows[row] = opposite


class MovesFirst(Belief):
    """UPD-ORDER: moves come before removals and additions."""

    def follow(self, update: Update | None, step: Step) -> None:
        if update is not None:
            self.move_all(update)
            update = Update(update.batch_size, update.removed, update.added)
        super().follow(update, step)


class MovesBeforeAdds(Belief):
    """UPD-ORDER: moves come after removals and before additions."""

    def follow(self, update: Update | None, step: Step) -> None:
        if update is None:
            return
        for row in update.removed:
            self.remove(row)
        self.move_all(update)
        for row, request in update.added:
            self.add(row, request)


class AddsBeforeRemovals(Belief):
    """UPD-OVERLAP: additions come before removals, so that a row removed and added ends up empty."""

    def follow(self, update: Update | None, step: Step) -> None:
        if update is not None:
            for row, request in update.added:
                self.add(row, request)
            update = Update(update.batch_size, update.removed, (), update.moved)
        super().follow(update, step)


class MovesFromSnapshot(Belief):
    """UPD-SEQUENCE: every move reads the batch as it was before the first."""

    def move_all(self, update: Update) -> None:
        before = dict(self.rows)
        for source, destination, direction in update.moved:
            self.put(destination, before.get(source))
            self.put(source, before.get(destination) if direction == SWAP else None)


class MovesInReverse(Belief):
    """UPD-SEQUENCE: the moves are read from the last to the first."""

    def move_all(self, update: Update) -> None:
        super().move_all(Update(update.batch_size, moved=update.moved[::-1]))


class ClearsOnNone(Belief):
    """UPD-NONE: None is taken for an empty batch."""

    def quiet(self) -> None:
        self.rows.clear()


class CutsFirst(Belief):
    """UPD-SIZE: the rows from batch_size on are dropped before the moves have been followed."""

    def move_all(self, update: Update) -> None:
        self.rows = {row: held for row, held in self.rows.items() if row < update.batch_size}
        super().move_all(update)


class FirstRules(Belief):
    """PROC-INDEPENDENT: the params of the first request that uses the processor rule every row that uses it."""

    def at(self, row: int) -> Request | None:
        return self.ruled(row, sorted(self.rows))

    def ruled(self, row: int, order: list[int]) -> Request | None:
        """The row's request with the params of the first user in this order of rows."""
        request = self.rows.get(row)
        if request is None or not self.uses(request):
            return request
        ruler = next(self.rows[at] for at in order if self.uses(self.rows[at]))
        if ruler.params == request.params:
            return request
        return Request(request.name, ruler.params, request.prompt, request.output)


class LastRules(FirstRules):
    """PROC-INDEPENDENT: the params of the last request that uses the processor rule every row that uses it."""

    def at(self, row: int) -> Request | None:
        return self.ruled(row, sorted(self.rows, reverse=True))


class FirstRulesAll(FirstRules):
    """PROC-INDEPENDENT: the params of the first request that uses the processor rule every row."""

    def at(self, row: int) -> Request | None:
        ruler = next((self.rows[at] for at in sorted(self.rows) if self.uses(self.rows[at])), None)
        request = self.rows.get(row)
        if request is None or ruler is None or ruler.params == request.params:
            return request
        return Request(request.name, ruler.params, request.prompt, request.output)


class Remembering(Belief):
    """Base of the faults that see other outputs than the live list has; `heard` is what each request's seem to be."""

    reads_outputs = True

    def __init__(self, uses: Uses) -> None:
        super().__init__(uses)
        self.heard: dict[Request, list[int]] = {}

    def at(self, row: int) -> Request | None:
        request = self.rows.get(row)
        if request is None or not self.uses(request):
            return request
        outputs = self.outputs(request)
        if outputs == request.output:
            return request
        return Request(request.name, request.params, request.prompt, outputs)

    def outputs(self, request: Request) -> list[int]:
        """The outputs that the request is believed to have."""
        return self.heard.get(request, request.output)


class CopiesAtAdd(Remembering):
    """PROC-LIVE-OUTPUTS: the output list is copied when the request is added, and the copy never grows."""

    def add(self, row: int, request: Request) -> None:
        super().add(row, request)
        self.heard[request] = list(request.output)


class LooksOnlyAtUpdates(Remembering):
    """PROC-QUIET: outputs are looked at only when there is an update."""

    def follow(self, update: Update | None, step: Step) -> None:
        super().follow(update, step)
        if update is not None:
            self.heard = {request: list(request.output) for request in self.rows.values()}


class ReadsEarly(Remembering):
    """PROC-PLACEHOLDER: ids are read during update_state, when the newest may still be -1."""

    def follow(self, update: Update | None, step: Step) -> None:
        super().follow(update, step)
        late = {growth.request: growth.late for growth in step.growth}
        self.heard = {}
        for request in self.rows.values():
            unknown = min(late.get(request.name, 0), len(request.output))
            if unknown:
                self.heard[request] = request.output[: len(request.output) - unknown] + [PLACEHOLDER] * unknown


class StartsAfresh(Remembering):
    """PROC-FUNCTION: outputs that a request had when it was added do not count."""

    def __init__(self, uses: Uses) -> None:
        super().__init__(uses)
        self.had: dict[Request, int] = {}

    def add(self, row: int, request: Request) -> None:
        super().add(row, request)
        self.had[request] = len(request.output)

    def outputs(self, request: Request) -> list[int]:
        return request.output[self.had.get(request, 0) :]


class Counting(Remembering):
    """Base of the faults that keep a number of outputs of their own from the add on."""

    def __init__(self, uses: Uses) -> None:
        super().__init__(uses)
        self.count: dict[Request, int] = {}

    def add(self, row: int, request: Request) -> None:
        super().add(row, request)
        self.count[request] = len(request.output)

    def outputs(self, request: Request) -> list[int]:
        return (request.output + [0] * self.count[request])[: self.count[request]]


class CountsApplies(Counting):
    """PROC-APPLY-STATELESS: progress is the number of applies, not of outputs."""

    def applied(self) -> None:
        for request in self.rows.values():
            self.count[request] += 1


class OneTokenAStep(Counting):
    """PROC-FUNCTION: progress is one token for every update_state, however many came."""

    def follow(self, update: Update | None, step: Step) -> None:
        for request in self.rows.values():
            self.count[request] = self.count.get(request, 0) + 1
        super().follow(update, step)


class NeverRearms(Remembering):
    """PROC-SHRINK: the longest the list has been counts, not what it is."""

    def follow(self, update: Update | None, step: Step) -> None:
        super().follow(update, step)
        for request in self.rows.values():
            if len(request.output) >= len(self.heard.get(request, ())):
                self.heard[request] = list(request.output)


FAULTS: tuple[type[Belief], ...] = (
    ClearsOnNone,
    ShiftsDown,
    RemovesNothing,
    Appends,
    AppendsUsers,
    NeverExtends,
    AddsOnlyUsers,
    KeepsFirst,
    AddsOnlyUsersForgetsRemovals,
    IgnoresMoves,
    IgnoresAllMoves,
    LosesMoves,
    CopiesMoves,
    LeavesCopies,
    CutsFirst,
    MovesBackwards,
    MovesOnlyUsers,
    SwapsMoves,
    IgnoresSwaps,
    SwapsOneWay,
    SwapsByCopy,
    MovesFromSnapshot,
    MovesInReverse,
    MovesBeforeAdds,
    MovesFirst,
    AddsBeforeRemovals,
    FirstRules,
    LastRules,
    FirstRulesAll,
    CopiesAtAdd,
    LooksOnlyAtUpdates,
    ReadsEarly,
    StartsAfresh,
    CountsApplies,
    OneTokenAStep,
    NeverRearms,
)


def clause_of(fault: type) -> str:
    """The clause that the fault's docstring opens with."""
    return (fault.__doc__ or "").partition(":")[0]


def account(fault: type) -> str:
    """What the fault's docstring says after the clause."""
    return " ".join((fault.__doc__ or "").partition(":")[2].split())
