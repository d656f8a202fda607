"""The shortest history that shows a mutant, among all that are made of what a shown one is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations, product

from logitsproc.conformance.history import Arrival, Growth, History, Step, new_request
from logitsproc.conformance.notation import format_step
from logitsproc.conformance.plans import Lowering, Plan, name_of
from logitsproc.conformance.suite import Run, same_kind
from logitsproc.reference.producer import ELIDED, EXPLICIT

COPIES = 2
"""How often the same may be asked for in one history."""
LIMIT = 4
"""So many events are tried in every way; more would take minutes."""


def events(steps: tuple[Step, ...]) -> int:
    """How many events there are: what stands between two semicolons; a step in which nothing happens is one."""
    return sum(format_step(step).count(";") + 1 for step in steps)


@dataclass(frozen=True)
class Pieces:
    """What histories are made of: requests by name, how one of them grows, how often apply is called."""

    requests: dict[str, Arrival]
    growths: tuple[Growth, ...]
    applies: tuple[int, ...]


def pieces_of(shown: History) -> Pieces:
    """The requests of a history, and one that asks for nothing, each twice; what lands; the applies."""
    arrivals = [*shown.requests.values(), Arrival()]
    distinct = [arrival for place, arrival in enumerate(arrivals) if arrival not in arrivals[:place]]
    requests = {name_of(number): arrival for number, arrival in enumerate(distinct * COPIES)}
    growths = dict.fromkeys(replace(growth, request="") for step in shown.steps for growth in step.growth)
    return Pieces(requests, tuple(growths), tuple(dict.fromkeys((1, *(step.applies for step in shown.steps)))))


def shortest(run: Run, shown: History) -> int:
    """The number of events of the shortest history that shows the same violation, which may be the shown one's."""
    known, pieces, wrong = events(shown.steps), pieces_of(shown), run.replay(shown)
    for count in range(1, min(known, LIMIT + 1)):
        found = (run.replay(history) for history in histories(shown, pieces, count))
        if any(same_kind(violation, wrong) for violation in found if violation and wrong):
            return count
    return known


def histories(shown: History, pieces: Pieces, count: int) -> Iterator[History]:
    """Every reachable history with so many events, in both dialects, on the shown one's logits."""
    header = replace(shown, requests=pieces.requests)
    requests = {name: new_request(name, arrival) for name, arrival in pieces.requests.items()}
    for dialect in (ELIDED, EXPLICIT):
        for steps in continuations(Lowering(dialect, [], requests), pieces, count):
            yield replace(header, steps=steps)


def continuations(lowering: Lowering, pieces: Pieces, count: int) -> Iterator[tuple[Step, ...]]:
    """Every way to go on from a batch with exactly so many events."""
    if count == 0:
        yield ()
        return
    for plan in plans(lowering, pieces, count):
        after = replace(lowering, batch=list(lowering.batch))
        step = after.lower_plan(plan)
        if (spent := events((step,))) <= count:
            yield from ((step, *rest) for rest in continuations(after, pieces, count - spent))


def plans(lowering: Lowering, pieces: Pieces, count: int) -> Iterator[Plan]:
    """What an engine may decide, with at most so many requests that come, as many swaps, and one that grows."""
    live = [request.name for request in lowering.batch if request is not None]
    waiting = [name for name in pieces.requests if name not in live]
    coming = chain.from_iterable(permutations(waiting, number) for number in range(count + 1))
    for come, leave in product(coming, list(subsets(live))):
        size = len(live) - len(leave) + len(come)
        pairs = list(permutations(range(size), 2))
        swaps = chain.from_iterable(product(pairs, repeat=number) for number in range(count - len(come) + 1))
        grows = [(), *((replace(growth, request=name),) for name in (*live, *come) for growth in pieces.growths)]
        for chosen, growth, applies in product(swaps, grows, pieces.applies):
            yield Plan(growth, leave, tuple((name, False) for name in come), chosen, applies)


def subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Every choice of names."""
    return chain.from_iterable(combinations(names, number) for number in range(len(names) + 1))
