"""Writes the tables of public faults into the page: `track_record.py spec/track-record.md`."""

import sys
from pathlib import Path

from marks import write

from logitsproc.conformance.track_record import PARTS, PROCESSOR, PRODUCER, RECORD, STAGE, PublicFault, link_of
from logitsproc.spec import clauses

PAGE = Path(__file__).parent.parent / "spec" / "track-record.md"
TITLES = {PROCESSOR: "Processors", STAGE: "Built-in and sampler stages", PRODUCER: "Producers"}


def linked(reference: str) -> str:
    """A reference as a link, or as it is where it has no number."""
    link = link_of(reference)
    return f"[{reference}]({link})" if link else reference


def row(fault: PublicFault) -> str:
    """A row of a table."""
    clause = clauses()[fault.clause]
    shown = f"`{fault.line}`" if fault.line else f"none; {fault.unseen}"
    if fault.params:
        shown += f" with `{fault.params}` in the file"
    link = f"[{clause.id}]({clause.chapter}.md#{clause.id.lower()})"
    return f"| {fault.says} | {', '.join(map(linked, fault.seen))} | {link} | {shown} |"


def table(part: str) -> str:
    """The heading and the table of a part."""
    rows = [row(fault) for fault in RECORD if fault.part == part]
    return "\n".join(
        [f"## {TITLES[part]}", "", "| what went wrong | seen | clause | command |", "|---|---|---|---|", *rows]
    )


def to_markdown() -> str:
    """The block between the marks: how many there are, and a table for each part."""
    shown = sum(1 for fault in RECORD if fault.command)
    head = f"{len(RECORD)} faults; {shown} have a miniature, and a command that names the clause."
    return "\n\n".join([head, *map(table, PARTS)])


if __name__ == "__main__":
    write(Path(sys.argv[1]), "record", to_markdown())
