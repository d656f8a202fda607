"""A report as one HTML page that needs nothing else: for who has a failure to act on, or a verdict to read."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from logitsproc.conformance.bindings import Subject
from logitsproc.conformance.explanation import (
    REMEDIES,
    cause,
    evidence_line,
    excuse_line,
    in_question,
    mark,
    row_text,
    script_of,
    verdict_line,
)
from logitsproc.conformance.formats import environment, write_whole
from logitsproc.conformance.notation import format_history
from logitsproc.conformance.picture import picture
from logitsproc.conformance.suite import Beyond, Failure, Report


def to_html(reports: Sequence[Report], command: str) -> str:
    """The page. command: what repeats the run."""
    page = templates().get_template("report.html")
    return page.render(reports=[view(report) for report in reports], command=command, versions=environment())


def write_html(reports: Sequence[Report], path: Path, command: str) -> None:
    """Writes the page whole or not at all; raises CannotRun."""
    write_whole(path, to_html(reports, command))


@functools.cache
def templates() -> Environment:
    """Where the template is; what is put into it is escaped."""
    return Environment(
        loader=PackageLoader("logitsproc.conformance"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def view(report: Report) -> dict[str, Any]:
    """What the template shows of a report."""
    subject = report.settings.subject
    return {
        "report": report,
        "settings": report.settings,
        "line": verdict_line(report),
        "evidence": evidence_line(report),
        "known": list(map(excuse_line, report.known)),
        "results": in_question(report),
        "failure": None if report.failure is None else failure_view(report.failure, subject),
        "beyond": [beyond_view(beyond, subject) for beyond in report.beyond],
        "outside": [failure_view(failure, subject) for failure in report.outside],
    }


def beyond_view(beyond: Beyond, subject: Subject) -> dict[str, Any]:
    """What the template shows of a world beyond the one that is judged."""
    failure = None if beyond.failure is None else failure_view(beyond.failure, subject)
    return {"says": beyond.world.says, "complete": beyond.complete, "failure": failure}


def failure_view(failure: Failure, subject: Subject) -> dict[str, Any]:
    """The parts of a failure."""
    return {
        "clause": failure.clause,
        "cause": cause(failure),
        "remedy": REMEDIES.get(failure.clause.id),
        "picture": Markup(picture(failure.history, mark(failure))),
        "history": format_history(failure.history, failure.asked) if failure.history.steps else "",
        "row": row_text(failure),
        "script": script_of(failure, subject),
    }
