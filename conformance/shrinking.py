"""Makes a failing case small: leaves out whatever is not needed for the same failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import combinations, count, pairwise, permutations, product
from typing import Any, TypeVar

from logitsproc.conformance.history import Added, Arrival, Growth, Step
from logitsproc.conformance.logits import ROW_STRIDE, ROWS, STEP_STRIDE
from logitsproc.conformance.plans import Case, Plan, lower, name_of, rename_item, renamed, with_other, without
from logitsproc.reference.batch import SWAP
from logitsproc.reference.producer import ELIDED

ATTEMPTS = 1500
LOW_ROWS = 4
FEW = 12
T = TypeVar("T")
Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, vocab: int, plain: dict[str, Any]) -> Case:
    """The smallest case found that still fails; after a success the same change is tried again, then the others.

    vocab: the smallest vocabulary that may be played. plain: the params of a request that asks for nothing.
    """
    changes: tuple[Callable[[Case], Iterator[Case]], ...] = (
        fewer_items,
        fewer_requests,
        fewer_rows,
        plainer,
        staying,
        afresh,
        joined,
        unswapped,
        smaller_items,
        partial(simpler_header, vocab=vocab),
        partial(simpler_requests, params=plain),
        partial(fewer_at_once, plain=plain),
        literally,
    )
    attempts = iter(range(ATTEMPTS))

    def still_fails(smaller: Case) -> bool:
        return next(attempts, None) is not None and fails(smaller)

    changed = True
    while changed:
        changed = False
        for change in changes:
            while found := next(filter(still_fails, change(case)), None):
                case, changed = found, True
    return renamed(case)


def fewer_items(case: Case) -> Iterator[Case]:
    """The case without its first half, without its second, and without each item, the last first."""
    size = len(case.items)
    if size > 3:
        yield replace(case, items=case.items[size // 2 :])
        yield replace(case, items=case.items[: size // 2])
    for index in reversed(range(size)):
        yield from with_either_logits(replace(case, items=without(case.items, index)), STEP_STRIDE)


def fewer_requests(case: Case) -> Iterator[Case]:
    """The case without a half, a quarter and so on of the requests, down to each of them, wherever it is mentioned."""
    names = list(case.header.requests)
    size = len(names)
    while size := size // 2:
        for start in reversed(range(0, len(names), size)):
            yield from with_either_logits(without_requests(case, names[start : start + size]), ROW_STRIDE)


def fewer_rows(case: Case) -> Iterator[Case]:
    """The case without one of its rows."""
    for row in range(highest_row(case) + 1):
        if (closed := without_row(case, row)) != case:
            yield from with_either_logits(closed, ROW_STRIDE)


def highest_row(case: Case) -> int:
    """The highest row that an item names, or -1."""
    return max((row for item in case.items for row in rows_of(item)), default=-1)


def rows_of(item: Plan | Step) -> tuple[int, ...]:
    """The rows that an item names."""
    if isinstance(item, Plan):
        return tuple(row for pair in item.swaps for row in pair)
    moved = (row for source, destination, _ in item.moved for row in (source, destination))
    return (*item.removed, *(add.row for add in item.added), *moved)


def without_row(case: Case, row: int) -> Case:
    """The case without what names this row, and with those above it one lower."""
    return replace(case, items=tuple(closed(item, row) for item in case.items))


def closed(item: Plan | Step, row: int) -> Plan | Step:
    """The item without what names this row, and with those above it one lower."""

    def down(other: int) -> int:
        return other - (other > row)

    if isinstance(item, Plan):
        return replace(
            item, swaps=tuple((down(one), down(other)) for one, other in item.swaps if row not in (one, other))
        )
    return replace(
        item,
        removed=tuple(down(other) for other in item.removed if other != row),
        added=tuple(replace(add, row=down(add.row)) for add in item.added if add.row != row),
        moved=tuple(
            (down(source), down(destination), direction)
            for source, destination, direction in item.moved
            if row not in (source, destination)
        ),
    )


def fewer_at_once(case: Case, plain: dict[str, Any]) -> Iterator[Case]:
    """The case, when it is small, with two things less: only together do they leave a failing case."""
    names = list(case.header.requests)
    if len(names) > FEW:
        return
    for first, second in combinations(range(len(case.items)), 2):
        yield replace(case, items=without(without(case.items, second), first))
    for pair in combinations(names, 2):
        yield from with_either_logits(without_requests(case, pair), ROW_STRIDE)
    for name, other in permutations(names, 2):
        yield with_arrivals(without_requests(case, [other]), {name: case.header.requests[other]})
    for name in names:
        yield from fewer_with(case, name)
        yield from simpler_with(case, name, plain)


def fewer_with(case: Case, name: str) -> Iterator[Case]:
    """The case without a request, and with others or rows in each other's place, or one row less."""
    fewer = without_requests(case, [name])
    yield from reordered(fewer)
    steps = literal(fewer)
    for row, other in combinations(range(highest_row(fewer) + 1 if steps else 0), 2):
        yield replace(fewer, items=tuple(turned(steps, {row: other, other: row})))
    yield from (without_row(fewer, row) for row in range(highest_row(case) + 1))


def simpler_with(case: Case, name: str, plain: dict[str, Any]) -> Iterator[Case]:
    """The case with a lower number in a request and no growth or an apply less, or a plain request and no swaps."""
    arrival = case.header.requests[name]
    landed = sum(len(growth.tokens) for item in case.items for growth in item.growth if growth.request == name)
    for less in lower_numbers(arrival, landed):
        yield ungrown(with_arrivals(case, {name: less}))
    for less, items in product(lower_numbers(arrival, 1, 2), sooner(case.items)):
        yield replace(with_arrivals(case, {name: less}), items=items)
    unmoved = tuple(replace(item, swaps=()) if isinstance(item, Plan) else item for item in case.items)
    if unmoved != case.items:
        yield replace(with_arrivals(case, {name: replace(arrival, params=plain)}), items=unmoved)


def sooner(items: tuple[Plan | Step, ...]) -> Iterator[tuple[Plan | Step, ...]]:
    """The items without one of them, or with one of them that applies once instead of twice."""
    for index, item in enumerate(items):
        yield without(items, index)
        if item.applies == 2:
            yield with_other(items, index, replace(item, applies=1))


def literally(case: Case) -> Iterator[Case]:
    """Of a case that an engine does not make as a whole: the rows that its plans come to, in their place."""
    if len({type(item) for item in case.items}) > 1:
        yield replace(case, items=lower(case).steps)


def reordered(case: Case) -> Iterator[Case]:
    """The case with two that come at the same time in each other's place."""
    for index, item in enumerate(case.items):
        if isinstance(item, Plan):
            for come in exchanged(item.come):
                yield replace(case, items=with_other(case.items, index, replace(item, come=come)))


def without_requests(case: Case, names: Sequence[str]) -> Case:
    """The case as if these had never been."""
    kept = {name: arrival for name, arrival in case.header.requests.items() if name not in names}
    items = case.items
    for name in names:
        items = tuple(forget(item, name) for item in items)
    return replace(case, header=replace(case.header, requests=kept), items=items)


def plainer(case: Case) -> Iterator[Case]:
    """The case without any growth, and with nothing but plain prompts."""
    requests = {name: replace(each, prompt=Arrival().prompt) for name, each in case.header.requests.items()}
    yield from (other for other in (ungrown(case), with_arrivals(case, requests)) if other != case)


def ungrown(case: Case) -> Case:
    """The case in which no ids land."""
    return replace(case, items=tuple(replace(item, growth=()) for item in case.items))


def with_arrivals(case: Case, changed: dict[str, Arrival]) -> Case:
    """The case with these requests as they are here."""
    return replace(case, header=replace(case.header, requests=case.header.requests | changed))


def with_either_logits(case: Case, shift: int) -> Iterator[Case]:
    """The case, and the case with the logits that its later steps, or its higher rows, were shown before."""
    yield case
    yield replace(case, header=replace(case.header, offset=(case.header.offset + shift) % ROWS))


def forget(item: Plan | Step, name: str) -> Plan | Step:
    """The item without a request."""
    growth = tuple(growth for growth in item.growth if growth.request != name)
    if isinstance(item, Plan):
        leave = tuple(other for other in item.leave if other != name)
        come = tuple((other, fresh) for other, fresh in item.come if other != name)
        return replace(item, growth=growth, leave=leave, come=come)
    added = tuple(add for add in item.added if add.request != name)
    return replace(item, growth=growth, added=added)


def afresh(case: Case) -> Iterator[Case]:
    """The case in which another request that asks for the same comes in the place of one that comes back."""
    for index, item in enumerate(case.items):
        if isinstance(item, Plan):
            before = {name for other in case.items[:index] if isinstance(other, Plan) for name, _ in other.come}
            yield from (renewed(case, index, item, name) for name, _ in item.come if name in before)


def renewed(case: Case, index: int, item: Plan, name: str) -> Case:
    """The case with a new name for a request from the item on in which it comes back."""
    arrivals = case.header.requests
    new = next(other for number in count() if (other := name_of(number)) not in arrivals)
    here = replace(item, come=tuple((new if other == name else other, fresh) for other, fresh in item.come))
    names = {other: other for other in arrivals} | {name: new}
    later = (rename_item(other, names) for other in case.items[index + 1 :])
    return replace(with_arrivals(case, {new: arrivals[name]}), items=(*case.items[:index], here, *later))


def staying(case: Case) -> Iterator[Case]:
    """The case in which a request that leaves stays, in the place of one that comes in the same step."""
    for index, item in enumerate(case.items):
        if isinstance(item, Plan):
            for gone, (new, _) in product(item.leave, item.come):
                leave = tuple(name for name in item.leave if name != gone)
                come = tuple((name, fresh) for name, fresh in item.come if name != new)
                later = (replace(item, leave=leave, come=come), *case.items[index + 1 :])
                names = {name: name for name in case.header.requests} | {new: gone}
                items = (*case.items[:index], *(rename_item(other, names) for other in later))
                yield replace(case, items=items)


def unswapped(case: Case) -> Iterator[Case]:
    """The literal case without a swap, and with its two rows in each other's place in all after it, or before it."""
    steps = literal(case)
    for index, step in enumerate(steps):
        for place, (row, other, direction) in enumerate(step.moved):
            if direction == SWAP:
                rows = {row: other, other: row}
                before = [*steps[:index], replace(step, moved=step.moved[:place])]
                after = [Step(moved=step.moved[place + 1 :]), *steps[index + 1 :]]
                for sooner, later in ((turned(before, rows), after), (before, turned(after, rows))):
                    here = replace(sooner[-1], moved=sooner[-1].moved + later[0].moved)
                    yield replace(case, items=(*sooner[:-1], here, *later[1:]))


def literal(case: Case) -> list[Step]:
    """The steps of a case that has no plans, else none."""
    steps = [item for item in case.items if isinstance(item, Step)]
    return steps if len(steps) == len(case.items) else []


def turned(steps: Sequence[Step], rows: dict[int, int]) -> list[Step]:
    """The steps with other rows for these."""
    return [with_rows(step, rows) for step in steps]


def joined(case: Case) -> Iterator[Case]:
    """The case with two literal steps as one."""
    for index, (first, second) in enumerate(pairwise(case.items)):
        if isinstance(first, Step) and isinstance(second, Step):
            lists = {name: getattr(first, name) + getattr(second, name) for name in ("removed", "added", "moved")}
            both = replace(second, growth=first.growth + second.growth, **lists)
            yield replace(case, items=with_other(without(case.items, index), index, both))


def with_rows(step: Step, rows: dict[int, int]) -> Step:
    """The step with other rows for these; additions come in the order of rows."""
    return replace(
        step,
        removed=tuple(rows.get(row, row) for row in step.removed),
        added=tuple(sorted((replace(add, row=rows.get(add.row, add.row)) for add in step.added), key=row_of)),
        moved=tuple((rows.get(one, one), rows.get(other, other), direction) for one, other, direction in step.moved),
    )


def row_of(add: Added) -> int:
    """The row of an addition."""
    return add.row


def smaller_items(case: Case) -> Iterator[Case]:
    """The case with one thing less in one item."""
    for index, item in enumerate(case.items):
        for smaller in smaller_item(item):
            yield replace(case, items=with_other(case.items, index, smaller))
        if index and isinstance(item, Plan) and (both := merged(case.items[index - 1], item)):
            for one in (both, replace(both, applies=2)):
                fewer = with_other(without(case.items, index), index - 1, one)
                yield from with_either_logits(replace(case, items=fewer), STEP_STRIDE)


def merged(first: Plan | Step, second: Plan) -> Plan | None:
    """Two plans as one, unless both reorder or the second takes back what the first gave."""
    if not isinstance(first, Plan) or (first.swaps and second.swaps):
        return None
    if any(growth.dropped for growth in second.growth):
        return None
    growth = {growth.request: growth for growth in first.growth}
    for more in second.growth:
        had = growth.get(more.request, Growth(more.request))
        growth[more.request] = replace(had, tokens=had.tokens + more.tokens, late=more.late)
    come = tuple(dict(first.come + second.come).items())
    return Plan(tuple(growth.values()), first.leave + second.leave, come, first.swaps + second.swaps, second.applies)


def smaller_item(item: Plan | Step) -> Iterator[Plan | Step]:
    """The item with one element of one tuple less, less growth, or a plain apply."""
    for field in fields(item):
        value: Any = getattr(item, field.name)
        if isinstance(value, tuple):
            for place in range(len(value)):
                less: dict[str, Any] = {field.name: without(value, place)}
                yield replace(item, **less)
    for place, growth in enumerate(item.growth):
        simpler = []
        if growth.late:
            simpler.append(replace(growth, late=0))
        if len(growth.tokens) > 1:
            simpler.append(replace(growth, tokens=growth.tokens[:1], late=min(growth.late, 1)))
            simpler.append(replace(growth, tokens=growth.tokens[1:], late=min(growth.late, 1)))
        if growth.dropped > 1:
            simpler.append(replace(growth, dropped=1))
        for other in simpler:
            yield replace(item, growth=with_other(item.growth, place, other))
    if item.applies == 2:
        yield replace(item, applies=1)
    if item.applies == 0:
        yield replace(item, applies=1)
    if isinstance(item, Plan):
        for pair in combinations(range(len(item.swaps)), 2):
            yield replace(item, swaps=without(without(item.swaps, pair[1]), pair[0]))
        yield from arranged(item)
        yield from lower_swaps(item)
    if isinstance(item, Step):
        yield from settled(item)
    if isinstance(item, Plan) and any(fresh for _, fresh in item.come):
        yield replace(item, come=tuple((name, False) for name, _ in item.come))


def arranged(plan: Plan) -> Iterator[Plan]:
    """The plan with a swap less, and two that come in each other's place."""
    for place in range(len(plan.swaps)):
        for come in exchanged(plan.come):
            yield replace(plan, swaps=without(plan.swaps, place), come=come)


def settled(step: Step) -> Iterator[Step]:
    """The step with a move less, and what is moved added where it goes."""
    for place, (source, destination, direction) in enumerate(step.moved):
        rows = {source: destination, destination: source} if direction == SWAP else {source: destination}
        added = with_rows(Step(added=step.added), rows).added
        if added != step.added:
            yield replace(step, added=added, moved=without(step.moved, place))


def exchanged(come: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Those that come, with each two of them in each other's place."""
    for pair in combinations(range(len(come)), 2):
        yield in_place_of(come, *pair)


def in_place_of(come: Sequence[T], one: int, other: int) -> tuple[T, ...]:
    """Those that come, with two of them in each other's place, if they are that many."""
    places = list(range(len(come)))
    if max(one, other) < len(come):
        places[one], places[other] = other, one
    return tuple(come[place] for place in places)


def lower_swaps(plan: Plan) -> Iterator[Plan]:
    """The plan with one end of a swap at a lower row, where something else stands, or what stood at that end."""
    for place, pair in enumerate(plan.swaps):
        for end, other in (pair, pair[::-1]):
            for row in range(min(end, LOW_ROWS)):
                if row != other:
                    lower = (min(row, other), max(row, other))
                    lowered = replace(plan, swaps=with_other(plan.swaps, place, lower))
                    yield lowered
                    yield replace(lowered, come=in_place_of(plan.come, row, end))


def simpler_header(case: Case, vocab: int) -> Iterator[Case]:
    """The case in the elided dialect, without options, on dense logits, from the first palette row, on few tokens."""
    header = case.header
    if case.dialect != ELIDED:
        yield replace(case, dialect=ELIDED)
    for option in sorted(header.options):
        yield replace(case, header=replace(header, options=header.options - {option}))
    if header.palette != "dense":
        yield replace(case, header=replace(header, palette="dense"))
    if header.vocab > vocab:
        yield replace(case, header=replace(header, vocab=vocab))
    for offset in range(min(header.offset, ROWS)):
        yield replace(case, header=replace(header, offset=offset))


def simpler_requests(case: Case, params: dict[str, Any]) -> Iterator[Case]:
    """The case with one request that has a shorter prompt, asks for less, or for the same as an earlier one."""
    arrivals = case.header.requests
    plain = Arrival(params)
    for index, (name, arrival) in enumerate(arrivals.items()):
        earlier = list(arrivals.values())[:index]
        for changed in (*shorter_prompts(arrival, plain), *fewer_fields(arrival), *lower_numbers(arrival, 1)):
            yield with_arrivals(case, {name: changed})
        for other in [plain, *earlier]:
            simpler = replace(other, prompt=arrival.prompt)
            if simpler != arrival and is_less(simpler, arrival, earlier):
                yield with_arrivals(case, {name: simpler})


def shorter_prompts(arrival: Arrival, plain: Arrival) -> Iterator[Arrival]:
    """The request with the plain prompt, or one of its own with half the ids or one id less."""
    if arrival.prompt != plain.prompt:
        yield replace(arrival, prompt=plain.prompt)
    ids = arrival.prompt or ()
    if len(ids) > 3:
        yield replace(arrival, prompt=ids[len(ids) // 2 :])
        yield replace(arrival, prompt=ids[: len(ids) // 2])
    if ids and ids != plain.prompt:
        yield from (replace(arrival, prompt=without(ids, place)) for place in range(len(ids)))


def fewer_fields(arrival: Arrival) -> Iterator[Arrival]:
    """The request without one of its params."""
    for field in arrival.params if len(arrival.params) > 1 else ():
        kept = {name: value for name, value in arrival.params.items() if name != field}
        yield replace(arrival, params=kept)


def lower_numbers(arrival: Arrival, *by: int) -> Iterator[Arrival]:
    """The request with 1, or half, or by so much less, for a whole number in one of its params."""
    for field, value in arrival.params.items():
        if type(value) is int:
            for lower in dict.fromkeys((1, value // 2, *(value - less for less in by))):
                if 0 < lower < value:
                    yield replace(arrival, params=arrival.params | {field: lower})


def size_of(arrival: Arrival) -> int:
    """How much there is to read in a request."""
    return len(repr(arrival.params)) + len(arrival.output)


def is_less(simpler: Arrival, arrival: Arrival, earlier: list[Arrival]) -> bool:
    """Whether there is less to read; or as much, which an earlier request asks for, and not for what there was."""
    if size_of(simpler) == size_of(arrival):
        return simpler in earlier and arrival not in earlier
    return size_of(simpler) < size_of(arrival)
