"""What is found without a history: how params are let in, and how custom processors are."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch

from logitsproc.conformance.bindings import load_subject, plain_binding
from logitsproc.conformance.findings import Finding
from logitsproc.conformance.kinds import KINDS, STAGES
from logitsproc.conformance.loading import GROUP, NoProcessor, check_loading
from logitsproc.conformance.miniatures.pipelines import Pipeline
from logitsproc.conformance.miniatures.validators import (
    RaisesLater,
    ValidatedBias,
    ValidatedMinP,
    lets_everyone_in,
)
from logitsproc.conformance.suite import Settings, run
from logitsproc.conformance.validation import EDGES, OUTSIDE, check_validation, check_vocabulary, edges
from logitsproc.reference.validation import DOMAINS, in_vocabulary
from logitsproc.spec import clauses


def troubles(findings: Any) -> dict[str, str]:
    """The first trouble of each clause."""
    found: dict[str, str] = {}
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.clause in clauses()
        if finding.trouble is not None:
            found.setdefault(finding.clause, finding.trouble)
    return found


def test_every_stage_has_edges_and_an_outside_that_are_what_they_say() -> None:
    assert set(EDGES) == set(OUTSIDE) == {stage.field for stage in STAGES}
    for pool, inside in ((EDGES, True), (OUTSIDE, False)):
        for params in (params for many in pool.values() for params in many):
            assert all(DOMAINS[field].has(value) for field, value in params.items()) is inside, params
    assert all(in_vocabulary(params, 8) for params in edges(KINDS["pipeline"]))


@pytest.mark.parametrize("cls", [ValidatedMinP, ValidatedBias])
def test_a_right_validate_params_has_no_trouble(cls: type) -> None:
    kind = KINDS["min_p" if cls is ValidatedMinP else "logit_bias"]
    findings = list(check_validation(load_subject(cls), kind))
    assert troubles(findings) == {}
    assert {finding.clause for finding in findings} >= {"VAL-DOMAIN", "VAL-ERROR", "VAL-ACCEPT", "VAL-PURE"}


def test_the_plain_host_lets_in_what_its_vocabulary_has() -> None:
    assert troubles(check_vocabulary(plain_binding())) == {}


def test_a_host_that_lets_everyone_in_is_found() -> None:
    careless = replace(plain_binding(), let_in=lets_everyone_in)
    assert set(troubles(check_vocabulary(careless))) == {"VAL-VOCABULARY"}


def test_a_right_pipeline_loads_everything_and_refuses_the_rest() -> None:
    findings = list(check_loading(load_subject(Pipeline)))
    assert troubles(findings) == {}
    assert sum(finding.clause == "LOAD-REFUSE" for finding in findings) == 12


def test_nothing_is_left_behind() -> None:
    before = list(sys.path), set(sys.modules)
    list(check_loading(load_subject(Pipeline)))
    assert sys.path == before[0]
    assert {name for name in set(sys.modules) - before[1] if "recorders" in name} == set()
    assert not [point for point in entry_points(group=GROUP) if "recorders" in point.value]


class IgnoresPlugins(Pipeline):
    """Loads nothing that an entry point names."""

    def plugins(self) -> list[str]:
        return []


class ExitsAtStart(Pipeline):
    """Ends the process when there is anything to load."""

    def load(self, given: Any) -> list[type]:
        if given or self.plugins():
            raise SystemExit(0)
        return []


@pytest.mark.parametrize("cls", [IgnoresPlugins, ExitsAtStart])
def test_whatever_a_pipeline_does_at_start_is_a_finding(cls: type) -> None:
    assert set(troubles(check_loading(load_subject(cls)))) >= {"LOAD-ENTRY", "LOAD-ORDER", "LOAD-INVARIANT"}


def test_the_script_of_a_finding_runs(capsys: pytest.CaptureFixture[str]) -> None:
    subject = load_subject("logitsproc.conformance.miniatures.pipelines:GivenFirst")
    (finding,) = [found for found in check_loading(subject) if found.clause == "LOAD-ORDER" and found.trouble]
    exec("\n".join(finding.lines), {})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Second", "First", "Plugin", "Always"]


def test_clauses_outside_the_glob_do_not_end_the_run_at_the_edges() -> None:
    report = run(Settings(load_subject(RaisesLater), KINDS["min_p"], glob="UPD-*", tier="quick", seconds=2))
    assert report.failure is None
    assert "VAL-LATER" in [noted.clause.id for noted in report.outside]


class FailsAtApply(Pipeline):
    """Takes whatever it is given, and fails when it is applied."""

    def load(self, given: Any) -> list[type]:
        self.bad = [target for target in given if target is NoProcessor]
        return super().load([target for target in given if target is not NoProcessor])

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if self.bad:
            raise AttributeError("it has no apply()")
        return super().apply(logits)


def test_what_is_refused_is_refused_at_start() -> None:
    assert set(troubles(check_loading(load_subject(FailsAtApply)))) == {"LOAD-REFUSE"}
