"""Reports for machines: JSON and JUnit XML."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from junitparser import Error, JUnitXml, Skipped, TestCase, TestSuite
from junitparser import Failure as JUnitFailure

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.explanation import explain, verdict_line
from logitsproc.conformance.notation import format_history
from logitsproc.conformance.recording import read_bytes
from logitsproc.conformance.suite import VERDICTS, ClauseResult, Failure, Report
from logitsproc.spec import clauses

VERSION = 1
PACKAGES = ("logitsproc", "torch", "hypothesis", "vllm")
"""Whose versions are told, where they are installed."""


def to_json(report: Report) -> dict[str, Any]:
    """The report as JSON data, as report.schema.json says; NaN and infinities are strings."""
    settings, evidence = report.settings, report.evidence
    return {
        "version": VERSION,
        "target": settings.subject.target,
        "verdict": report.verdict,
        "scope": report.scope,
        "exit_status": report.exit_status,
        "kind": settings.kind.field if settings.kind else None,
        "oracle": report.oracle,
        "binding": settings.subject.binding.name,
        "device": str(settings.subject.device),
        "tier": settings.tier,
        "seed": settings.seed,
        "clauses": settings.glob,
        "histories": evidence.histories,
        "observed_histories": evidence.observed,
        "steps": evidence.steps,
        "seconds": round(report.seconds, 3),
        "environment": environment(),
        "stopped_early": report.stopped_early,
        "params": {"drawn": report.drawn, "users": report.users, "refused": report.refused},
        "known": [
            {"clause": excuse.known.clause, "reason": excuse.known.reason, "stale": bool(excuse.stale)}
            for excuse in report.known
        ],
        "results": [result_json(result) for result in report.results],
        "failure": failure_json(report.failure, report),
        "beyond": [
            {
                "world": beyond.world.name,
                "says": beyond.world.says,
                "complete": beyond.complete,
                "failure": failure_json(beyond.failure, report),
            }
            for beyond in report.beyond
        ],
        "outside": [failure_json(failure, report) for failure in report.outside],
    }


def read_reports(path: Path) -> list[dict[str, Any]]:
    """The reports of a file that `check --json` wrote; raises CannotRun when it is none."""
    try:
        told = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise CannotRun(f"{path} is not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(told, list) or not told or not all(map(is_report, told)):
        raise CannotRun(f"{path} is not a report of `logitsproc check --json`, of version {VERSION}")
    return told


def is_report(told: Any) -> bool:
    """Whether the data is a report of this version, as far as commands read it."""
    if not isinstance(told, dict) or told.get("version") != VERSION or told.get("verdict") not in VERDICTS:
        return False
    failure = told.get("failure", {})
    fields = {"target": str, "binding": str, "device": str, "known": list}
    return has(told, fields) and (failure is None or is_failure(failure))


def is_failure(told: Any) -> bool:
    """Whether the data is a failure of a report, as far as commands read it."""
    return has(told, {"clause": str, "history": str, "reproduced": bool}) and told["clause"] in clauses()


def has(told: Any, fields: Mapping[str, type]) -> bool:
    """Whether the data is an object with these fields, of these types."""
    return isinstance(told, dict) and all(isinstance(told.get(name), kind) for name, kind in fields.items())


def environment() -> dict[str, str]:
    """What the run ran on: versions by name."""
    found = {"Python": platform.python_version(), "system": f"{sys.platform} {platform.machine()}"}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def result_json(result: ClauseResult) -> dict[str, Any]:
    """One clause's result."""
    return {
        "clause": result.clause.id,
        "level": result.clause.level,
        "status": result.status,
        "fired": result.fired,
        "witnessed": result.witnessed,
        "note": result.note,
    }


def failure_json(failure: Failure | None, report: Report) -> dict[str, Any] | None:
    """A failure with its history in the notation and its explanation."""
    if failure is None:
        return None
    violation = failure.violation
    return {
        "clause": failure.clause.id,
        "link": failure.clause.link,
        "message": violation.message,
        "step": violation.step,
        "row": violation.row,
        "got": None if violation.got is None else [number(value) for value in violation.got],
        "fault": failure.fault,
        "reproduced": failure.reproduced,
        "history": format_history(failure.history, failure.asked),
        "explanation": explain(failure, report.settings.subject),
    }


def number(value: float) -> float | str:
    """The value, or its name if JSON has none for it."""
    return value if math.isfinite(value) else str(value)


def to_junit(reports: list[Report]) -> str:
    """One suite a subject, one case a clause, as JUnit XML."""
    document = JUnitXml()
    for report in reports:
        suite = TestSuite(report.settings.subject.target)
        suite.time = report.seconds
        for result in report.results:
            case = TestCase(result.clause.id, report.settings.subject.target)
            if (outcome := junit_outcome(result, report)) is not None:
                case.result = [outcome]
            suite.add_testcase(case)
        document.add_testsuite(suite)
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return text.decode()


def junit_outcome(result: ClauseResult, report: Report) -> Any:
    """A failure, an error for unproven, a skip for what was not judged, or None for held."""
    if result.status == "broken":
        assert report.failure is not None
        outcome = JUnitFailure(verdict_line(report), result.clause.id)
        outcome.text = explain(report.failure, report.settings.subject)
        return outcome
    if result.status == "unproven":
        return Error("no witness", "unproven")
    if result.status == "held":
        return None
    if result.status == "stale":
        return JUnitFailure(f"stale known failure: {result.note}", "stale")
    return Skipped(f"{result.status}: {result.note}" if result.note else result.status)


def write_json(reports: list[Report], path: Path) -> None:
    """All reports as one JSON document."""
    write_whole(path, json.dumps([to_json(report) for report in reports], indent=2) + "\n")


def write_junit(reports: list[Report], path: Path) -> None:
    """All reports as one JUnit document."""
    write_whole(path, to_junit(reports))


def write_whole(path: Path, text: str) -> None:
    """Writes the file whole or not at all, and a device, a pipe or a link as it comes; raises CannotRun."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        write_through(path, text)
        return
    mask = os.umask(0)
    os.umask(mask)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise CannotRun(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise CannotRun(f"{path} cannot be written: {error.strerror}") from error


def write_through(path: Path, text: str) -> None:
    """Writes to what is no regular file, and must not be replaced by one; raises CannotRun."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise CannotRun(f"{path} cannot be written: {error.strerror}") from error


def require_writable(path: Path | None) -> None:
    """Raises CannotRun, before a run rather than after it, when there is no such folder or it is one."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise CannotRun(f"{path} cannot be written")
