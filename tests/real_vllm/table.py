"""Judges vLLM's processors, its sampler and each of its stages; writes the README's table, or compares with it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from marks import replaced

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.explanation import evidence_line, verdict_line
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.suite import Report, Settings, run

PROCESSORS = "vllm.v1.sample.logits_processor"
SAMPLER = "logitsproc.conformance.vllm_sampler"
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
SECONDS = 90
"""More than any takes, so that time decides nothing."""


def judged(target: str, kind: str) -> Report:
    """The report of one subject."""
    report = run(Settings(load_subject(target), KINDS[kind], seconds=SECONDS))
    print(f"{verdict_line(report)}\n  {evidence_line(report)}", flush=True)
    return report


def line(report: Report, kind: str) -> str:
    """One line of the table."""
    module, _, name = report.settings.subject.target.partition(":")
    where = "vLLM" if module.startswith("vllm.") else "sampler"
    held = [result for result in report.results if result.status == "held"]
    lacking = ", ".join(result.clause.id for result in report.results if result.status == "not met") or "none"
    says = verdict_line(report).removeprefix(f"{report.settings.subject.target}: ")
    return f"| {where} | `{name}` | `{kind}` | {says} | {len(held)} | {lacking} |"


def table(reports: list[tuple[Report, str]]) -> str:
    """The block between the marks."""
    head = ["| of | judged | as | verdict | clauses held | SHOULD not met |", "|---|---|---|---|---:|---|"]
    return "\n".join([*head, *(line(report, kind) for report, kind in reports)])


def main(readme: Path, write: bool) -> int:
    """Writes the block, or says whether it is what the file has."""
    block = table([(judged(target, kind), kind) for target, kind in JUDGED])
    print(block)
    text = readme.read_text(encoding="utf-8")
    fresh = replaced(text, "vllm", block)
    if write:
        readme.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        print(f"{readme} has another table; `make vllm-table` writes it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--write" in sys.argv[2:]))
