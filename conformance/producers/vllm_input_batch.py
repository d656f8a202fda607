"""vLLM's own InputBatch and BatchUpdateBuilder as a producer, driven as the model runner drives them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from vllm.v1.attention.backends.utils import reorder_batch_to_split_decodes_and_prefills
from vllm.v1.sample.logits_processor import LogitsProcessors

from logitsproc.conformance.bindings import VLLM
from logitsproc.conformance.producers.interface import Schedule
from logitsproc.conformance.vllm_batch import input_batch, request_state

DECODE_THRESHOLD = 1
PREFILL_TOKENS = 2


class Listener:
    """A processor that keeps the update it was handed last."""

    last: Any = None

    def is_argmax_invariant(self) -> bool:
        """No."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Keeps it."""
        self.last = batch_update


class InputBatchSwaps:
    """InputBatch, with the swaps that the schedule asks for."""

    HOST = VLLM

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        self.listener = Listener()
        self.batch = input_batch(max_num_seqs, vocab_size, LogitsProcessors([self.listener]), torch.device("cpu"))

    def step(self, schedule: Schedule) -> Any:
        """Removes, adds, condenses, reorders and refreshes, in the model runner's order."""
        self.follow_outputs()
        for req_id in schedule.leaving:
            self.batch.remove_request(req_id)
        for coming in schedule.coming:
            come = (coming.req_id, coming.params, coming.prompt_token_ids, coming.output_token_ids)
            self.batch.add_request(request_state(*come))
        self.batch.condense()
        self.reorder(schedule)
        self.batch.refresh_metadata()
        return self.listener.last

    def follow_outputs(self) -> None:
        """What the runner does when tokens are sampled: it counts them, and notes which are computed."""
        for row, output in enumerate(self.batch.req_output_token_ids):
            length = self.batch.num_prompt_tokens[row] + len(output or ())
            self.batch.num_tokens_no_spec[row] = length
            self.batch.num_computed_tokens_cpu[row] = max(length - 1, 1)

    def reorder(self, schedule: Schedule) -> None:
        """The swaps of the schedule."""
        for row, other in schedule.swaps:
            self.batch.swap_states(row, other)

    def rows(self) -> Sequence[tuple[str | None, list[int] | None]]:
        """The batch's ids and output lists."""
        return list(zip(self.batch.req_ids, self.batch.req_output_token_ids, strict=True))


class InputBatchSplits(InputBatchSwaps):
    """InputBatch, reordered by the attention backends' own function, which puts decodes before prefills."""

    def reorder(self, schedule: Schedule) -> None:
        """Decodes first; those that come have their prompt to be computed."""
        coming = {request.req_id for request in schedule.coming}
        tokens = {req_id: PREFILL_TOKENS if req_id in coming else DECODE_THRESHOLD for req_id in self.batch.req_ids}
        scheduled = SimpleNamespace(num_scheduled_tokens=tokens)
        reorder_batch_to_split_decodes_and_prefills(self.batch, scheduled, DECODE_THRESHOLD)
