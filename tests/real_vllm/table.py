"""Judges vLLM's processors, sampler, stages, a consumer and its batch; writes README's table, or compares with it."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from marks import write_or_compare

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.explanation import evidence_line, verdict_line
from logitsproc.conformance.kinds import KINDS, Pool
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.suite import Report, Settings, run

PROCESSORS = "vllm.v1.sample.logits_processor"
SAMPLER = "logitsproc.conformance.vllm_sampler"
THINKING = "logitsproc.conformance.vllm_thinking_budget"
INPUT_BATCH = "logitsproc.conformance.producers.vllm_input_batch"
WHERE = {SAMPLER: "sampler", THINKING: "thinking budget", INPUT_BATCH: "producer"}
JUDGED = (
    (f"{PROCESSORS}:MinTokensLogitsProcessor", "min_tokens"),
    (f"{PROCESSORS}:LogitBiasLogitsProcessor", "logit_bias"),
    (f"{PROCESSORS}:MinPLogitsProcessor", "min_p"),
    (f"{PROCESSORS}:AdapterLogitsProcessor", "adapter"),
    (f"{SAMPLER}:AllowedTokenIds", "allowed_token_ids"),
    (f"{SAMPLER}:BadWords", "bad_words"),
    (f"{SAMPLER}:RepetitionPenalty", "repetition_penalty"),
    (f"{SAMPLER}:FrequencyPenalty", "frequency_penalty"),
    (f"{SAMPLER}:PresencePenalty", "presence_penalty"),
    (f"{SAMPLER}:Temperature", "temperature"),
    (f"{SAMPLER}:TopK", "top_k"),
    (f"{SAMPLER}:TopP", "top_p"),
    (f"{SAMPLER}:RepairedTopP", "top_p"),
    (f"{SAMPLER}:SamplerPipeline", "pipeline"),
    (f"{SAMPLER}:Repaired", "pipeline"),
)
NO_THOUGHT: Pool = [{"thinking_token_budget": 0}]
BUDGETS: Pool = [{"thinking_token_budget": tokens} for tokens in range(4)]
ALONE = (
    (f"{THINKING}:ThinkingBudget", NO_THOUGHT),
    (f"{THINKING}:Repaired", NO_THOUGHT),
    (f"{THINKING}:Sections", BUDGETS),
    (f"{THINKING}:TwoTokenEnd", BUDGETS),
)
"""What there is no reference for is judged by the solo law, with these params."""
BATCHES = (f"{INPUT_BATCH}:InputBatchSwaps", f"{INPUT_BATCH}:InputBatchSplits")
SECONDS = 180
"""More than any takes, so that time decides nothing."""
AT_ONCE = 2


class Job(NamedTuple):
    """A subject, and how it is judged: as a kind, or with these params, or as a producer where both are None."""

    target: str
    kind: str | None = None
    params: Pool | None = None


JOBS = (
    *(Job(target, kind) for target, kind in JUDGED),
    *(Job(target, params=params) for target, params in ALONE),
    *map(Job, BATCHES),
)
"""All that is judged, in the order of the table."""


def judged(job: Job) -> tuple[str, str]:
    """What is said of one subject, and its line of the table."""
    if job.kind is None and job.params is None:
        report = run_producer(Settings(load_producer(job.target), seconds=SECONDS))
    else:
        kind = None if job.kind is None else KINDS[job.kind]
        report = run(Settings(load_subject(job.target), kind, params=job.params, seconds=SECONDS))
    return f"{verdict_line(report)}\n  {evidence_line(report)}", line(report)


def line(report: Report) -> str:
    """One line of the table."""
    kind, target = report.settings.kind, report.settings.subject.target
    module, _, name = target.partition(":")
    held = [result for result in report.results if result.status == "held"]
    lacking = ", ".join(result.clause.id for result in report.results if result.status == "not met") or "none"
    judge, says = f"`{kind.field}`" if kind else report.oracle, verdict_line(report).removeprefix(f"{target}: ")
    return f"| {WHERE.get(module, 'vLLM')} | `{name}` | {judge} | {says} | {len(held)} | {lacking} |"


def table() -> str:
    """The block between the marks."""
    lines = ["| of | judged | as | verdict | clauses held | SHOULD not met |", "|---|---|---|---|---:|---|"]
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        for said, entry in pool.map(judged, JOBS):
            print(said, flush=True)
            lines.append(entry)
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Writes the block, or says whether it is what the file has."""
    return write_or_compare(arguments, "vllm", table(), "vllm-table")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
