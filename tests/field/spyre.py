"""What the adapters of vllm-spyre and sendnn-inference have alike."""

from __future__ import annotations

from functools import cache
from itertools import count
from types import ModuleType
from typing import Any

import torch
from small_tokenizer import saved
from vllm.v1.sample.logits_processor import LogitsProcessors, MinTokensLogitsProcessor

from logitsproc.conformance.bindings import VLLM
from logitsproc.conformance.interface import as_update
from logitsproc.reference.batch import Batch, apply_update
from logitsproc.reference.request import Request

LONGEST = 4096


def with_tokenizer(vllm_config: Any) -> Any:
    """The configuration, of a model that has a tokenizer."""
    model = vllm_config.model_config
    model.tokenizer = str(saved(model.get_vocab_size()))
    model.tokenizer_revision, model.tokenizer_mode, model.trust_remote_code = None, "auto", False
    return vllm_config


def around_min_tokens(vllm_config: Any, device: torch.device) -> tuple[Any, ...]:
    """What the wrapper is made from, as its package's `build_logitsprocs_for_cb` does it."""
    return MinTokensLogitsProcessor, vllm_config, device, False, vllm_config.scheduler_config.max_num_seqs


def read_once(injector: ModuleType) -> None:
    """Reads a tokenizer once: the suite makes many processors."""
    injector.get_tokenizer = cache(injector.get_tokenizer)


class WithTokenizer:
    """In front of the injector of expected tokens: a tokenizer in the place of the model's."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(with_tokenizer(vllm_config), device, is_pin_memory)


class AroundMinTokens:
    """In front of the wrapper: vLLM's min-tokens within, and the updates of vLLM's batch."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(*around_min_tokens(vllm_config, device))


class OnItsOwnBatch:
    """The wrapper behind the batch that its package has for it, told who leaves and who comes as by its runner.

    Who leaves is removed at the start of a step, one request at a time, each with a refresh; who comes is added in a
    step of its own, which another one follows, with a refresh of its own. A step in which nobody leaves or comes has
    one refresh. The batch has its own order: the rows are handed over in it, and put back. A prompt that is None, which
    the package has not, is an empty one.
    """

    HOST = VLLM
    REACHABLE_ONLY = True
    BATCH: Any
    STATE: Any
    WRAPPER: Any

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        most, vocab = vllm_config.scheduler_config.max_num_seqs, vllm_config.model_config.get_vocab_size()
        self.wrapper = self.WRAPPER(*around_min_tokens(vllm_config, device))
        self.batch = self.BATCH(most, LONGEST, device, False, vocab, LogitsProcessors([self.wrapper]))
        self.rows: Batch = []
        self.names = map(str, count())

    def is_argmax_invariant(self) -> bool:
        """As the wrapper."""
        return bool(self.wrapper.is_argmax_invariant())

    def update_state(self, batch_update: Any) -> None:
        """Removes from its batch, and adds to it; the batch tells the wrapper."""
        before = self.requests()
        if batch_update is not None:
            apply_update(self.rows, as_update(batch_update, self.request))
        after = self.requests()
        left = [request for request in before if request not in after]
        came = [request for request in after if request not in before]
        for request in left:
            self.batch.remove_request(request.name)
            self.batch.refresh_metadata()
        for request in came:
            self.batch.add_request(self.state(request))
            self.batch.refresh_metadata()
        if came or not left:
            self.batch.refresh_metadata()

    def requests(self) -> list[Request]:
        """Who is in the batch."""
        return [request for request in self.rows if request is not None]

    def request(self, added: Any) -> Request:
        """A request of the list model, under a new name."""
        params, prompt, output = added
        return Request(next(self.names), {"given": params}, prompt, output)

    def state(self, request: Request) -> Any:
        """The same, as the package's batch takes it."""
        return self.STATE(
            req_id=request.name,
            sampling_params=request.params["given"],
            prompt_token_ids=request.prompt or [],
            output_token_ids=request.output,
        )

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """The wrapper's, in the order of its batch."""
        names = [request.name for request in self.requests()]
        order = torch.tensor([names.index(name) for name in self.batch.sorted_requests_ids], dtype=torch.long)
        logits[order] = self.wrapper.apply(logits[order])
        return logits
