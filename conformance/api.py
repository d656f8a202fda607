"""The suite as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from logitsproc.conformance.bindings import AUTO, CannotRun, load_subject
from logitsproc.conformance.explanation import evidence_line, excuse_line, explain, verdict_line
from logitsproc.conformance.kinds import kind_named
from logitsproc.conformance.known import known_of, read_known
from logitsproc.conformance.oracles import Author
from logitsproc.conformance.params import checked_params
from logitsproc.conformance.producers.suite import load_producer, run_producer
from logitsproc.conformance.suite import DEFAULT_SEED, TIERS, Report, Settings, run


class NotConformant(AssertionError):
    """A subject broke a clause, or a clause had no witness; `report` is the whole report."""

    def __init__(self, text: str, report: Report) -> None:
        super().__init__(text)
        self.report = report


def check_processor(
    subject: str | Callable[..., Any],
    *,
    implements: str | None = None,
    oracle: str | Author | None = None,
    params: Sequence[dict[str, Any]] | None = None,
    tier: str = "quick",
    seed: int | None = None,
    device: str = "cpu",
    known: str | Path | None = None,
) -> Report:
    """Holds a processor to the contract; the test to paste:

        from logitsproc.conformance import check_processor
        from my_package import MyLogitsProcessor

        def test_my_processor_keeps_the_contract():
            check_processor(
                MyLogitsProcessor,
                params=[{"extra_args": {"target_token": 3}}, {"extra_args": {"target_token": 5}}],
            )

    subject: the class, or `module:Class`. implements: the SamplingParams field it implements (`min_p`,
    `logit_bias`, `min_tokens`), whose reference then judges it. oracle: the author's own
    `f(params, prompt_token_ids, output_token_ids, logits) -> logits`, float32 [vocab], or its `module:function`.
    Without either the solo law judges. params: SamplingParams fields that requests draw from, `extra_args` included;
    a request without any is always among them. tier: quick (20 s at most), ci (5 min), deep (30 min).
    seed: which histories; the same seed gives the same ones. device: where the logits are. known: a TOML file of
    failures that are excused while their histories still fail.

    Returns the report, whose verdict is "known failures" where there are some. Raises NotConformant, an AssertionError
    whose text is the explanation, also for a known failure that is stale; CannotRun, with one line, when the subject
    cannot be loaded or run, or a file is not what it should be.
    """
    require_tier(tier)
    if implements is not None and oracle is not None:
        raise CannotRun("implements and oracle both say what is right; give one")
    loaded, kind = load_subject(subject, AUTO, device), kind_named(implements)
    settings = Settings(
        loaded,
        kind,
        oracle,
        None if params is None else checked_params(list(params), "params"),
        tier,
        DEFAULT_SEED if seed is None else seed,
        known=() if known is None else known_of(read_known(Path(known)), loaded, kind),
    )
    return conformant(run(settings))


def check_producer(subject: str | type, *, tier: str = "quick", seed: int | None = None) -> Report:
    """Holds a producer of updates, an engine's batch, to what producers owe; the test to paste:

        from logitsproc.conformance import check_producer
        from my_engine import MyBatch

        def test_my_batch_tells_the_truth():
            check_producer(MyBatch)

    subject: the class, or `module:Class`, with the two methods of logitsproc.conformance.producers.Producer. tier and
    seed as in check_processor.

    Returns the report. Raises NotConformant and CannotRun as check_processor does.
    """
    require_tier(tier)
    chosen = DEFAULT_SEED if seed is None else seed
    return conformant(run_producer(Settings(load_producer(subject), tier=tier, seed=chosen)))


def require_tier(tier: str) -> None:
    """Raises CannotRun for a tier that there is not."""
    if tier not in TIERS:
        raise CannotRun(f"no tier {tier!r}; there are {', '.join(TIERS)}")


def conformant(report: Report) -> Report:
    """The report; raises NotConformant when it is one of a violation, or proves nothing."""
    if report.failure is not None:
        raise NotConformant(explain(report.failure, report.settings.subject), report)
    if report.exit_status:
        lines = [verdict_line(report), *map(excuse_line, report.known), evidence_line(report)]
        raise NotConformant("\n".join(lines), report)
    return report
