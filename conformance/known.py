"""Files of known failures, in TOML: each entry with target, clause, reason, and the history that is played again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item

from logitsproc.conformance.bindings import CannotRun, Subject
from logitsproc.conformance.excuses import Known
from logitsproc.conformance.formats import read_reports, write_whole
from logitsproc.conformance.history import Step
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.notation import NotationError, parse
from logitsproc.conformance.recording import read_bytes
from logitsproc.conformance.replaying import to_history
from logitsproc.conformance.suite import owed, speaks_of
from logitsproc.spec import clauses

ENTRIES = "known"
NEEDED = ("target", "clause", "reason", "history")
OPTIONAL = ("binding", "device")


def read_known(path: Path) -> list[Known]:
    """The entries of the file, in order; raises CannotRun with one line that names the first one that is wrong."""
    return [to_known(entry, f"{path}: entry {number}") for number, entry in enumerate(entries(read(path), path), 1)]


def known_of(known: Sequence[Known], subject: Subject, kind: Kind | None) -> tuple[Known, ...]:
    """Those that are of this subject as it is judged; raises CannotRun for a clause that it does not owe."""
    chosen = tuple(each for each in known if is_of(each, subject, kind))
    judged = {clause.id for clause in owed(kind) if speaks_of(clause, kind)}
    for each in chosen:
        if each.clause not in judged:
            raise CannotRun(f"{subject.target} is known to break {each.clause}, by which it is not judged")
    return chosen


def is_of(known: Known, subject: Subject, kind: Kind | None) -> bool:
    """Whether it is of this subject, judged as this kind, with these types and on this device."""
    return (
        known.target == subject.target
        and known.history.kind == (kind.field if kind else None)
        and known.binding in (None, subject.binding.name)
        and known.device in (None, str(subject.device))
    )


def add_known(report: Path, path: Path, reason: str) -> list[Known]:
    """Writes an entry for each failure of a JSON report into the file, which need not exist, and gives them.

    The rest of the file stays as it is. Raises CannotRun, and writes nothing, where a failure cannot be known, one is
    known already, or there is none.
    """
    document = read(path) if path.exists() else tomlkit.document()
    there = [to_known(entry, f"{path}: entry {number}") for number, entry in enumerate(entries(document, path), 1)]
    made = [entry_of(told, reason, report) for told in read_reports(report) if told["failure"] is not None]
    if not made:
        raise CannotRun(f"{report} has no failure")
    added = [to_known(entry, str(report)) for entry in made]
    for known in added:
        if identity(known) in map(identity, there):
            raise CannotRun(f"{path} has {known.clause} of {known.target} already")
        there.append(known)
    write_whole(path, with_entries(document, made))
    return added


def identity(known: Known) -> tuple[str, ...]:
    """What no two entries that are added have in common."""
    return known.target, known.clause, *map(str, (known.history.kind, known.binding, known.device))


def read(path: Path) -> tomlkit.TOMLDocument:
    """The document; raises CannotRun when it cannot be read, or is not TOML."""
    try:
        return tomlkit.parse(read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path} is not UTF-8 text") from error
    except TOMLKitError as error:
        raise CannotRun(f"{path} is not TOML: {' '.join(str(error).split())}") from error


def entries(document: tomlkit.TOMLDocument, path: Path) -> list[dict[str, Any]]:
    """The entries as plain data; raises CannotRun when there is something else in the document."""
    if set(document) - {ENTRIES} or not isinstance(document.get(ENTRIES, tomlkit.aot()), AoT):
        raise CannotRun(f"{path} has something else than [[{ENTRIES}]] entries")
    found: list[dict[str, Any]] = document.unwrap().get(ENTRIES, [])
    return found


def to_known(entry: dict[str, Any], place: str) -> Known:
    """The entry; raises CannotRun when a field is missing, unknown, not text or empty, or not what it should be."""
    if unknown := sorted(set(entry) - {*NEEDED, *OPTIONAL}):
        raise CannotRun(f"{place} has {unknown[0]}, and there are {', '.join((*NEEDED, *OPTIONAL))}")
    for field in NEEDED:
        if field not in entry:
            raise CannotRun(f"{place} has no {field}")
    for field, value in entry.items():
        if not isinstance(value, str) or not value.strip():
            raise CannotRun(f"{place}: {field} is not a text")
    if entry["clause"] not in clauses():
        raise CannotRun(f"{place}: no clause {entry['clause']!r}; `logitsproc spec` lists them")
    history = to_history(Path(f"{place}: history"), entry["history"].encode())
    others = {field: entry[field] for field in OPTIONAL if field in entry}
    return Known(entry["target"], entry["clause"], " ".join(entry["reason"].split()), history, **others)


def entry_of(told: dict[str, Any], reason: str, path: Path) -> dict[str, Any]:
    """The entry of a failure in a report; raises CannotRun where playing a history again would not show it."""
    failure = told["failure"]
    whose = f"{path}: {failure['clause']} of {told['target']} cannot be known: "
    if clauses()[failure["clause"]].chapter == "producer":
        raise CannotRun(f"{whose}its history is what a producer emitted, and not what it was asked")
    if not steps_of(failure["history"], path):
        raise CannotRun(f"{whose}no history shows it, only the script of the report")
    if not failure["reproduced"]:
        raise CannotRun(f"{whose}it does not fail when it is played again")
    return {
        "target": told["target"],
        "clause": failure["clause"],
        "reason": reason,
        "binding": told["binding"],
        "device": told["device"],
        "history": failure["history"],
    }


def steps_of(text: str, path: Path) -> tuple[Step, ...]:
    """The steps of a history in a report; raises CannotRun where it is not in the notation."""
    try:
        return parse(text).steps
    except NotationError as error:
        raise CannotRun(f"{path}: history: {error}") from error


def with_entries(document: tomlkit.TOMLDocument, made: Iterable[dict[str, Any]]) -> str:
    """The document with these entries behind its own, each history as lines."""
    listed = document.setdefault(ENTRIES, tomlkit.aot())
    for entry in made:
        table = tomlkit.table()
        table.update(entry | {"history": lines(entry["history"])})
        table.trivia.indent = "\n"
        listed.append(table)
    return tomlkit.dumps(document).lstrip("\n")


def lines(text: str) -> Item:
    """The text as a string whose lines stand below each other."""
    written = tomlkit.string(text.strip() + "\n", multiline=True).as_string()
    return tomlkit.value(written[:3] + "\n" + written[3:])
