"""Makes a failing case small: leaves out whatever is not needed for the same failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import combinations, product
from typing import Any

from logitsproc.conformance.history import Arrival, Growth, Step
from logitsproc.conformance.logits import ROW_STRIDE, ROWS, STEP_STRIDE
from logitsproc.conformance.plans import Case, Plan, rename_item, renamed, without
from logitsproc.reference.producer import ELIDED

ATTEMPTS = 1500
LOW_ROWS = 4
Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, vocab: int, plain: dict[str, Any]) -> Case:
    """The smallest case found that still fails; each pass starts again after a success until none has any.

    vocab: the smallest vocabulary that may be played. plain: the params of a request that asks for nothing.
    """
    left = ATTEMPTS
    changed = True
    while changed and left > 0:
        changed = False
        for smaller in candidates(case, vocab, plain):
            if left <= 0:
                break
            left -= 1
            if fails(smaller):
                case, changed = smaller, True
                break
    return renamed(case)


def candidates(case: Case, vocab: int, plain: dict[str, Any]) -> Iterator[Case]:
    """Smaller cases, the greatest savings first."""
    yield from fewer_items(case)
    yield from fewer_requests(case)
    yield from staying(case)
    yield from smaller_items(case)
    yield from simpler_header(case, vocab)
    yield from simpler_requests(case, plain)


def fewer_items(case: Case) -> Iterator[Case]:
    """The case without its first half, without its second, and without each item, the last first."""
    count = len(case.items)
    if count > 3:
        yield replace(case, items=case.items[count // 2 :])
        yield replace(case, items=case.items[: count // 2])
    for index in reversed(range(count)):
        yield from with_either_logits(replace(case, items=without(case.items, index)), STEP_STRIDE)


def fewer_requests(case: Case) -> Iterator[Case]:
    """The case without one request, wherever it is mentioned."""
    for name in reversed(case.header.requests):
        kept = {other: arrival for other, arrival in case.header.requests.items() if other != name}
        items = tuple(forget(item, name) for item in case.items)
        smaller = replace(case, header=replace(case.header, requests=kept), items=items)
        yield from with_either_logits(smaller, ROW_STRIDE)


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


def smaller_items(case: Case) -> Iterator[Case]:
    """The case with one thing less in one item."""
    for index, item in enumerate(case.items):
        for smaller in smaller_item(item):
            yield replace(case, items=(*case.items[:index], smaller, *case.items[index + 1 :]))
        if index and isinstance(item, Plan) and (joined := merged(case.items[index - 1], item)):
            for one in (joined, replace(joined, applies=2)):
                fewer = (*case.items[: index - 1], one, *case.items[index + 1 :])
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
            yield replace(item, growth=(*item.growth[:place], other, *item.growth[place + 1 :]))
    if item.applies == 2:
        yield replace(item, applies=1)
    if item.applies == 0:
        yield replace(item, applies=1)
    if isinstance(item, Plan):
        yield from arranged(item)
        yield from lower_swaps(item)
    if isinstance(item, Plan) and any(fresh for _, fresh in item.come):
        yield replace(item, come=tuple((name, False) for name, _ in item.come))


def arranged(plan: Plan) -> Iterator[Plan]:
    """The plan with a swap less, and two that come in each other's place."""
    for place in range(len(plan.swaps)):
        for one, other in combinations(plan.come, 2):
            exchange = {one: other, other: one}
            come = tuple(exchange.get(each, each) for each in plan.come)
            yield replace(plan, swaps=without(plan.swaps, place), come=come)


def lower_swaps(plan: Plan) -> Iterator[Plan]:
    """The plan with one end of a swap at a lower row."""
    for place, pair in enumerate(plan.swaps):
        for end, other in (pair, pair[::-1]):
            for row in range(min(end, LOW_ROWS)):
                if row != other:
                    lower = (min(row, other), max(row, other))
                    yield replace(plan, swaps=(*plan.swaps[:place], lower, *plan.swaps[place + 1 :]))


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
        for changed in (*shorter_prompts(arrival, plain), *fewer_fields(arrival)):
            yield replace(case, header=replace(case.header, requests=arrivals | {name: changed}))
        for other in [plain, *earlier]:
            simpler = replace(other, prompt=arrival.prompt)
            if simpler != arrival and size_of(simpler) <= size_of(arrival):
                requests = arrivals | {name: simpler}
                if size_of(simpler) < size_of(arrival) or earlier_is_other(earlier, arrival, simpler):
                    yield replace(case, header=replace(case.header, requests=requests))


def shorter_prompts(arrival: Arrival, plain: Arrival) -> Iterator[Arrival]:
    """The request with the plain prompt, or one of its own with half the ids or one id less."""
    if arrival.prompt != plain.prompt:
        yield replace(arrival, prompt=plain.prompt)
    ids = arrival.prompt or ()
    if len(ids) > 3:
        yield replace(arrival, prompt=ids[len(ids) // 2 :])
        yield replace(arrival, prompt=ids[: len(ids) // 2])
    if ids and ids != plain.prompt:
        yield from (replace(arrival, prompt=ids[:place] + ids[place + 1 :]) for place in range(len(ids)))


def fewer_fields(arrival: Arrival) -> Iterator[Arrival]:
    """The request without one of its params."""
    for field in arrival.params if len(arrival.params) > 1 else ():
        kept = {name: value for name, value in arrival.params.items() if name != field}
        yield replace(arrival, params=kept)


def size_of(arrival: Arrival) -> int:
    """How much there is to read in a request."""
    return len(repr(arrival.params)) + len(arrival.output)


def earlier_is_other(earlier: list[Arrival], arrival: Arrival, simpler: Arrival) -> bool:
    """Whether taking over an earlier request's params is a step in one direction only."""
    return simpler in earlier and arrival not in earlier
