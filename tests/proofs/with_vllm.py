"""What is proved of vLLM's own code, where it is installed: its dictionary helper, as it is shipped.

Imported only where vLLM is; importing it puts its lemma among the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality

from logitsproc.proofs.kernel import NONE, implies
from logitsproc.proofs.lemmas import Code, Proof, any_update, disjoint, lemma, overlapping, refused
from logitsproc.proofs.statement import planted
from logitsproc.reference.batch import SWAP, Update

DIRECTIONS = {True: MoveDirectionality.SWAP, False: MoveDirectionality.UNIDIRECTIONAL}


def as_vllm_has_it(update: Update) -> BatchUpdate:
    """The update in vLLM's own type; a request is its own params."""
    added: Sequence[Any] = [(row, request, None, []) for row, request in update.added]
    moved = [(source, destination, DIRECTIONS[way == SWAP]) for source, destination, way in update.moved]
    return BatchUpdate(update.batch_size, list(update.removed), added, moved)


def keeps_what_moves_on(states: Any, update: Any, new_state: Any) -> None:
    """What stood at the destination of a one-way move goes to its source."""
    swaps = [(source, destination, MoveDirectionality.SWAP) for source, destination, _ in update.moved]
    process_dict_updates(states, BatchUpdate(update.batch_size, update.removed, update.added, swaps), new_state)


def keeps_whom_a_request_without_state_replaces(states: Any, update: Any, new_state: Any) -> None:
    """A request without a state leaves that of whom it replaces."""
    added = [each for each in update.added if new_state(*each[1:]) is not None]
    process_dict_updates(states, BatchUpdate(update.batch_size, update.removed, added, update.moved), new_state)


ALSO = {"process_dict_updates": process_dict_updates, "may_be": disjoint}


@lemma(
    planted(may_be=overlapping),
    planted(process_dict_updates=keeps_what_moves_on),
    planted(process_dict_updates=keeps_whom_a_request_without_state_replaces),
    bound="one removal, one addition, one move",
    smallest=True,
    also=ALSO,
)
def vllm_dictionary(p: Proof, code: Code) -> Any:
    """UPD-ORDER, PROD-DISJOINT: The dictionary that vLLM's helper keeps has the state of each row's request, and
    nothing else, after any update in which no row is both removed and added.
    """
    rows, state_of = p.number("rows", 0), p.function("state_of")
    batch, states = p.rows("batch", rows, "optional"), p.map("states", rows)
    at = (batch, states, state_of)
    keeps_states(p, (p.suppose, p.suppose_all), at)
    update = any_update(p, p.number("batch_size", 0))
    p.suppose(code.may_be(update))
    if refused(code.apply_update, batch, update):
        return "refused"
    code.process_dict_updates(states, as_vllm_has_it(update), lambda params, *_: p.optional(state_of(params)))
    keeps_states(p, (p.show, p.show_all), at)
    return batch, states


def keeps_states(p: Proof, said: Any, at: tuple[Any, Any, Any]) -> None:
    """The state of each row is that of its request; a hole, and a row beyond the list, has none."""
    _, each = said
    batch, states, state_of = at
    each(
        p.size(batch),
        lambda row: implies(p.peek(batch, row) != NONE, p.peek(states, row) == state_of(p.peek(batch, row))),
        "the state of a row is that of its request",
    )
    each(
        p.size(batch),
        lambda row: implies(p.peek(batch, row) == NONE, p.peek(states, row) == NONE),
        "a hole has no state",
    )
    each(
        p.size(states),
        lambda row: implies(row >= p.size(batch), p.peek(states, row) == NONE),
        "a row that is gone has no state",
    )
