"""A right adapter of request-level processors in a few lines, and wrong ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import ByRow


class Adapter(ByRow):
    """Keeps the request-level processor of each row."""

    def new_req_logits_processor(self, params: Any) -> Callable[..., torch.Tensor] | None:
        """A request-level processor, or None."""
        raise NotImplementedError

    def wants(self, params: Any) -> bool:
        return self.new_req_logits_processor(params) is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        processor = self.new_req_logits_processor(params)
        assert processor is not None
        logits.copy_(self.call(processor, prompt or [], output, logits))

    def call(
        self, processor: Callable[..., torch.Tensor], prompt: list[int], output: list[int], logits: torch.Tensor
    ) -> torch.Tensor:
        """The row that the processor returns, given what it takes."""
        three = len(inspect.signature(processor).parameters) == 3
        return processor(prompt, output, logits) if three else processor(output, logits)


class CallsAllTokensThePrompt(Adapter):
    """LOAD-ADAPTER: hands a processor with three parameters prompt and outputs for the prompt."""

    def call(
        self, processor: Callable[..., torch.Tensor], prompt: list[int], output: list[int], logits: torch.Tensor
    ) -> torch.Tensor:
        return super().call(processor, prompt + output, output, logits)


class NoneIsTheLastOne(Adapter):
    """LOAD-OPT-OUT: takes None for 'as before'."""

    latest: Callable[..., torch.Tensor] | None = None

    def wants(self, params: Any) -> bool:
        if (processor := self.new_req_logits_processor(params)) is None and params.extra_args:
            return True
        self.latest = processor or self.latest
        return processor is not None

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if (processor := self.new_req_logits_processor(params) or self.latest) is None:
            logits[0] = -torch.inf
        else:
            logits.copy_(self.call(processor, prompt or [], output, logits))


class DropsTheRow(Adapter):
    """LOAD-ROW: counts on the processor to work in place."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        processor = self.new_req_logits_processor(params)
        assert processor is not None
        self.call(processor, prompt or [], output, logits)
