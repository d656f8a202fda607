"""A real vLLM engine on the CPU, in this process: a tiny model with random weights, few blocks, small batches."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Any

VOCAB = 128
LONGEST = 128
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": VOCAB,
    "max_position_embeddings": LONGEST,
    "bos_token_id": None,
    "eos_token_id": None,
    "logit_scale": 3e6,
}
"""Random weights are tiny, and so are the logits; the scale brings them to a deviation of about 3. Without an
end-of-sequence id of the model's, a request has the one that it names, if any."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
}
LIMITS = {
    "max_model_len": LONGEST,
    "max_num_seqs": 6,
    "max_num_batched_tokens": 24,
    "block_size": 32,
    "num_gpu_blocks_override": 9,
    "kv_cache_memory_bytes": 8 << 20,
}
"""Few blocks preempt requests, few batched tokens cut prompts into parts."""


class Scheduler(StrEnum):
    """By priority, with the tokens of a step known before the next; or asynchronous, one step ahead of its tokens."""

    PRIORITY = "priority"
    ASYNC = "async"


class Idle:
    """A stream or an event of a device that is always done."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def record(self, *arguments: Any) -> None:
        """Nothing to mark."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""


def schedule_asynchronously() -> None:
    """Puts asynchronous scheduling, which vLLM switches off on a CPU, on again, over streams that are always done."""
    import torch
    from vllm.platforms import current_platform

    platform: Any = type(current_platform)
    update = platform.check_and_update_config

    def update_config(config: Any) -> None:
        update(config)
        config.scheduler_config.async_scheduling = True

    platform.check_and_update_config = staticmethod(update_config)
    cuda: Any = torch.cuda
    cuda.Event = cuda.Stream = cuda.current_stream = Idle
    cuda.stream = nullcontext


def start(folder: Path, scheduler: Scheduler, processors: list[str]) -> Any:
    """vLLM's engine for a model made in the folder, with these processors, each module:Class, beside its own."""
    os.environ.update(ENVIRONMENT)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    if scheduler is Scheduler.ASYNC:
        schedule_asynchronously()
    from vllm import LLM

    llm = LLM(
        model=str(folder),
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        scheduling_policy="priority" if scheduler is Scheduler.PRIORITY else "fcfs",
        logits_processors=processors,
        **LIMITS,
    )
    runner_of(llm.llm_engine).reorder_batch_threshold = 1
    return llm.llm_engine


def core_of(engine: Any) -> Any:
    """The engine's core, which has the scheduler."""
    return engine.engine_core.engine_core


def runner_of(engine: Any) -> Any:
    """The model runner, which has the input batch. It sorts decodes before prefills only if told: the CPU needs not."""
    return core_of(engine).model_executor.driver_worker.worker.model_runner
