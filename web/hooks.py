"""The spec as a site: what MkDocs asks while it builds `spec/*.md`, which stay as they are.

A chapter keeps its text; each of its clauses gets its anchor, its level as a mark, and a line that leads to its page. A
page for every clause, `clauses/UPD-ORDER/`, has beside the clause all that rests on it. Histories become pictures.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from logitsproc import spec
from logitsproc.conformance.closure import Definition, checks, miniatures, of, reference_lines
from logitsproc.conformance.drift import pinned, places
from logitsproc.conformance.notation import parse
from logitsproc.conformance.picture import picture
from logitsproc.conformance.track_record import RECORD, PublicFault, link_of

HERE = Path(__file__).parent
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>\n(#+ .+)$', re.MULTILINE)
OUTSIDE = re.compile(r"\]\(\.\./")
LOCAL = re.compile(r"\]\((?!https?:)([\w-]+\.md)")
DEVIATION = re.compile(r"^## (.+)\n+Breaks (.+?), seen in", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parts:
    """A clause as its chapter has it, part by part, as Markdown."""

    sentence: str
    why: str
    examples: str
    upstream: str
    verdict: str


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Histories are fences of their own, and what the navigation does not name stands at its end."""
    fence = {"name": "history", "class": "history", "format": history_fence}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    named = set(re.findall(r"[\w-]+\.md", json.dumps(config.nav)))
    more = [path.name for path in sorted(Path(config.docs_dir).glob("*.md")) if path.name not in named]
    config.nav += [{"More": more}] if more else []
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page for each clause, and one with all of them."""
    clauses = list(spec.clauses().values())
    written = {"index": index_page(clauses)}
    for before, clause, after in zip([None, *clauses], clauses, [*clauses[1:], None], strict=False):
        written[clause.id] = clause_page(clause, before, after)
    for name, text in written.items():
        files.append(File.generated(config, f"clauses/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page with anchors on its headings, and links out of `spec/` into the repository; a chapter with evidence."""
    chapter = page.file.src_uri.removesuffix(".md")
    if chapter in spec.CHAPTERS:
        for name, _, body in spec.sections(chapter):
            markdown = markdown.replace(body, in_chapter(spec.clauses()[name], body), 1)
    if not page.file.generated_by:
        markdown = OUTSIDE.sub(f"]({repository()}/", markdown)
    return ANCHOR.sub(r"\2 { #\1 }", markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The dialog for the search with a name, which the theme does not give it."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def in_chapter(clause: spec.Clause, body: str) -> str:
    """What stands below a clause's heading in its chapter."""
    parts = parts_of(clause)
    marked = body.replace(f"**{clause.level}** ·", f"{level(clause)} ·", 1)
    marked = marked.replace(parts.sentence, f"{parts.sentence}\n{{ .sentence }}", 1)
    page = f"clauses/{clause.id}.md"
    rests = [
        (len(of(clause.id, checks())), "check", "checks", "checks"),
        (len(of(clause.id, miniatures())), "miniature", "miniatures", "miniatures"),
        (len(public_faults(clause)), "public fault", "public faults", "public-faults"),
    ]
    told = [f"[{many} {one if many == 1 else more}]({page}#{anchor})" for many, one, more, anchor in rests if many]
    told = [f"[reference]({page}#reference)", *told]
    return f"{marked.rstrip()}\n\n[{clause.id} on a page]({page}): {', '.join(told)}\n{{ .evidence }}\n\n"


def level(clause: spec.Clause) -> str:
    """The level as a mark."""
    return f"**{clause.level}**{{ .level .{clause.level.split()[0].lower()} }}"


@functools.cache
def bodies() -> dict[str, str]:
    """The Markdown below the heading of every clause."""
    return {name: body for chapter in spec.CHAPTERS for name, _, body in spec.sections(chapter)}


def parts_of(clause: spec.Clause) -> Parts:
    """The parts of a clause, as they are written."""
    body, place = bodies()[clause.id], clause.id
    of_level, why = spec.required(spec.LEVEL, body, place, "level"), spec.required(spec.WHY, body, place, "reason")
    upstream = spec.required(spec.UPSTREAM, body, place, "upstream place")
    verdict = spec.required(spec.VERDICT, body, place, "verdict")
    return Parts(
        body[of_level.end() : why.start()].strip(),
        why[1],
        body[why.end() : upstream.start()].strip(),
        upstream[1],
        body[verdict.start(1) :].strip(),
    )


def public_faults(clause: spec.Clause) -> list[PublicFault]:
    """The faults of the track record that break a clause."""
    return [fault for fault in RECORD if fault.clause == clause.id]


def deviations(clause: spec.Clause) -> list[str]:
    """The headings of the deviations of vLLM from a clause."""
    found = DEVIATION.findall(spec.chapter_text("deviations"))
    return [title for title, broken in found if f"[{clause.id}]" in broken]


def clause_page(clause: spec.Clause, before: spec.Clause | None, after: spec.Clause | None) -> str:
    """The page of a clause as Markdown; before and after: its neighbours."""
    parts = parts_of(clause)
    text = (
        templates()
        .get_template("clause.md")
        .render(
            clause=clause,
            level=level(clause),
            parts=parts,
            chapter=chapter_title(clause.chapter),
            reference=of(clause.id, reference_lines()),
            checks=of(clause.id, checks()),
            miniatures=of(clause.id, miniatures()),
            faults=public_faults(clause),
            blobs={place.blob: place.file for place in places(clause) if place.blob},
            version=pinned().version,
            deviations=deviations(clause),
            citation=spec.cite(clause.id).strip(),
            before=before,
            after=after,
        )
    )
    return LOCAL.sub(r"](../\1", text)


def index_page(clauses: Sequence[spec.Clause]) -> str:
    """All clauses in one table a chapter, as Markdown."""
    chapters = {
        chapter_title(chapter): [clause for clause in clauses if clause.chapter == chapter] for chapter in spec.CHAPTERS
    }
    return templates().get_template("index.md").render(chapters=chapters, clauses=clauses, verdicts=spec.VERDICTS)


@functools.cache
def chapter_title(chapter: str) -> str:
    """What a chapter calls itself, before the colon."""
    return spec.chapter_text(chapter).splitlines()[0].removeprefix("# ").partition(":")[0]


@functools.cache
def templates() -> Environment:
    """Where the templates of pages are; Markdown is not escaped."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "json": json.dumps,
        "slug": functools.partial(slugify, separator="-"),
        "source": source_link,
        "seen": seen,
    }
    return environment


def source_link(found: Definition) -> str:
    """Where a definition stands in the repository."""
    last = found.line + len(found.source.splitlines()) - 1
    return f"{repository()}/{found.file}#L{found.line}-L{last}"


def repository() -> str:
    """Where the files of the repository are shown."""
    return spec.site().removesuffix("/spec")


def seen(fault: PublicFault) -> str:
    """Where a fault was seen, with a link where there is one."""
    links = [(reference, link_of(reference)) for reference in fault.seen]
    return ", ".join(f"[{reference}]({url})" if url else reference for reference, url in links)


class Notation(RegexLexer):
    """Colours for histories: header lines, requests, steps and rows of logits."""

    name = "history"
    tokens = {  # noqa: RUF012 - as Pygments wants it
        "root": [
            (r"#.*", Comment.Single),
            (r"^(\s*)(vocab|as|with|logits(?= dense| ties| mixed))\b", bygroups(Text, Keyword.Declaration)),
            (r"^([A-Z]\w*)(:)", bygroups(Name.Class, Punctuation)),
            (r"\b(add|remove|move|swap|size|quiet|fresh|logits|apply|no|twice)\b", Keyword),
            (r"=>|->|<->|\+=|-=|=|@", Operator),
            (r"\b[A-Z]\w*\b", Name.Class),
            (r"\b(None|True|False)\b", Keyword.Constant),
            (r"\?|-?\b(\d[\d.e+-]*|inf|nan)\b", Number),
            (r"'[^']*'|\"[^\"]*\"", String),
            (r"\s+|\w+|.", Text),
        ]
    }


def history_fence(source: str, *_: Any, **__: Any) -> str:
    """A history as text, and beside it as a picture."""
    text = highlight(source, Notation(), HtmlFormatter(cssclass="highlight", wrapcode=True))
    drawn = picture(parse(source))
    figure = f'<figure data-search-exclude tabindex="0">{drawn}</figure>'
    return f'<div class="played">{text}{figure if drawn else ""}</div>'
