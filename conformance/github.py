"""What a run says to GitHub Actions: an annotation at the subject's class for each trouble, and the job's summary."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from logitsproc.conformance.bindings import CannotRun, Subject
from logitsproc.conformance.explanation import (
    REMEDIES,
    cause,
    evidence_line,
    excuse_line,
    indented,
    verdict_line,
)
from logitsproc.conformance.notation import format_history
from logitsproc.conformance.suite import UNPROVEN, Failure, Report
from logitsproc.spec import clauses

SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")
"""What Markdown takes for more than a character."""


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether the process runs in GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def tell_github(reports: Sequence[Report], environment: Mapping[str, str]) -> None:
    """Prints the annotations, and appends to the file that $GITHUB_STEP_SUMMARY names; raises CannotRun."""
    root = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd())
    for report in reports:
        for line in commands(report, root):
            print(line)
    if summary_file := environment.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary_file).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(map(summary, reports))
        except OSError as error:
            raise CannotRun(f"{summary_file} cannot be written: {error.strerror}") from error


def commands(report: Report, root: Path) -> Iterator[str]:
    """An error for what makes the run fail, and a warning for each failure that is known."""
    subject = report.settings.subject
    place = place_of(subject, root)
    if report.failure is not None:
        yield command("error", place, report.failure.clause.id, told(report.failure, subject))
    for excuse in report.known:
        level = "error" if excuse.stale else "warning"
        yield command(level, place, excuse.known.clause, f"{subject.target}: {excuse_line(excuse)}")
    if report.verdict == UNPROVEN:
        yield command("error", place, UNPROVEN, verdict_line(report))


def told(failure: Failure, subject: Subject) -> str:
    """The failure in a few lines."""
    lines = [f"{subject.target}: {failure.clause.title}", cause(failure)]
    if failure.clause.id in REMEDIES:
        lines.append(f"To fix: {REMEDIES[failure.clause.id]}")
    return "\n".join([*lines, failure.clause.link])


def place_of(subject: Subject, root: Path) -> dict[str, str]:
    """Where the class of the subject begins, if it is written in a file below this folder."""
    try:
        file, (_, line) = inspect.getsourcefile(subject.factory), inspect.getsourcelines(subject.factory)
        return {"file": str(Path(str(file)).resolve().relative_to(root.resolve())), "line": str(line)}
    except (OSError, TypeError, ValueError):
        return {}


def command(level: str, place: Mapping[str, str], title: str, message: str) -> str:
    """A workflow command, escaped as GitHub reads it.

    >>> command("error", {"file": "a,b.py", "line": "3"}, "UPD-SWAP", "100%\\nwrong: yes")
    '::error file=a%2Cb.py,line=3,title=UPD-SWAP::100%25%0Awrong: yes'
    """
    properties = {**place, "title": title}
    text = ",".join(f"{name}={escaped_property(value)}" for name, value in properties.items())
    return f"::{level} {text}::{escaped(message)}"


def escaped(text: str) -> str:
    """The text of a command on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """The value of a property."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def summary(report: Report) -> str:
    """The verdict, the clause that is broken, with its history, and the evidence, as Markdown."""
    parts = [f"### {markdown(verdict_line(report))}"]
    if (failure := report.failure) is not None:
        parts.append(f"[{failure.clause.id}]({failure.clause.link}): {markdown(failure.clause.sentence)}")
        parts.append(markdown(cause(failure)))
        if failure.history.steps:
            parts.append(indented(format_history(failure.history, failure.asked)))
        if failure.clause.id in REMEDIES:
            parts.append(f"To fix: {markdown(REMEDIES[failure.clause.id])}")
    for excuse in report.known:
        clause = clauses()[excuse.known.clause]
        parts.append(f"- [{clause.id}]({clause.link}) {markdown(excuse_line(excuse))}")
    parts.append(f"{markdown(evidence_line(report))}.")
    return "\n\n".join(parts) + "\n\n"


def markdown(text: str) -> str:
    """The text as it is, in Markdown."""
    return SPECIAL.sub(r"\\\1", text)
