"""The lemmas: what is proved of the shipped code, for batches of any size unless a bound is named.

Each is a sentence, and a body that runs twice: on terms, where `suppose` adds to what is known and `show` is proved,
and on the plain values of every witness. `planted` are errors that the lemma has to refute.

How they compose. A history is a sequence of operations, an update being its removals, additions and moves in that
order (`follows_in_order`). The empty table refines the empty list (`base`), and each operation keeps the refinement
(`remove`, `add`, `move`, `swap`, `shrink`; `step` says it of whichever operation comes next). So, by induction over the
operations, the table refines the list after every history. Condensing is the same induction over its moves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from logitsproc.optimized.table import Users
from logitsproc.proofs.errors import (
    ExtendsWithATakenSlot,
    ForgetsTooMuch,
    KeepsBit,
    KeepsTheOverwritten,
    KeepsTheRemoved,
    KeepsTheReplaced,
    LeavesAGhost,
    LeavesHole,
    MovesBackward,
    MovesBothWays,
    MovesFirst,
    NeverExtends,
    SharesASlot,
    StartsUsed,
    StartsWithRow,
    SwapsOneWay,
    SwapsSlotsOnly,
    SwapsStatesToo,
    adds_anywhere,
    adds_before,
    condenses_above,
    condenses_and_keeps,
    condenses_from_below,
    condenses_one_hole,
    cuts_a_request,
    exchanges,
    follows_none,
    moves_and_keeps,
    moves_holes,
    removes_holes,
    removes_next,
    resizes_not,
    swaps_one_way,
    trims_anything,
    trims_nothing,
)
from logitsproc.proofs.kernel import NONE, both, either, implies, no, where
from logitsproc.proofs.orders import in_order
from logitsproc.proofs.statement import Planted, planted
from logitsproc.reference import batch as reference
from logitsproc.reference import producer
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, IllFormed, Update
from logitsproc.reference.producer import ELIDED, EXPLICIT

SUPPOSED = attrgetter("suppose", "suppose_all", "suppose_pairs")
SHOWN = attrgetter("show", "show_all", "show_pairs")
Proof = Any
"""kernel.Symbolic or kernel.Plain."""
Code = SimpleNamespace
Body = Callable[[Proof, Code], Any]


@dataclass(frozen=True)
class Lemma:
    """A sentence, its clauses, its body, and errors that it has to refute.

    bound: what it is limited to, if anything. smallest: errors are refuted on the shortest list that shows them.
    also: what the body speaks of beside the shipped code.
    """

    name: str
    sentence: str
    clauses: tuple[str, ...]
    body: Body
    planted: tuple[Planted, ...]
    bound: str
    smallest: bool
    also: Mapping[str, Any]


LEMMAS: dict[str, Lemma] = {}
ALSO: dict[str, Any] = {}
"""What lemmas speak of beside the shipped code; it is filled in at the end."""


def lemma(
    *errors: Planted, bound: str = "", smallest: bool = False, also: Mapping[str, Any] | None = None
) -> Callable[[Body], Body]:
    """Puts a body among the lemmas; its docstring is the clauses, a colon and the sentence."""

    def put(body: Body) -> Body:
        clauses, _, sentence = " ".join((inspect.getdoc(body) or "").split()).partition(": ")
        name = body.__name__
        LEMMAS[name] = Lemma(
            name, sentence, tuple(clauses.split(", ")), body, errors, bound, smallest, ALSO if also is None else also
        )
        return body

    return put


def refused(operation: Callable[..., None], *arguments: Any) -> bool:
    """Whether the list refuses the operation; else it is done."""
    try:
        operation(*arguments)
    except IllFormed:
        return True
    return False


# Invariants


def is_table(p: Proof, said: Any, slots: Any, live: Any) -> None:
    """Every row owns a slot and has a bit, and no two rows own the same slot: the map is a permutation."""
    one, each, pair = said(p)
    size = p.size(slots)
    one(size == p.size(live), "there are as many bits as slots")
    each(size, lambda row: both(p.peek(slots, row) >= 0, p.peek(slots, row) < size), "every row owns a slot")
    pair(size, lambda row, other: p.peek(slots, row) != p.peek(slots, other), "no two rows own the same slot")


def same_rows(p: Proof, said: Any, live: Any, batch: Any) -> None:
    """The bits say which rows of the list hold a request; beyond the list none does."""
    one, each, _ = said(p)
    size = p.size(batch)
    one(size <= p.size(live), "the table has every row of the list")
    each(
        p.size(live),
        lambda row: p.peek(live, row) == both(row < size, p.peek(batch, row) != NONE),
        "the same rows hold a request",
    )


class Table(NamedTuple):
    """A list, a row table, and the requests as they were written to the slots that `add` gave."""

    batch: Any
    table: Any
    held: Any


def table_refines(p: Proof, said: Any, at: Table) -> None:
    """The table is one, and the slot of each row that holds a request holds that request."""
    batch, slots, held = at.batch, at.table.slots, at.held
    one, each, _ = said(p)
    is_table(p, said, slots, at.table.live)
    same_rows(p, said, at.table.live, batch)
    one(p.size(held) == p.size(slots), "there are as many records as slots")
    each(
        p.size(batch),
        lambda row: implies(p.peek(batch, row) != NONE, p.peek(held, p.peek(slots, row)) == p.peek(batch, row)),
        "the slot of a request holds it",
    )


def any_table(p: Proof, code: Code) -> Table:
    """Any list, and any table that refines it."""
    size = p.number("size", 0)
    table = code.RowTable()
    table.slots, table.live = p.rows("slots", size, "int"), p.rows("live", size, "bool")
    at = Table(p.rows("batch", p.number("rows", 0), "optional"), table, p.rows("held", size, "int"))
    table_refines(p, SUPPOSED, at)
    return at


def table_ends(p: Proof, at: Table) -> Any:
    """The table still refines the list; gives the end state."""
    table_refines(p, SHOWN, at)
    return at.batch, at.table.slots, at.table.live, at.held


class Using(NamedTuple):
    """A list, the users of a processor over a table, and which state a request has, or none."""

    batch: Any
    users: Any
    state_of: Any


def users_refine(p: Proof, said: Any, at: Using) -> None:
    """The table is one; the state of each row is that of its request; nothing else is kept."""
    batch, table, states = at.batch, at.users.table, at.users.states
    one, each, _ = said(p)
    is_table(p, said, table.slots, table.live)
    same_rows(p, said, table.live, batch)
    one(p.size(states) <= p.size(table.slots), "nothing is kept beyond the slots")
    each(
        p.size(table.slots),
        lambda row: implies(no(p.peek(table.live, row)), p.peek(states, p.peek(table.slots, row)) == NONE),
        "nothing is kept in the slot of a hole",
    )
    each(
        p.size(batch),
        lambda row: implies(
            p.peek(batch, row) != NONE,
            p.peek(states, p.peek(table.slots, row)) == at.state_of(p.peek(batch, row)),
        ),
        "the state of a row is that of its request",
    )


PROMPT, OUTPUT = [1], [2]
"""The lists of every request."""


def are_own(prompt: Any, output: Any) -> bool:
    """Whether they are the lists themselves, each in its place."""
    return prompt is PROMPT and output is OUTPUT


def any_users(p: Proof, code: Code) -> Using:
    """Any list, and any users that refine it."""
    size, state_of = p.number("size", 0), p.function("state_of")
    users = code.Users(lambda params, prompt, output: p.optional(state_of(params)) if are_own(prompt, output) else None)
    users.table = code.RowTable()
    users.table.slots, users.table.live = p.rows("slots", size, "int"), p.rows("live", size, "bool")
    users.states = p.map("states", size)
    at = Using(p.rows("batch", p.number("rows", 0), "optional"), users, state_of)
    users_refine(p, SUPPOSED, at)
    return at


def users_end(p: Proof, at: Using) -> Any:
    """The users still refine the list; gives the end state."""
    users_refine(p, SHOWN, at)
    return at.batch, at.users.table.slots, at.users.table.live, at.users.states


def same_list(p: Proof, one: Any, other: Any, says: str) -> None:
    """Two lists have the same cells."""
    p.show(p.size(one) == p.size(other), f"{says}: as many rows")
    p.show_all(p.size(one), lambda row: p.peek(one, row) == p.peek(other, row), f"{says}: the same in every row")


# The table refines the list


@lemma(planted(RowTable=StartsWithRow), planted(Users=StartsUsed))
def base(p: Proof, code: Code) -> Any:
    """UPD-NONE: The empty table refines the empty list, and no state is kept before anybody came."""
    table, users = code.RowTable(), code.Users(lambda params, prompt, output: None)
    p.show(table.slots == [] and table.live == [], "a new table has no row, so whatever is said of every row holds")
    p.show(users.table.slots == [] and users.states == {}, "new users have no row and no state")
    return "nothing"


@lemma(planted(RowTable=KeepsBit))
def remove(p: Proof, code: Code) -> Any:
    """UPD-REMOVE: After any removal that the list takes, the table still refines the list."""
    at, row = any_table(p, code), p.number("row")
    if refused(code.remove, at.batch, row):
        return "refused"
    at.table.remove(row)
    return table_ends(p, at)


@lemma(planted(RowTable=LeavesHole), planted(RowTable=ExtendsWithATakenSlot), planted(RowTable=NeverExtends))
def add(p: Proof, code: Code) -> Any:
    """UPD-ADD, UPD-REPLACE, UPD-EXTEND: After any addition, at a hole, at a request or one past the end, the table
    still refines the list.
    """
    at, row, request = any_table(p, code), p.number("row"), p.number("request", 1)
    if refused(code.add, at.batch, row, request):
        return "refused"
    slot = at.table.add(row)
    if slot == p.size(at.held):
        at.held.append(request)
    else:
        at.held[slot] = request
    return table_ends(p, at)


@lemma(planted(RowTable=SharesASlot), planted(RowTable=LeavesAGhost))
def move(p: Proof, code: Code) -> Any:
    """UPD-MOVE, UPD-DROP: After any one-way move, to a hole or onto a request, the table still refines the list."""
    at, source, destination = any_table(p, code), p.number("source"), p.number("destination")
    if refused(code.move, at.batch, source, destination):
        return "refused"
    at.table.move(source, destination)
    return table_ends(p, at)


@lemma(planted(RowTable=SwapsSlotsOnly), planted(RowTable=SwapsOneWay))
def swap(p: Proof, code: Code) -> Any:
    """UPD-SWAP: After any swap, of requests, of holes, of a row with itself, the table still refines the list."""
    at, row, other = any_table(p, code), p.number("row"), p.number("other")
    if refused(code.swap, at.batch, row, other):
        return "refused"
    at.table.swap(row, other)
    return table_ends(p, at)


@lemma(planted(resize=cuts_a_request))
def shrink(p: Proof, code: Code) -> Any:
    """UPD-SIZE: When the list becomes shorter, the table, which is not told, still refines it."""
    at, batch_size = any_table(p, code), p.number("batch_size", 0)
    if refused(code.resize, at.batch, batch_size):
        return "refused"
    return table_ends(p, at)


@lemma(planted(Users=KeepsTheRemoved), planted(Users=ForgetsTooMuch))
def users_remove(p: Proof, code: Code) -> Any:
    """UPD-REMOVE, PROC-STATE-DEPARTED: After any removal each row has the state of its request, and nothing else is
    kept.
    """
    at, row = any_users(p, code), p.number("row")
    if refused(code.remove, at.batch, row):
        return "refused"
    at.users.remove(row)
    return users_end(p, at)


@lemma(planted(Users=KeepsTheReplaced), planted(RowTable=ExtendsWithATakenSlot))
def users_add(p: Proof, code: Code) -> Any:
    """UPD-ADD, UPD-REPLACE, UPD-EXTEND, PROC-STATE-DEPARTED: After any addition, of a user or not, each row has the
    state of its request, and nothing else is kept.
    """
    at, row, request = any_users(p, code), p.number("row"), p.number("request", 1)
    if refused(code.add, at.batch, row, request):
        return "refused"
    at.users.add(row, request, PROMPT, OUTPUT)
    return users_end(p, at)


@lemma(planted(Users=KeepsTheOverwritten), planted(Users=MovesBothWays))
def users_move(p: Proof, code: Code) -> Any:
    """UPD-MOVE, UPD-DROP, PROC-STATE-DEPARTED: After any one-way move each row has the state of its request, and
    nothing else is kept.
    """
    at, source, destination = any_users(p, code), p.number("source"), p.number("destination")
    if refused(code.move, at.batch, source, destination):
        return "refused"
    at.users.move(source, destination, both_ways=False)
    return users_end(p, at)


@lemma(planted(Users=SwapsStatesToo))
def users_swap(p: Proof, code: Code) -> Any:
    """UPD-SWAP, PROC-STATE-DEPARTED: After any swap each row has the state of its request, and nothing else is kept."""
    at, row, other = any_users(p, code), p.number("row"), p.number("other")
    if refused(code.swap, at.batch, row, other):
        return "refused"
    at.users.move(row, other, both_ways=True)
    return users_end(p, at)


@lemma(planted(resize=cuts_a_request))
def users_shrink(p: Proof, code: Code) -> Any:
    """UPD-SIZE: When the list becomes shorter, each row has the state of its request, and nothing else is kept."""
    at, batch_size = any_users(p, code), p.number("batch_size", 0)
    if refused(code.resize, at.batch, batch_size):
        return "refused"
    return users_end(p, at)


@lemma(planted(Users=KeepsTheRemoved), planted(Users=KeepsTheReplaced), planted(Users=KeepsTheOverwritten))
def step(p: Proof, code: Code) -> Any:
    """UPD-SEQUENCE: If users refine the list, they do after the next operation, whichever it is; so, by induction,
    after any sequence of operations.
    """
    at, row, other, request = any_users(p, code), p.number("row"), p.number("other"), p.number("request", 1)
    if p.truth_value("removes"):
        asked, follow = partial(code.remove, at.batch, row), partial(at.users.remove, row)
    elif p.truth_value("adds"):
        asked, follow = partial(code.add, at.batch, row, request), partial(at.users.add, row, request, PROMPT, OUTPUT)
    elif p.truth_value("moves"):
        asked, follow = partial(code.move, at.batch, row, other), partial(at.users.move, row, other, both_ways=False)
    else:
        asked, follow = partial(code.swap, at.batch, row, other), partial(at.users.move, row, other, both_ways=True)
    if refused(asked):
        return "refused"
    follow()
    return users_end(p, at)


# Updates, and their order


class Told(NamedTuple):
    """An update as vLLM has it."""

    removed: Any
    added: Any
    moved: Any


class Direction(NamedTuple):
    """A direction as an enum member has it."""

    name: str


def told(update: Update) -> Told:
    """The update in the form in which a processor is told it; a request is its own params."""
    added: list[Any] = [(row, request, PROMPT, OUTPUT) for row, request in update.added]
    moved = [(source, destination, Direction(way)) for source, destination, way in update.moved]
    return Told(list(update.removed), added, moved)


def any_update(p: Proof, batch_size: Any, most: int = 3) -> Update:
    """Any update with at most one removal, one addition and one move, either way, and at most so many of the three."""
    row, new, request = p.number("removed"), p.number("added"), p.number("request", 1)
    source, destination = p.number("source"), p.number("destination")
    way = SWAP if p.truth_value("swap") else UNIDIRECTIONAL
    removed = (row,) if p.truth_value("removes") else ()
    added = ((new, request),) if p.truth_value("adds") else ()
    left = most - len(removed) - len(added)
    moved = ((source, destination, way),) if left and p.truth_value("moves") else ()
    return Update(batch_size, removed, added, moved)


def some_update(p: Proof) -> Update:
    """Any update with at most two removals, two additions and two moves, each either way."""
    removed = tuple(p.number(f"removed {place}") for place in range(how_many(p, "removals")))
    added = tuple((p.number(f"added {at}"), p.number(f"request {at}", 1)) for at in range(how_many(p, "additions")))
    moved = tuple(
        (p.number(f"source {place}"), p.number(f"destination {place}"), any_way(p, f"swap {place}"))
        for place in range(how_many(p, "moves"))
    )
    return Update(p.number("batch_size", 0), removed, added, moved)


def how_many(p: Proof, what: str, most: int = 2) -> int:
    """None, one or, if that is not too many, two."""
    if not p.truth_value(f"some {what}"):
        return 0
    return 2 if most == 2 and p.truth_value(f"two {what}") else 1


def any_way(p: Proof, name: str) -> str:
    """Both ways or one."""
    return SWAP if p.truth_value(name) else UNIDIRECTIONAL


def operations_of(apply: Callable[[Any, Update], None], update: Update) -> list[tuple[Any, ...]]:
    """The operations that the list does for an update, in their order, each with its rows."""
    done: list[tuple[Any, ...]] = []
    operations: dict[str, Any] = {name: noting(done, name) for name in ("remove", "add", "move", "swap")}
    with mock.patch.multiple(reference, **operations, resize=lambda *_: None):
        apply([], update)
    return done


def noting(done: list[tuple[Any, ...]], name: str) -> Callable[..., None]:
    """An operation that is noted instead of done."""
    return lambda batch, *rows: done.append((name, *rows))


def operations_followed(users: type[Users[Any]], update: Update) -> list[tuple[Any, ...]]:
    """The operations that users do for an update, in their order, each with its rows."""
    done: list[tuple[Any, ...]] = []

    class Noting(users):  # type: ignore[valid-type, misc]
        def remove(self, row: int) -> None:
            done.append(("remove", row))

        def add(self, row: int, params: Any, prompt: list[int] | None, output: list[int]) -> None:
            done.append(("add" if are_own(prompt, output) else "add of others' lists", row, params))

        def move(self, source: int, destination: int, both_ways: bool) -> None:
            done.append(("swap" if both_ways else "move", source, destination))

    Noting(lambda params, prompt, output: None).follow(told(update))
    return done


@lemma(
    planted(Users=MovesFirst),
    planted(Users=MovesBackward),
    planted(apply_update=in_order("moved", "removed", "added")),
    bound="two operations of each part",
)
def follows_in_order(p: Proof, code: Code) -> Any:
    """UPD-ORDER, UPD-SEQUENCE, UPD-OVERLAP: Users who follow an update do the operations that the list does, with the
    same rows, in the same order: the removals, the additions, the moves, each as they are listed.
    """
    update = some_update(p)
    asked, done = operations_of(code.apply_update, update), operations_followed(code.Users, update)
    p.show([name for name, *_ in done] == [name for name, *_ in asked], "the same operations")
    rows = [pair for one, other in zip(done, asked, strict=False) for pair in zip(one[1:], other[1:], strict=False)]
    p.show(both(True, *(one == other for one, other in rows)), "of the same rows")
    return tuple(done)


@lemma(planted(apply_update=follows_none))
def none_changes_nothing(p: Proof, code: Code) -> Any:
    """UPD-NONE: An update that is None leaves every row as it is."""
    batch = p.rows("batch", p.number("rows", 0), "optional")
    after = p.copied(batch)
    if refused(code.apply_update, after, None):
        p.show(False, "None is refused")
    same_list(p, after, batch, "after None")
    return after


def disjoint(update: Update) -> Any:
    """No row is both removed and added."""
    return both(True, *(row != new for row in update.removed for new, _ in update.added))


def overlapping(update: Update) -> Any:
    """A row may be both removed and added."""
    return True


@lemma(
    planted(added_first=in_order("moved", "removed", "added")),
    planted(added_first=in_order("removed", "moved", "added")),
    planted(added_first=in_order("moved", "added", "removed")),
    planted(disjoint=overlapping),
    smallest=True,
)
def orders_agree(p: Proof, code: Code) -> Any:
    """UPD-ORDER, PROD-DISJOINT: A removal and an addition of different rows may be exchanged, whatever move follows;
    so, one exchange after the other, removed-added-moved and added-removed-moved give the same list where no row is
    both removed and added. Where moves come before additions they do not.
    """
    batch = p.rows("batch", p.number("rows", 0), "optional")
    other, update = p.copied(batch), any_update(p, p.number("batch_size", 0))
    p.suppose(code.disjoint(update))
    if refused(code.apply_update, batch, update):
        return "refused"
    p.show(not refused(code.added_first, other, update), "the other order takes it as well")
    same_list(p, other, batch, "in the other order")
    return other


def named_once(update: Update) -> Any:
    """No row is named by two operations."""
    rows = [*update.removed, *(row for row, _ in update.added), *(row for pair in update.moved for row in pair[:2])]
    return both(True, *(one != other for place, one in enumerate(rows) for other in rows[:place]))


@lemma(planted(named_once=overlapping), smallest=True)
def all_orders_agree(p: Proof, code: Code) -> Any:
    """UPD-ORDER, PROD-ELIDE: Two operations of different parts that name no row twice give the same list in either
    order; so, where an update names no row twice, as the elided dialect does without swaps, every order of its parts
    does.
    """
    batch = p.rows("batch", p.number("rows", 0), "optional")
    other, update = p.copied(batch), any_update(p, p.number("batch_size", 0), most=2)
    p.suppose(code.named_once(update))
    if refused(code.apply_update, batch, update):
        return "refused"
    p.show(not refused(in_order("moved", "added", "removed"), other, update), "the opposite order takes it as well")
    same_list(p, other, batch, "in the opposite order")
    return batch


# One gather map for a whole update


class Gather(NamedTuple):
    """A list before an update with the requests that it adds behind it, a list meanwhile, and where each row came from.

    sources: for each row the place in `before` of what stands there now, from 1 on, or None.
    """

    before: Any
    batch: Any
    sources: Any


def any_gather(p: Proof) -> Gather:
    """Any list in the middle of an update, and a map that says where its rows came from."""
    before = p.rows("before", p.number("known", 0), "optional")
    rows = p.number("rows", 0)
    at = Gather(before, p.rows("batch", rows, "optional"), p.rows("sources", rows, "optional"))
    gathers(p, SUPPOSED, at)
    return at


def gathers(p: Proof, said: Any, at: Gather) -> None:
    """Each row of the list is what the map says."""
    one, each, _ = said(p)
    one(p.size(at.batch) == p.size(at.sources), "the map has as many rows as the list")
    each(p.size(at.sources), lambda row: p.peek(at.sources, row) <= p.size(at.before), "no row comes from nowhere")
    each(
        p.size(at.sources),
        lambda row: implies(p.peek(at.sources, row) == NONE, p.peek(at.batch, row) == NONE),
        "a row without a source is a hole",
    )
    each(
        p.size(at.sources),
        lambda row: implies(
            p.peek(at.sources, row) != NONE,
            both(
                p.peek(at.batch, row) == p.peek(at.before, p.peek(at.sources, row) - 1),
                p.peek(at.batch, row) != NONE,
            ),
        ),
        "a row is what its source was",
    )


def gathered(p: Proof, code: Code, operation: str, *rows: Any) -> Any:
    """The operation, on the list and on the map; the map still gathers the list."""
    at = any_gather(p)
    if refused(getattr(reference, operation), at.batch, *rows):
        return "refused"
    p.show(not refused(getattr(code, operation), at.sources, *rows), "the map takes what the list takes")
    gathers(p, SHOWN, at)
    return at.batch, at.sources


@lemma(planted(remove=removes_next))
def gather_remove(p: Proof, code: Code) -> Any:
    """UPD-REMOVE: Removing a row from the map of an update's gather equals removing it from the list."""
    return gathered(p, code, "remove", p.number("row"))


@lemma(planted(move=moves_and_keeps), planted(move=exchanges))
def gather_move(p: Proof, code: Code) -> Any:
    """UPD-MOVE, UPD-DROP: Moving a row of the map equals moving it in the list."""
    return gathered(p, code, "move", p.number("source"), p.number("destination"))


@lemma(planted(swap=swaps_one_way))
def gather_swap(p: Proof, code: Code) -> Any:
    """UPD-SWAP: Swapping two rows of the map equals swapping them in the list."""
    return gathered(p, code, "swap", p.number("row"), p.number("other"))


@lemma(planted(resize=resizes_not))
def gather_shrink(p: Proof, code: Code) -> Any:
    """UPD-SIZE: Cutting rows off the map equals cutting them off the list."""
    return gathered(p, code, "resize", p.number("batch_size", 0))


@lemma(planted(add=adds_before))
def gather_add(p: Proof, code: Code) -> Any:
    """UPD-ADD, UPD-REPLACE, UPD-EXTEND: Adding to the map the place of a request that is put behind the old list equals
    adding the request to the list.
    """
    at, row, request = any_gather(p), p.number("row"), p.number("request", 1)
    at.before.append(request)
    if refused(reference.add, at.batch, row, request):
        return "refused"
    p.show(not refused(code.add, at.sources, row, p.size(at.before)), "the map takes what the list takes")
    gathers(p, SHOWN, at)
    return at.batch, at.sources


# What the list refuses


@lemma(
    planted(remove=removes_holes),
    planted(add=adds_anywhere),
    planted(move=moves_holes),
    planted(swap=exchanges),
)
def refuses_what_it_cannot(p: Proof, code: Code) -> Any:
    """PROD-RANGE: The list refuses an operation exactly where it names a row that it cannot: no request is removed,
    moved or cut off that is not there, and no row is named beyond the end but the one after it.
    """
    batch, row, other = p.rows("batch", p.number("rows", 0), "optional"), p.number("row"), p.number("other")
    rows = p.size(batch)
    known, occupied = both(row >= 0, row < rows), p.peek(batch, row) != NONE
    if p.truth_value("removes"):
        found, right = refused(code.remove, batch, row), no(both(known, occupied))
    elif p.truth_value("adds"):
        found, right = refused(code.add, batch, row, p.number("request", 1)), no(both(row >= 0, row <= rows))
    elif p.truth_value("moves"):
        right = no(both(known, occupied, other >= 0, other < rows, row != other))
        found = refused(code.move, batch, row, other)
    else:
        right = no(both(known, other >= 0, other < rows))
        found = refused(code.swap, batch, row, other)
    p.show(right if found else no(right), "refused exactly where it has to be")
    return found


@lemma(planted(resize=cuts_a_request))
def never_cuts_a_request(p: Proof, code: Code) -> Any:
    """UPD-SIZE, PROD-RANGE: The list becomes as long as it is told, and never loses a request by it."""
    batch, batch_size = p.rows("batch", p.number("rows", 0), "optional"), p.number("batch_size", 0)
    before = p.copied(batch)
    if refused(code.resize, batch, batch_size):
        return "refused"
    rows = p.size(before)
    p.show(p.size(batch) == where(batch_size < rows, batch_size, rows), "as many rows as it is told")
    p.show_all(rows, lambda row: implies(row >= batch_size, p.peek(before, row) == NONE), "what is cut off is a hole")
    return batch


# What the engine's algorithm does


@lemma(planted(trim_once=trims_anything), planted(trim_once=trims_nothing))
def trims(p: Proof, code: Code) -> Any:
    """PROD-CONTIGUOUS: The body of the loop that trims takes one hole off the end, and no request; where it takes none
    the last row holds a request, or there is no row. So the loop ends.
    """
    batch, request = p.rows("batch", p.number("rows", 0), "optional"), p.number("any request", 1)
    before, rows = p.copied(batch), p.size(batch)
    p.watch(batch, request)
    times = p.times(batch, request)
    took = code.trim_once(batch)
    last = p.peek(before, rows - 1)
    p.show(p.size(batch) == rows - (1 if took else 0), "one row less, or as many")
    p.show(both(rows > 0, last == NONE) if took else either(rows == 0, last != NONE), "a hole at the end is taken")
    p.show(p.times(batch, request) == times, "no request is lost")
    return took, batch


@lemma(
    planted(condense_once=condenses_from_below),
    planted(condense_once=condenses_and_keeps),
    planted(condense_once=condenses_above),
)
def condenses_once(p: Proof, code: Code) -> Any:
    """PROD-CONDENSE: The body of the loop that condenses moves the highest request into the lowest hole: up to there
    all rows hold requests, the end is a hole, so that the gap shrinks, no other row changes, and no request is lost or
    doubled.
    """
    batch, request = p.rows("batch", p.number("rows", 1), "optional"), p.number("any request", 1)
    before, last = p.copied(batch), p.size(batch) - 1
    p.suppose(p.peek(batch, last) != NONE)
    if None not in batch:
        return "condensed"
    p.watch(batch, request)
    times = p.times(batch, request)
    source, hole, way = code.condense_once(batch)
    p.show(both(source == last, way == UNIDIRECTIONAL), "from the highest request")
    p.show(both(hole >= 0, hole < last, p.peek(before, hole) == NONE), "into a hole")
    p.show_all(hole, lambda row: p.peek(before, row) != NONE, "the lowest one")
    p.show(both(p.peek(batch, hole) == p.peek(before, last), p.peek(batch, last) == NONE), "which leaves a hole")
    p.show_all(
        p.size(before),
        lambda row: either(row == hole, row == last, p.peek(batch, row) == p.peek(before, row)),
        "no other row changes",
    )
    p.show(p.times(batch, request) == times, "no request is lost or doubled")
    return source, hole, batch


@lemma(planted(condense=condenses_one_hole), bound="two holes")
def condenses(p: Proof, code: Code) -> Any:
    """PROD-CONDENSE, PROD-CONTIGUOUS: After condensing no row is a hole, the moves that are told lead there, and no
    request is lost or doubled.
    """
    batch, request = p.rows("batch", p.number("rows", 0), "optional"), p.number("any request", 1)
    one, other = p.number("one hole"), p.number("other hole")
    p.suppose_all(p.size(batch), lambda row: either(p.peek(batch, row) != NONE, row == one, row == other))
    replayed = p.copied(batch)
    p.watch(batch, request)
    times = p.times(batch, request)
    moved = code.condense(batch)
    p.show_all(p.size(batch), lambda row: p.peek(batch, row) != NONE, "no row is a hole")
    p.show(p.times(batch, request) == times, "no request is lost or doubled")
    p.show(not refused(reference.apply_update, replayed, Update(p.size(batch), moved=tuple(moved))), "a move is taken")
    same_list(p, replayed, batch, "the moves lead there")
    return tuple(moved), batch


@lemma(planted("The count is taken for what does not change.", counted=lambda p, times, old, new, value: times))
def counts(p: Proof, code: Code) -> Any:
    """PROD-CONDENSE: The count of a value in a list changes, when a cell is written, by whether the new cell holds it
    less whether the old one did: if that is so of the cells up to a row, it is so up to the next.
    """
    value, written, row = p.number("value"), p.number("written", 0), p.number("row", 0)
    old, new = p.number("old"), p.number("new")
    before, after = p.number("before"), p.number("after")
    cell = where(row == written, old, p.number("cell"))
    cell_after = where(row == written, new, cell)
    changed = where(row > written, code.counted(p, 0, old, new, value), 0)
    p.suppose(after == before + changed)
    then = where(row + 1 > written, code.counted(p, 0, old, new, value), 0)
    before_next, after_next = before + holds(cell, value), after + holds(cell_after, value)
    p.show(after_next == before_next + then, "the rule holds up to the next row")
    return before_next, after_next


def counted(p: Proof, times: Any, old: Any, new: Any, value: Any) -> Any:
    """How often a value is in a list after a cell is written."""
    return times - holds(old, value) + holds(new, value)


def holds(cell: Any, value: Any) -> Any:
    """1 where the cell holds the value, else 0."""
    return where(cell == value, 1, 0)


class Scheduled(NamedTuple):
    """A full batch, and what a scheduler asks for; the rows that are vacated are in ascending order here."""

    batch: Any
    vacated: list[Any]
    arrivals: list[Any]
    swaps: list[Any]


def any_schedule(p: Proof, most: int = 2) -> Scheduled:
    """Any full batch, of which up to so many requests leave, to which as many may come, and up to one swap."""
    batch = p.rows("batch", p.number("rows", 0), "optional")
    p.suppose_all(p.size(batch), lambda row: p.peek(batch, row) != NONE)
    vacated = [p.number(f"vacated {place}", 0) for place in range(how_many(p, "departures", most))]
    for place, row in enumerate(vacated):
        p.suppose(both(row < p.size(batch), *(row > before for before in vacated[:place])))
    arrivals = [p.number(f"request {place}", 1) for place in range(how_many(p, "arrivals", most))]
    swaps = [(p.number("row", 0), p.number("other", 0))] if p.truth_value("swap") else []
    return Scheduled(batch, vacated, arrivals, swaps)


def descends(rows: Any) -> Any:
    """Whether each row is above the next."""
    return both(True, *(row > following for row, following in pairwise(rows)))


def told_by(p: Proof, code: Code, asked: Scheduled, batch: Any, dialect: str) -> Any:
    """What the step does to the batch: the update, or the word for a swap that is asked of rows that are not there."""
    with mock.patch.object(producer, "listed", code.listed):
        try:
            return code.engine_step(batch, asked.vacated[::-1], asked.arrivals, asked.swaps, dialect)
        except IllFormed:
            return "refused"


def altered(says: str, alter: Callable[[Update], Update | None]) -> Planted:
    """An engine whose updates are altered."""

    def engine_step(*asked: Any) -> Update | None:
        update = producer.engine_step(*asked)
        return update and alter(update)

    return Planted(says, {"engine_step": engine_step})


STEPS = "two departures, two arrivals, one swap"


@lemma(
    planted("The elided dialect tells every unreplaced row.", listed=lambda unreplaced, *_: list(unreplaced)),
    planted("One unreplaced row is told at most.", listed=lambda unreplaced, *_: list(unreplaced)[:1]),
    altered("The last move is not told.", lambda update: replace(update, moved=update.moved[:-1])),
    altered(
        "Additions come in the order of the highest row first.",
        lambda update: replace(update, added=update.added[::-1]),
    ),
    altered("What is only moved is not told.", lambda update: update if update.added or update.removed else None),
    altered(
        "The rows that are told are one too many.", lambda update: replace(update, batch_size=update.batch_size + 1)
    ),
    bound=STEPS,
)
def steps(p: Proof, code: Code) -> Any:
    """PROD-RANGE, PROD-REPLAY, PROD-CONTIGUOUS, PROD-SIZE, PROD-NONE, PROD-DISJOINT, PROD-REFILL, PROD-ELIDE: What a
    step of the engine's algorithm tells leads from the old rows to the new, in either dialect, and is well-formed; no
    row is a hole then, no row is both removed and added, arrivals take vacated rows lowest first, and nothing is told
    exactly where nothing changed.
    """
    asked = any_schedule(p)
    batch, replayed = asked.batch, p.copied(asked.batch)
    dialect = EXPLICIT if p.truth_value("explicit") else ELIDED
    update = told_by(p, code, asked, batch, dialect)
    if update == "refused":
        return "refused"
    p.show((update is None) == (not (asked.vacated or asked.arrivals or asked.swaps)), "None exactly for no change")
    p.show(not refused(code.apply_update, replayed, update), "the update is well-formed")
    same_list(p, replayed, batch, "the update leads there")
    p.show_all(p.size(batch), lambda row: p.peek(batch, row) != NONE, "no row is a hole")
    if update is not None:
        p.show(update.batch_size == p.size(batch), "batch_size is the number of rows")
        p.show(disjoint(update), "no row is both removed and added")
        filled = [both(row == hole) for (row, _), hole in zip(update.added, asked.vacated, strict=False)]
        p.show(both(True, *filled), "arrivals take vacated rows, lowest first")
        p.show(descends(update.removed if dialect == ELIDED else update.removed[::-1]), "removed rows are in order")
        if dialect == ELIDED and not asked.swaps:
            p.show(named_once(update), "elided, without swaps, no row is named twice")
    return batch


@lemma(
    planted(condense_once=condenses_and_keeps),
    bound="one departure, one arrival, one swap",
)
def dialects_agree(p: Proof, code: Code) -> Any:
    """PROD-ELIDE: A step leads to the same rows whichever dialect tells it; so what they tell has the same meaning."""
    asked = any_schedule(p, most=1)
    twin = p.copied(asked.batch)
    elided = told_by(p, code, asked, asked.batch, ELIDED)
    with mock.patch.object(producer, "condense_once", code.condense_once):
        explicit = told_by(p, code, asked, twin, EXPLICIT)
    if "refused" in (elided, explicit):
        p.show(elided == explicit, "both refuse")
        return "refused"
    same_list(p, twin, asked.batch, "in the other dialect")
    p.show((elided is None) == (explicit is None), "both tell something, or neither")
    return twin


# Numbers, in exact arithmetic


class Log:
    """A logarithm, kept as the positive number that it is the logarithm of: exact, in the order of those numbers."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __add__(self, other: Log) -> Log:
        return Log(self.of * other.of)

    def __ge__(self, other: Log) -> Any:
        return self.of >= other.of


def weight(p: Proof, name: str) -> Any:
    """A positive real: e to the power of a logit."""
    value = p.real(name)
    p.suppose(value > 0)
    return value


def share_of(p: Proof, name: str) -> Any:
    """A real above 0 and up to 1."""
    value = p.real(name)
    p.suppose(both(value > 0, value <= 1))
    return value


def likely(token: Any, largest: Any, total: Any, share: Any) -> Any:
    """Whether min-p keeps a token, by its probability."""
    return token / total >= share * (largest / total)


def above_edge(logit: Log, largest: Log, share: Any) -> Any:
    """Whether min-p keeps a token, by its logit."""
    return logit >= largest + Log(share)


@lemma(
    planted(
        "A token at the threshold is masked.",
        above_edge=lambda logit, largest, share: no(largest + Log(share) >= logit),
    ),
    planted("The largest logit is left out.", above_edge=lambda logit, largest, share: logit >= Log(share)),
)
def min_p_forms(p: Proof, code: Code) -> Any:
    """MINP-THRESHOLD: A probability is at least min_p times the largest exactly where the logit is at least the
    largest logit plus the logarithm of min_p.
    """
    token, largest, total, share = weight(p, "token"), weight(p, "largest"), weight(p, "total"), share_of(p, "min_p")
    kept = code.above_edge(Log(token), Log(largest), share)
    p.show(code.likely(token, largest, total, share) == kept, "both forms keep the same")
    return kept


@lemma(
    planted(
        "A token at the threshold is masked, so at min_p 1 the largest is.",
        likely=lambda token, largest, total, share: no(token / total <= share * (largest / total)),
    )
)
def min_p_keeps_largest(p: Proof, code: Code) -> Any:
    """MINP-KEEP-MAX, PROC-ARGMAX: min-p keeps the largest token, and with a token every larger one."""
    token, larger, total, share = weight(p, "token"), weight(p, "larger"), weight(p, "total"), share_of(p, "min_p")
    largest = weight(p, "largest")
    p.suppose(both(token <= larger, larger <= largest))
    p.show(code.likely(largest, largest, total, share), "the largest is kept")
    kept, also = code.likely(token, largest, total, share), code.likely(larger, largest, total, share)
    p.show(implies(kept, also), "a larger one is kept with it")
    return kept, also


def larger_of(row: Any, token: Any) -> Any:
    """1 where a token of the row is larger than another, else 0: what top-k counts."""
    return where(row > token, 1, 0)


def mass_before(row: Any, token: Any) -> Any:
    """What a token of the row has where it comes before another: what top-p sums up."""
    return where(row > token, row, row * 0)


@lemma(planted("Equals count as larger.", larger_of=lambda row, token: where(row >= token, 1, 0)))
def top_k_keeps_largest(p: Proof, code: Code) -> Any:
    """TOPK-MASK, PROC-ARGMAX: No token is larger than the largest, and so top-k keeps it for every k from 1 on: if
    none is so far, none is with the next one.
    """
    token, largest, k, larger = p.real("token"), p.real("largest"), p.number("k", 1), p.number("larger")
    p.suppose(both(token <= largest, larger == 0))
    larger = larger + code.larger_of(token, largest)
    p.show(both(larger == 0, larger < k), "no token is larger")
    return larger


@lemma(
    planted("Smaller tokens are counted.", larger_of=lambda row, token: where(row < token, 1, 0)),
    planted("Equals are counted.", larger_of=lambda row, token: where(row == token, 1, 0)),
)
def top_k_keeps_ties(p: Proof, code: Code) -> Any:
    """TOPK-TIES, TOPK-MASK: Of two tokens the larger has no more tokens above it, and equals have as many; so top-k
    keeps with a token every larger one and every equal.
    """
    token, one, other = p.real("token"), p.real("one"), p.real("other")
    above_one, above_other = p.number("above one", 0), p.number("above other", 0)
    p.suppose(both(one <= other, above_other <= above_one, implies(one == other, above_one == above_other)))
    above_one, above_other = above_one + code.larger_of(token, one), above_other + code.larger_of(token, other)
    p.show(above_other <= above_one, "no more above the larger")
    p.show(implies(one == other, above_one == above_other), "as many above an equal")
    return above_one, above_other


@lemma(
    planted(
        "Equals, and the token itself, come before it.",
        mass_before=lambda row, token: where(row >= token, row, row * 0),
    )
)
def top_p_keeps_largest(p: Proof, code: Code) -> Any:
    """TOPP-ONE, PROC-ARGMAX: No mass comes before the largest token, which is less than every top_p above 0: if none
    has so far, none has with the next one.
    """
    token, largest, share, before = weight(p, "token"), weight(p, "largest"), share_of(p, "top_p"), p.real("before")
    p.suppose(both(token <= largest, before == 0))
    before = before + code.mass_before(token, largest)
    p.show(both(before == 0, before < share), "no mass comes before it")
    return before


@lemma(
    planted("The mass of smaller tokens is summed up.", mass_before=lambda row, token: where(row < token, row, row * 0))
)
def top_p_keeps_a_prefix(p: Proof, code: Code) -> Any:
    """TOPP-PREFIX: Of two tokens the larger has no more mass before it; so what top-p keeps is a prefix of the
    descending order.
    """
    token, one, other = weight(p, "token"), p.real("one"), p.real("other")
    before_one, before_other = p.real("before one"), p.real("before other")
    p.suppose(both(one <= other, before_other <= before_one))
    before_one, before_other = before_one + code.mass_before(token, one), before_other + code.mass_before(token, other)
    p.show(before_other <= before_one, "no more before the larger")
    return before_one, before_other


@lemma(
    planted("A token is kept also where the mass is reached exactly.", reaches=lambda before, share: before <= share),
    planted("The mass is counted from the other end.", reaches=lambda before, share: before + share < 1),
)
def top_p_is_smallest(p: Proof, code: Code) -> Any:
    """TOPP-PREFIX, TOPP-ONE: The tokens that top-p keeps reach its mass where all tokens do, and without their last
    they do not.

    A token is kept where those before it do not reach the mass.
    """
    before, last, share, after = p.real("before"), weight(p, "last"), share_of(p, "top_p"), p.real("after")
    p.suppose(both(before >= 0, after >= 0, before + last + after == 1))
    kept, next_kept = code.reaches(before, share), code.reaches(before + last, share)
    p.show(implies(kept, before < share), "without the last the mass is not reached")
    p.show(implies(both(kept, no(next_kept)), before + last >= share), "with the last it is")
    return kept, next_kept


@lemma(
    planted("Logits below 0 are divided as well.", penalised=lambda logit, penalty: logit / penalty),
    planted("Logits above 0 are multiplied as well.", penalised=lambda logit, penalty: logit * penalty),
)
def repetition_lowers(p: Proof, code: Code) -> Any:
    """REP-SCALE: A repetition penalty above 1 makes no token more likely, and a larger one none more than a smaller."""
    logit, penalty, more = p.real("logit"), p.real("penalty"), p.real("larger penalty")
    p.suppose(both(penalty >= 1, more >= penalty))
    found, less = code.penalised(logit, penalty), code.penalised(logit, more)
    p.show(found <= logit, "no token is more likely")
    p.show(less <= found, "none is more likely with more")
    return found, less


@lemma(
    planted(
        "Signs are taken the wrong way round, with a jump at 0.",
        penalised=lambda logit, penalty: logit / penalty if logit < 0 else logit * penalty - penalty,
    )
)
def repetition_keeps_order(p: Proof, code: Code) -> Any:
    """REP-SCALE: Of two tokens that are penalised alike, the larger stays the larger, whatever their signs."""
    one, other, penalty = p.real("one"), p.real("other"), weight(p, "penalty")
    p.suppose(one < other)
    low, high = code.penalised(one, penalty), code.penalised(other, penalty)
    p.show(low < high, "the larger stays the larger")
    return low, high


def subtracted(logit: Any, penalty: Any, times: Any) -> Any:
    """A logit less a penalty for each time."""
    return logit - penalty * times


@lemma(planted("The penalty is added.", subtracted=lambda logit, penalty, times: logit + penalty * times))
def frequency_lowers(p: Proof, code: Code) -> Any:
    """FREQ-SUBTRACT, PRES-SUBTRACT: A penalty above 0 makes a token less likely with each time that the output has it,
    and keeps the order of tokens that the output has equally often.
    """
    logit, larger, penalty, times = p.real("logit"), p.real("larger"), weight(p, "penalty"), p.real("times")
    p.suppose(both(times >= 0, logit < larger))
    found = code.subtracted(logit, penalty, times)
    p.show(code.subtracted(logit, penalty, times + 1) < found, "less likely with once more")
    p.show(found < code.subtracted(larger, penalty, times), "the larger stays the larger")
    return found


@lemma(
    planted(
        "The logits are multiplied with the temperature less 1.",
        divided=lambda logit, temperature: logit * (temperature - 1),
    )
)
def temperature_keeps_order(p: Proof, code: Code) -> Any:
    """TEMP-DIVIDE: A temperature keeps the order of the tokens, and so the set of the largest."""
    one, other, temperature = p.real("one"), p.real("other"), weight(p, "temperature")
    low, high = code.divided(one, temperature), code.divided(other, temperature)
    p.show((one < other) == (low < high), "the larger stays the larger")
    p.show((one == other) == (low == high), "equals stay equal")
    return low, high


class Scan(NamedTuple):
    """A row that is read up to a token: of the block at hand and of those before it.

    largest: of what was read of the block. here: how many of that exceed the edge. blocks: how many of the blocks
    before have a maximum that does. tokens: how many of the tokens in them do.
    """

    largest: Any
    here: Any
    blocks: Any
    tokens: Any


def any_scan(p: Proof, edge: Any) -> Scan:
    """Any scan for which what is counted so far is in order."""
    at = Scan(p.real("largest"), p.number("here", 0), p.number("blocks", 0), p.number("tokens", 0))
    p.suppose(scanned(at, edge))
    return at


def scanned(at: Scan, edge: Any) -> Any:
    """A block whose maximum exceeds the edge has a token that does; no more blocks do than tokens."""
    return both(implies(at.largest > edge, at.here >= 1), at.blocks <= at.tokens)


def read(at: Scan, token: Any, edge: Any) -> Scan:
    """The scan with one token more."""
    largest = where(token > at.largest, token, at.largest)
    return at._replace(largest=largest, here=at.here + where(token > edge, 1, 0))


def opened(at: Scan, token: Any, edge: Any) -> Scan:
    """The scan at the next block, with its first token."""
    blocks, tokens = at.blocks + where(at.largest > edge, 1, 0), at.tokens + at.here
    return Scan(token, where(token > edge, 1, 0), blocks, tokens)


def reads_least(at: Scan, token: Any, edge: Any) -> Scan:
    """The block's maximum is taken for the larger of what is read, also where nothing is counted."""
    return at._replace(largest=where(token > at.largest, token, at.largest))


@lemma(
    planted(read=reads_least),
    planted(
        "Every block is counted once too often.",
        opened=lambda at, token, edge: opened(at, token, edge)._replace(blocks=at.blocks + 1),
    ),
)
def blocks_bound_tokens(p: Proof, code: Code) -> Any:
    """TOPK-MASK, TOPK-TIES: However a row is cut into blocks, no more blocks have a maximum above an edge than tokens
    are above it: if so far, then with the next token, in the same block or the next.
    """
    edge, token = p.real("edge"), p.real("token")
    at = any_scan(p, edge)
    then = code.opened(at, token, edge) if p.truth_value("next block") else code.read(at, token, edge)
    p.show(scanned(then, edge), "no more blocks than tokens")
    return tuple(then)


@lemma(planted("A token is kept with k larger ones.", kept_by_k=lambda larger, k: larger <= k))
def candidates(p: Proof, code: Code) -> Any:
    """TOPK-MASK: Where k blocks have a maximum of at least a bound, each token that top-k keeps reaches the bound; so
    the k largest, with their ties, lie in the blocks whose maximum does.

    For a token below the bound all of those blocks have a maximum above it, and so have as many tokens.
    """
    k, reaching, blocks, larger = p.number("k", 1), p.number("reaching"), p.number("blocks"), p.number("larger")
    token, bound = p.real("token"), p.real("bound")
    p.suppose(both(reaching >= k, implies(token < bound, blocks >= reaching), blocks <= larger))
    p.show(implies(code.kept_by_k(larger, k), token >= bound), "what is kept reaches the bound")
    return code.kept_by_k(larger, k)


ALSO.update(
    {
        "added_first": in_order("added", "removed", "moved"),
        "disjoint": disjoint,
        "named_once": named_once,
        "counted": counted,
        "likely": likely,
        "above_edge": above_edge,
        "larger_of": larger_of,
        "mass_before": mass_before,
        "reaches": lambda before, share: before < share,
        "subtracted": subtracted,
        "divided": lambda logit, temperature: logit / temperature,
        "read": read,
        "opened": opened,
        "kept_by_k": lambda larger, k: larger < k,
    }
)
