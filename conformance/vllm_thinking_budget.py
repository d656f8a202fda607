"""vLLM's budget for thinking as a subject: its ThinkingBudgetStateHolder, called where vLLM calls it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from vllm.v1.sample.thinking_budget_state import ThinkingBudgetStateHolder

from logitsproc.conformance.bindings import VLLM
from logitsproc.conformance.consumers import Consumer


class ThinkingBudget(Consumer):
    """The holder, with token 2 to begin a section and 7 to end it, which no history of the suite's has."""

    HOST = VLLM
    START, END = [2], [7]

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        markers = SimpleNamespace(reasoning_start_token_ids=self.START, reasoning_end_token_ids=self.END)
        self.holder = ThinkingBudgetStateHolder(markers, vllm_config.scheduler_config.max_num_seqs, 0, device, False)

    def sync(self, batch_update: Any) -> None:
        """As `InputBatch.refresh_metadata` does."""
        self.holder.sync_batch(batch_update)

    def transform(self, logits: torch.Tensor) -> Any:
        """As `Sampler.apply_logits_processors` does."""
        if not self.holder.has_tracked_requests():
            return logits
        drafts: list[list[int]] = [[] for _ in self.outputs]
        self.holder.update_state(self.outputs, drafts)
        return self.holder.apply_to_logits(logits, predict_bonus_token=False, spec_token_ids=drafts)


class Repaired(ThinkingBudget):
    """The holder without its known deviation of bookkeeping: the destination of a one-way move is cleared first."""

    def sync(self, batch_update: Any) -> None:
        """Hands the moves on one by one."""
        self.holder.sync_batch(replace(batch_update, moved=[]))
        for move in batch_update.moved:
            if move[2].name == "UNIDIRECTIONAL":
                self.holder._state.pop(move[1], None)
            self.holder.sync_batch(replace(batch_update, removed=[], added=[], moved=[move]))


class Sections(Repaired):
    """The holder with markers that the suite's histories have, so that sections end and others begin."""

    START, END = [3], [5]


class TwoTokenEnd(Repaired):
    """The holder where a section ends in two tokens."""

    START, END = [3], [5, 6]
