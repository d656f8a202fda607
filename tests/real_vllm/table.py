"""Judges vLLM's processors, sampler, stages, a consumer and its batch; writes README's table, or compares with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

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
SECONDS = 90
"""More than any takes, so that time decides nothing."""


def judged(runs: Callable[[Settings], Report], settings: Settings) -> Report:
    """The report of one subject."""
    report = runs(settings)
    print(f"{verdict_line(report)}\n  {evidence_line(report)}", flush=True)
    return report


def everything() -> Iterator[Report]:
    """The reports of all that is judged, in the order of the table."""
    for target, kind in JUDGED:
        yield judged(run, Settings(load_subject(target), KINDS[kind], seconds=SECONDS))
    for target, params in ALONE:
        yield judged(run, Settings(load_subject(target), params=params, seconds=SECONDS))
    for target in BATCHES:
        yield judged(run_producer, Settings(load_producer(target), seconds=SECONDS))


def line(report: Report) -> str:
    """One line of the table."""
    kind, target = report.settings.kind, report.settings.subject.target
    module, _, name = target.partition(":")
    held = [result for result in report.results if result.status == "held"]
    lacking = ", ".join(result.clause.id for result in report.results if result.status == "not met") or "none"
    judge, says = f"`{kind.field}`" if kind else report.oracle, verdict_line(report).removeprefix(f"{target}: ")
    return f"| {WHERE.get(module, 'vLLM')} | `{name}` | {judge} | {says} | {len(held)} | {lacking} |"


def table(reports: list[Report]) -> str:
    """The block between the marks."""
    head = ["| of | judged | as | verdict | clauses held | SHOULD not met |", "|---|---|---|---|---:|---|"]
    return "\n".join([*head, *map(line, reports)])


def main(arguments: list[str]) -> int:
    """Writes the block, or says whether it is what the file has."""
    block = table(list(everything()))
    return write_or_compare(arguments, "vllm", block, "vllm-table")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
