"""vLLM's InputBatch and its requests, as its model runner makes them."""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.sample.logits_processor import LogitsProcessors
from vllm.v1.worker.gpu_input_batch import CachedRequestState, InputBatch

MAX_LENGTH = 1024
BLOCK = 16
EMBEDDED_TOKENS = 2
"""How long a prompt without ids is taken to be."""
EMBEDDING = 4


def input_batch(max_num_seqs: int, vocab: int, processors: LogitsProcessors, device: torch.device) -> InputBatch:
    """An empty batch of up to so many rows, which tells these processors of its changes."""
    return InputBatch(
        max_num_reqs=max_num_seqs,
        max_model_len=MAX_LENGTH,
        max_num_batched_tokens=MAX_LENGTH,
        device=device,
        vocab_size=vocab,
        block_sizes=[BLOCK],
        max_num_blocks_per_req=[MAX_LENGTH // BLOCK],
        logitsprocs=processors,
        logitsprocs_need_output_token_ids=True,
    )


def request_state(req_id: str, params: Any, prompt: list[int] | None, output: list[int]) -> CachedRequestState:
    """A request with its live output list; without prompt ids it has embeddings."""
    return CachedRequestState(
        req_id=req_id,
        prompt_token_ids=prompt,
        prompt_embeds=None if prompt is not None else torch.zeros(EMBEDDED_TOKENS, EMBEDDING),
        mm_features=[],
        sampling_params=params,
        generator=None,
        block_ids=([0],),
        num_computed_tokens=0,
        output_token_ids=output,
    )
