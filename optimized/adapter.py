"""Request-level logits processors, each a callable on one row, as one batch-level processor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import torch

from logitsproc.optimized.processor import Processor

RequestProcessor = Callable[..., torch.Tensor]
"""(prompt token ids, output token ids, row) or (output token ids, row) -> the row, the same or a new one.

The lists are the live ones. row: [vocab] float32, a view of the logits, that may be changed in place.
"""
RowProcessor = Callable[[torch.Tensor], torch.Tensor]
"""A request processor that has its lists: row -> row."""


class AdapterLogitsProcessor(Processor):
    """A processor made of one callable for each request that wants one.

    A subclass says which callable in `new_req_logits_processor`, and in `is_argmax_invariant` whether every one keeps
    the largest token; one with a constructor of its own calls this one.
    """

    @classmethod
    def validate_params(cls, params: Any) -> None:
        """PROC-EXCEPTION: accepts every request; a subclass may raise ValueError."""

    @abstractmethod
    def new_req_logits_processor(self, params: Any) -> RequestProcessor | None:
        """LOAD-OPT-OUT: the callable for a request with these params, or None for none."""

    def state_of(self, params: Any, prompt: list[int] | None, output: list[int]) -> RowProcessor | None:
        """LOAD-ADAPTER, LOAD-OPT-OUT: the request's callable with its live lists; a missing prompt is an empty one."""
        processor = self.new_req_logits_processor(params)
        if processor is None:
            return None
        if len(signature(processor).parameters) == 3:
            return partial(processor, [] if prompt is None else prompt, output)
        return partial(processor, output)

    def edit(self, logits: torch.Tensor, processors: dict[int, RowProcessor]) -> None:
        """LOAD-ROW: the row of each user becomes what its callable returns.

        logits: [rows, vocab] float32, of any strides, changed in place. processors: row -> the callable with its lists.
        """
        for number, processor in processors.items():
            row = logits[number]
            returned = processor(row)
            if returned is not row:
                row.copy_(returned)
