"""The suite catches every miniature and names the clause that it breaks; the controls pass."""

import pytest

from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.explanation import explain
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.miniatures.catalogue import (
    CONSUMERS,
    CONTROLS,
    NO_REPEAT,
    PIPELINES,
    ROWS,
    SOLO_CONTROLS,
    kind_of,
)
from logitsproc.conformance.miniatures.consumers import IgnoresAllMoves
from logitsproc.conformance.miniatures.masks import AssumesContiguous, EnumeratesUsers
from logitsproc.conformance.miniatures.thresholds import AppliesTwice, NaNIsLeast, StopsBefore
from logitsproc.conformance.notation import format_history, parse
from logitsproc.conformance.suite import CONFORMANT, DEFAULT_SEED, UNPROVEN, VIOLATION, Report, Settings, run
from logitsproc.spec import clauses

SHORT_STEPS = 4

pytestmark = pytest.mark.usefixtures("short_tier")


def judge(miniature: type, kind: Kind | None, seed: int = DEFAULT_SEED) -> Report:
    params = None if kind_of(miniature) else NO_REPEAT
    return run(Settings(load_subject(miniature), kind, params=params, seed=seed))


def named(report: Report) -> set[str]:
    """The clause that a report says is broken; if none is, those that say SHOULD and are not met."""
    broken = {result.clause.id for result in report.results if result.status == "broken"}
    return broken or {result.clause.id for result in report.results if result.status == "not met"}


@pytest.mark.parametrize("miniature", [*CONSUMERS, *ROWS, *PIPELINES], ids=lambda cls: cls.__name__)
def test_the_reference_catches_it_names_its_clause_and_shows_a_small_history(miniature: type) -> None:
    report = judge(miniature, kind_of(miniature))
    clause = clauses()[clause_of(miniature)]
    assert named(report) == {clause.id}
    assert report.verdict == (VIOLATION if clause.is_must else CONFORMANT) or kind_of(miniature) is None
    failures = [report.failure, *(beyond.failure for beyond in report.beyond)]
    for failure in [failure for failure in failures if failure is not None]:
        assert len(failure.history.steps) <= SHORT_STEPS
        again = parse(format_history(failure.history))
        assert format_history(again) == format_history(failure.history)
        assert explain(failure, report.settings.subject).startswith(f"{report.settings.subject.target} breaks ")


@pytest.mark.parametrize(
    ("miniature", "seed"),
    [
        (AssumesContiguous, 9),
        (AppliesTwice, 15),
        (NaNIsLeast, 5),
        (StopsBefore, 3),
        (EnumeratesUsers, 11),
        (IgnoresAllMoves, 11),
    ],
)
def test_the_clause_is_named_also_where_the_first_history_shows_little(miniature: type, seed: int) -> None:
    """Seeds with which another clause was named once."""
    assert named(judge(miniature, kind_of(miniature), seed)) == {clause_of(miniature)}


@pytest.mark.parametrize(
    "miniature", [cls for cls in CONSUMERS if clauses()[clause_of(cls)].is_must], ids=lambda cls: cls.__name__
)
def test_the_solo_law_catches_it_too(miniature: type) -> None:
    report = judge(miniature, None)
    assert report.verdict == VIOLATION
    assert named(report) == {clause_of(miniature)}


@pytest.mark.parametrize("control", CONTROLS, ids=lambda cls: cls.__name__)
def test_a_right_processor_passes(control: type) -> None:
    report = judge(control, kind_of(control))
    assert report.failure is None
    assert report.scope == "every well-formed update"
    assert report.verdict == CONFORMANT


@pytest.mark.parametrize("control", SOLO_CONTROLS, ids=lambda cls: cls.__name__)
def test_a_right_processor_keeps_the_solo_law(control: type) -> None:
    assert judge(control, None).verdict == CONFORMANT


def test_a_processor_that_nobody_uses_is_unproven() -> None:
    report = run(Settings(load_subject("logitsproc.conformance.miniatures.controls:NoRepeat")))
    assert report.verdict == UNPROVEN
    assert report.exit_status == 3
