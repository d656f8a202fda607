"""The clauses, loaded from the Markdown chapters beside this file.

A clause is a third-level heading with its id, a line with level and bearers, one normative sentence, a reason, examples
in `history` blocks, the upstream place it rests on, and a verdict.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, resources

VERDICTS = ("proved", "exhaustive", "tested")
LEVELS = ("MUST NOT", "MUST", "SHOULD", "MAY")
CHAPTERS = (
    "batch",
    "producer",
    "processor",
    "pipeline",
    "allowed-token-ids",
    "bad-words",
    "min-tokens",
    "logit-bias",
    "repetition-penalty",
    "frequency-penalty",
    "presence-penalty",
    "temperature",
    "min-p",
    "top-k",
    "top-p",
    "validation",
    "loading",
    "numerics",
)

HEADING = re.compile(r"^### ([A-Z]+(?:-[A-Z]+)+): (.+)$", re.MULTILINE)
END = re.compile(r"^(?:<a id=|## )", re.MULTILINE)
LEVEL = re.compile(rf"^\*\*({'|'.join(LEVELS)})\*\* · (.+)$", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```history\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UPSTREAM = re.compile(r"^\*Upstream\.\* (.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
VERDICT = re.compile(rf"^\*Verdict\.\* ({'|'.join(VERDICTS)})\b", re.MULTILINE)
WHY = re.compile(r"^\*Why\.\* (.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Clause:
    """One citable sentence.

    `level` is MUST, MUST NOT, SHOULD or MAY; `bearers` are who owes it; `examples` are histories in the notation,
    `sessions` are Python sessions on the reference;
    `upstream` names file, symbol and blob id; `verdict` is the strongest word of VERDICTS; `chapter` is the Markdown
    file without its ending.
    """

    id: str
    title: str
    level: str
    bearers: tuple[str, ...]
    sentence: str
    why: str
    examples: tuple[str, ...]
    sessions: tuple[str, ...]
    upstream: str
    verdict: str
    chapter: str

    @property
    def is_must(self) -> bool:
        """Whether breaking it is a violation."""
        return self.level.startswith("MUST")

    @property
    def link(self) -> str:
        """A link that stays: the anchor is the id, and ids are never changed or reused."""
        return f"{site()}/{self.chapter}.md#{self.id.lower()}"


class SpecError(ValueError):
    """A chapter that is not written as this module reads it."""


@functools.cache
def clauses() -> dict[str, Clause]:
    """Every clause by id, in the order of the chapters; raises SpecError."""
    found: dict[str, Clause] = {}
    for chapter in CHAPTERS:
        for name, title, body in sections(chapter):
            clause = read_clause(name, title, body, chapter)
            if clause.id in found:
                raise SpecError(f"{clause.id} stands in {found[clause.id].chapter}.md and {chapter}.md")
            found[clause.id] = clause
    return found


def chapter_text(chapter: str) -> str:
    """The Markdown of a chapter."""
    return resources.files(__package__).joinpath(f"{chapter}.md").read_text(encoding="utf-8")


def sections(chapter: str) -> Iterator[tuple[str, str, str]]:
    """Of each clause of a chapter its id, its title and the Markdown below its heading."""
    text = chapter_text(chapter)
    headings = list(HEADING.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        below = text[heading.end() : following.start() if following else len(text)]
        yield heading[1], heading[2], END.split(below, maxsplit=1)[0]


def read_clause(name: str, title: str, body: str, chapter: str) -> Clause:
    """A clause from the text under its heading; raises SpecError when a part is missing."""
    place = f"{chapter}.md: {name}"
    level, why = required(LEVEL, body, place, "level"), required(WHY, body, place, "reason")
    upstream, verdict = required(UPSTREAM, body, place, "upstream place"), required(VERDICT, body, place, "verdict")
    sentence = " ".join(body[level.end() : why.start()].split())
    if not sentence:
        raise SpecError(f"{place} has no sentence")
    bearers = tuple(bearer.strip() for bearer in level[2].split(","))
    return Clause(
        name,
        title,
        level[1],
        bearers,
        sentence,
        " ".join(why[1].split()),
        tuple(BLOCK.findall(body)),
        tuple(CODE.findall(body)),
        " ".join(upstream[1].split()),
        verdict[1],
        chapter,
    )


def required(part: re.Pattern[str], body: str, place: str, called: str) -> re.Match[str]:
    """A part of the clause at a place; raises SpecError when it is missing."""
    if not (found := part.search(body)):
        raise SpecError(f"{place} has no {called}")
    return found


def cite(name: str) -> str:
    """The clause as Markdown, ready to paste into a review; raises KeyError when there is none."""
    clause = clauses()[name]
    return f"> **[{clause.id}]({clause.link})** ({clause.level}, {', '.join(clause.bearers)}): {clause.sentence}\n"


@functools.cache
def site() -> str:
    """Where the spec is published, from the package's own metadata."""
    urls = metadata.metadata("logitsproc").get_all("Project-URL") or []
    found = dict(str(url).split(", ", 1) for url in urls)
    return found["Specification"].rstrip("/")
