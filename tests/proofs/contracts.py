"""What the list model and the row functions promise, for CrossHair to confirm over every path within a bound.

A contract is a function whose docstring has `pre:` and `post:` (PEP 316). Its first sentence, behind the clauses that
it belongs to, is what it says of the shipped code; `pre:` bounds its inputs; it holds where the function gives True.
PEP 316 and not plain asserts: of asserts that no input meets CrossHair says "confirmed", of a `pre:` it says so.
A contract named `refuted_...` says the same of code that is wrong on purpose, and has to be refuted.

The model looks into no request, so whole numbers stand for them: any numbers at all (`batch_of`) or, where it matters
which rows are holes, the row's own number counted from one (`batch_with_holes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from logitsproc.reference.batch import (
    SWAP,
    UNIDIRECTIONAL,
    Batch,
    IllFormed,
    Row,
    Update,
    add,
    apply_update,
    move,
    remove,
    resize,
    swap,
)
from logitsproc.reference.expectation import Expectation, exact, untouched
from logitsproc.reference.producer import ELIDED, EXPLICIT, condense, condense_once, engine_step, extend, listed, refill
from logitsproc.reference.request import Params
from logitsproc.reference.row.allowed_token_ids import allowed_token_ids
from logitsproc.reference.row.bad_words import completing_tokens, ends_with
from logitsproc.reference.row.min_tokens import min_tokens, stop_tokens
from logitsproc.reference.row.presence_penalty import presence_penalty
from logitsproc.reference.row.repetition_penalty import repetition_penalty
from logitsproc.reference.row.top_k import top_k

LOGITS = (0.0, 1.0, 2.0)
"""Of a row with three tokens; each logit is its token, so a masked one shows."""


# The list


def removing(cells: list[int], row: int) -> bool:
    """UPD-REMOVE: the row becomes a hole, and no other row changes.

    pre: len(cells) <= 8 and 0 <= row < len(cells)
    post: _
    """
    return removes(remove, cells, row)


def removing_what_is_not_there(live: list[bool], row: int) -> bool:
    """PROD-RANGE: it is ill-formed to remove a row that holds no request, and only that.

    pre: len(live) <= 3 and -1 <= row <= len(live)
    post: _
    """
    holds_none = row not in range(len(live)) or not live[row]
    return refuses(remove, batch_with_holes(live), row) == holds_none


def adding(cells: list[int], row: int, request: int) -> bool:
    """UPD-ADD, UPD-REPLACE, UPD-EXTEND: the request stands at the row, which may be one past the end, and no other
    row changes.

    pre: len(cells) <= 8 and 0 <= row <= len(cells)
    post: _
    """
    batch = batch_of(cells)
    add(batch, row, as_request(request))
    return bool(batch == [*cells[:row], request, *cells[row + 1 :]])


def moving(live: list[bool], source: int, destination: int) -> bool:
    """UPD-MOVE, UPD-DROP: the source's request stands at the destination, hole or not, the source is a hole, and no
    other row changes.

    pre: len(live) <= 3 and 0 <= source < len(live) and 0 <= destination < len(live)
    pre: source != destination and live[source]
    post: _
    """
    return moves(move, batch_with_holes(live), source, destination)


def moving_any_request(cells: list[int], source: int, destination: int) -> bool:
    """UPD-MOVE, UPD-DROP: in a batch without holes, whichever requests it holds, a move leads to the same.

    pre: len(cells) <= 6 and 0 <= source < len(cells) and 0 <= destination < len(cells) and source != destination
    post: _
    """
    return moves(move, cells, source, destination)


def swapping(cells: list[int], row: int, other: int) -> bool:
    """UPD-SWAP: the two rows exchange what they hold, a row with itself too, and no other row changes.

    pre: len(cells) <= 5 and 0 <= row < len(cells) and 0 <= other < len(cells)
    post: _
    """
    return swaps(swap, cells, row, other)


def resizing(live: list[bool], size: int) -> bool:
    """UPD-SIZE: so many rows are left, as they were, and it is ill-formed to cut off a request.

    pre: len(live) <= 4 and 0 <= size <= len(live)
    post: _
    """
    batch = batch_with_holes(live)
    if any(live[size:]):
        return refuses(resize, batch, size)
    resize(batch, size)
    return bool(batch == batch_with_holes(live[:size]))


def replacing_in_one_update(cells: list[int], row: int, request: int) -> bool:
    """UPD-OVERLAP: a row that one update removes and adds holds the request added.

    pre: len(cells) <= 8 and 0 <= row < len(cells)
    post: _
    """
    batch = batch_of(cells)
    apply_update(batch, Update(len(cells), removed=(row,), added=((row, as_request(request)),)))
    return all(cell == (request if at == row else cells[at]) for at, cell in enumerate(batch))


def ordering(cells: list[int], row: int, other: int, request: int) -> bool:
    """UPD-ORDER: a row is removed, then added at, then swapped, whatever else the update says.

    pre: len(cells) <= 4 and 0 <= row < len(cells) and 0 <= other < len(cells) and row != other
    post: _
    """
    return orders(apply_update, cells, row, other, request)


def moving_in_sequence(cells: list[int], first: int, second: int, third: int) -> bool:
    """UPD-SEQUENCE: a request that one swap brings to a row is carried on by the next swap of that row.

    pre: len(cells) <= 3 and 0 <= first < len(cells) and 0 <= second < len(cells) and 0 <= third < len(cells)
    post: _
    """
    batch = batch_of(cells)
    apply_update(batch, Update(len(cells), moved=((first, second, SWAP), (second, third, SWAP))))
    return bool(batch[third] == cells[first])


# The engine's algorithm


def refilling(live: list[bool], arrivals: int) -> bool:
    """PROD-REFILL: arrivals take the holes, lowest first, each one hole, and no other row changes.

    pre: len(live) <= 4 and 0 <= arrivals <= 4
    post: _
    """
    batch, new = batch_with_holes(live), newcomers(arrivals)
    holes = [row for row, here in enumerate(live) if not here]
    taken = dict(zip(holes, new, strict=False))
    added = refill(batch, holes, new)
    return added == list(taken.items()) and batch == [
        taken.get(row, name) for row, name in enumerate(batch_with_holes(live))
    ]


def extending(cells: list[int], arrivals: list[int]) -> bool:
    """PROD-REFILL: arrivals stand behind the last row, in their order, and no other row changes.

    pre: len(cells) <= 5 and len(arrivals) <= 5
    post: _
    """
    batch = batch_of(cells)
    added = extend(batch, batch_of(arrivals))
    return batch == cells + arrivals and added == list(enumerate(batch_of(arrivals), start=len(cells)))


def condensing(live: list[bool]) -> bool:
    """PROD-CONDENSE, PROD-CONTIGUOUS: each move goes from the last row to the lowest hole, and the rows left hold
    every request once and no hole.

    pre: len(live) <= 7
    post: _
    """
    return condenses(condense, live)


def condensing_once(live: list[bool]) -> bool:
    """PROD-CONDENSE: one move goes from the last row to the lowest hole, as a move in an update does.

    pre: 0 < len(live) <= 7 and live[-1] and not all(live)
    post: _
    """
    batch, followed = batch_with_holes(live), batch_with_holes(live)
    source, hole, direction = condense_once(batch)
    move(followed, source, hole)
    return (source, hole, direction) == (len(live) - 1, live.index(False), UNIDIRECTIONAL) and batch == followed


def listing(rows: list[int], size: int) -> bool:
    """PROD-ELIDE: explicit lists every row; elided lists those of them that the batch has no more, highest first.

    pre: len(rows) <= 4 and all(one < other for one, other in zip(rows, rows[1:]))
    post: _
    """
    inside = [row for row in rows if row < size]
    return listed(rows, size, EXPLICIT) == rows and inside + listed(rows, size, ELIDED)[::-1] == rows


def replaying(vacated: list[bool], arrivals: int, explicit: bool) -> bool:
    """PROD-REPLAY, PROD-NONE, PROD-CONTIGUOUS: the update leads from the rows before a step to those after it, which
    have no hole, and there is none when nothing changed.

    pre: len(vacated) <= 4 and 0 <= arrivals <= 3
    post: _
    """
    batch, followed = batch_of(range(len(vacated))), batch_of(range(len(vacated)))
    rows = [row for row, gone in enumerate(vacated) if gone]
    update = engine_step(batch, rows, newcomers(arrivals), dialect=EXPLICIT if explicit else ELIDED)
    apply_update(followed, update)
    return batch == followed and None not in batch and (update is None) == (not rows and not arrivals)


# The rows


def matching(output: list[int], tokens: list[int]) -> bool:
    """BAD-COMPLETE: outputs end with tokens exactly when both are the same, read from the end.

    pre: len(output) <= 6 and len(tokens) <= 6
    post: _
    """
    return matches(ends_with, output, tokens)


def completing(output: list[int], word: list[int], single: int, token: int) -> bool:
    """BAD-COMPLETE, BAD-SINGLE: a token is masked if it is a word, or the end of one whose start the outputs end with.

    pre: len(output) <= 2 and 0 < len(word) <= 2
    post: _
    """
    found = completing_tokens({"bad_words_token_ids": [word, [single]]}, output)
    started = output[len(output) - len(word) + 1 :] == word[:-1] if len(word) <= len(output) + 1 else False
    return (token in found) == (token == single or (token == word[-1] and started))


def blocking(length: int, minimum: int, stop: int, eos: int) -> bool:
    """MINTOK-BLOCK, MINTOK-EOS, MINTOK-RELEASE, MINTOK-OTHERS: stop token and end of sequence are masked while there
    are fewer outputs than the minimum, and nothing else is, whatever the minimum.

    pre: 0 <= length <= 3 and 0 <= stop <= len(LOGITS) and 0 <= eos <= len(LOGITS)
    post: _
    """
    return blocks(min_tokens, length, minimum, stop, eos)


def allowing(allowed: list[int]) -> bool:
    """ALLOW-MASK, ALLOW-KEPT: a token keeps its logit if it is listed, once or more often, and is masked if not.

    pre: len(allowed) <= 4
    post: _
    """
    row = allowed_token_ids({"allowed_token_ids": allowed}, [], [], LOGITS)
    return all((logit == token) == (token in allowed) for token, logit in enumerate(row.low))


def seeing(prompt: list[int], output: list[int]) -> bool:
    """REP-SEEN, REP-OTHERS: a token is penalised exactly when the prompt or the outputs have it.

    pre: len(prompt) <= 1 and len(output) <= 2
    post: _
    """
    row = repetition_penalty({"repetition_penalty": 2.0}, prompt, output, [4.0, 4.0])
    return all((high < 4.0) == (token in prompt or token in output) for token, high in enumerate(row.high))


def counting_once(prompt: list[int], output: list[int]) -> bool:
    """PRES-ONCE, PRES-OUTPUTS, PRES-OTHERS: a token that the outputs have is penalised by one step, however often
    they have it, and no other is, the prompt's neither.

    pre: len(prompt) <= 2 and len(output) <= 3
    post: _
    """
    row = presence_penalty({"presence_penalty": 0.5}, prompt, output, [4.0, 4.0])
    return all(low == (3.5 if token in output else 4.0) for token, low in enumerate(row.low))


def leaving_alone(k: int) -> bool:
    """TOPK-NEUTRAL: the row is left alone by any k below one and by any as large as the vocabulary, and by no other.

    post: _
    """
    return top_k({"top_k": k}, [], [], LOGITS).untouched == (k < 1 or k >= len(LOGITS))


# The same of code that is wrong


def refuted_removing(cells: list[int], row: int) -> bool:
    """UPD-REMOVE: the same of a removal that closes the gap.

    pre: len(cells) <= 8 and 0 <= row < len(cells)
    post: _
    """
    return removes(list.pop, cells, row)


def refuted_moving(live: list[bool], source: int, destination: int) -> bool:
    """UPD-MOVE, UPD-DROP: the same of a move that leaves the request at its source too.

    pre: len(live) <= 3 and 0 <= source < len(live) and 0 <= destination < len(live)
    pre: source != destination and live[source]
    post: _
    """
    return moves(copy, batch_with_holes(live), source, destination)


def refuted_swapping(cells: list[int], row: int, other: int) -> bool:
    """UPD-SWAP: the same of a swap that goes one way.

    pre: len(cells) <= 5 and 0 <= row < len(cells) and 0 <= other < len(cells)
    post: _
    """
    return swaps(copy, cells, row, other)


def refuted_ordering(cells: list[int], row: int, other: int, request: int) -> bool:
    """UPD-ORDER: the same of an update whose moves come first.

    pre: len(cells) <= 4 and 0 <= row < len(cells) and 0 <= other < len(cells) and row != other
    post: _
    """
    return orders(apply_moves_first, cells, row, other, request)


def refuted_condensing(live: list[bool]) -> bool:
    """PROD-CONDENSE: the same of rows that close up, each by as many as there are holes before it.

    pre: len(live) <= 7
    post: _
    """
    return condenses(close_up, live)


def refuted_matching(output: list[int], tokens: list[int]) -> bool:
    """BAD-COMPLETE: the same of tokens that may stand anywhere in the outputs.

    pre: len(output) <= 6 and len(tokens) <= 6
    post: _
    """
    return matches(contains, output, tokens)


def refuted_blocking(length: int, minimum: int, stop: int, eos: int) -> bool:
    """MINTOK-RELEASE: the same of a release that comes one output late.

    pre: 0 <= length <= 3 and 0 <= stop <= len(LOGITS) and 0 <= eos <= len(LOGITS)
    post: _
    """
    return blocks(release_late, length, minimum, stop, eos)


# What is said of right and of wrong code


def removes(operation: Callable[[Any, Row], Any], cells: list[int], row: int) -> bool:
    """Whether the row becomes a hole, and no other row changes."""
    batch = batch_of(cells)
    operation(batch, row)
    return bool(batch == [None if at == row else cell for at, cell in enumerate(cells)])


def moves(operation: Callable[[Batch, Row, Row], None], cells: list[Any], source: int, destination: int) -> bool:
    """Whether the destination holds what the source held, the source is a hole, and no other row changes."""
    batch = batch_of(cells)
    operation(batch, source, destination)
    return all(
        cell == (None if row == source else cells[source if row == destination else row])
        for row, cell in enumerate(batch)
    )


def swaps(operation: Callable[[Batch, Row, Row], None], cells: list[int], row: int, other: int) -> bool:
    """Whether each of the rows holds what the other held, and no other row changes."""
    batch = batch_of(cells)
    operation(batch, row, other)
    return all(cell == cells[other if at == row else row if at == other else at] for at, cell in enumerate(batch))


def orders(operation: Callable[[Batch, Update], None], cells: list[int], row: int, other: int, request: int) -> bool:
    """Whether a request that is added where one is removed stands where a swap then takes it."""
    batch = batch_of(cells)
    operation(batch, Update(len(cells), (row,), ((row, as_request(request)),), ((row, other, SWAP),)))
    return bool(batch[other] == request and batch[row] == cells[other])


def condenses(operation: Callable[[Batch], list[tuple[Row, Row, str]]], live: list[bool]) -> bool:
    """Whether each move goes from the last row to the lowest hole, and leads to what is left: each request, no hole."""
    batch, followed = batch_with_holes(live), batch_with_holes(live)
    requests = {request for request in batch if request}
    for source, hole, _ in operation(batch):
        if any(followed[source + 1 :]) or None in followed[:hole]:
            return False
        move(followed, source, hole)
    resize(followed, len(batch))
    return batch == followed and set(batch) == requests and len(batch) == len(requests)


def matches(operation: Callable[[list[int], list[int]], bool], output: list[int], tokens: list[int]) -> bool:
    """Whether it is found exactly when the last outputs are the tokens."""
    return operation(output, tokens) == (output[::-1][: len(tokens)] == tokens[::-1])


def blocks(operation: Callable[..., Expectation], length: int, minimum: int, stop: int, eos: int) -> bool:
    """Whether the two tokens are masked while there are fewer outputs than the minimum, and nothing else is."""
    params = {"min_tokens": minimum, "stop_token_ids": [stop], "eos_token_id": eos}
    row = operation(params, [], [0] * length, LOGITS)
    return all((logit != token) == (length < minimum and token in (stop, eos)) for token, logit in enumerate(row.low))


# The code that is wrong


def copy(batch: Batch, source: Row, destination: Row) -> None:
    """The source keeps what it holds."""
    batch[destination] = batch[source]


def apply_moves_first(batch: Batch, update: Update) -> None:
    """Swaps come before removals and additions."""
    for row, other, _ in update.moved:
        swap(batch, row, other)
    apply_update(batch, Update(update.batch_size, update.removed, update.added))


def close_up(batch: Batch) -> list[tuple[Row, Row, str]]:
    """Every row moves down by as many as there are holes before it."""
    rows = [row for row, request in enumerate(batch) if request]
    moved = [(row, place, UNIDIRECTIONAL) for place, row in enumerate(rows) if row != place]
    batch[:] = [batch[row] for row in rows]
    return moved


def contains(output: Sequence[int], tokens: Sequence[int]) -> bool:
    """The tokens may stand anywhere in the outputs."""
    return any(ends_with(output[:end], tokens) for end in range(len(output) + 1))


def release_late(
    params: Params, prompt: Sequence[int] | None, output: Sequence[int], logits: Sequence[float]
) -> Expectation:
    """The stop tokens stay masked at the minimum too."""
    if len(output) > params["min_tokens"]:
        return untouched(logits)
    return exact([-1.0 if token in stop_tokens(params) else logit for token, logit in enumerate(logits)])


# The inputs


def batch_of(cells: Iterable[object]) -> Any:
    """A batch whose requests are the cells."""
    return list(cells)


def batch_with_holes(live: Iterable[bool]) -> Any:
    """A batch that holds a request where `live` says so: the row's number, counted from one."""
    return [request if here else None for request, here in enumerate(live, start=1)]


def newcomers(count: int) -> Any:
    """So many requests that stand in no batch yet, named -1, -2, and so on."""
    return [-request for request in range(1, count + 1)]


def as_request(cell: int) -> Any:
    """A number in place of a request."""
    return cell


def refuses(operation: Callable[..., None], *arguments: object) -> bool:
    """Whether the operation is ill-formed."""
    try:
        operation(*arguments)
    except IllFormed:
        return True
    return False
