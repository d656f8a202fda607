"""The site as files: every clause has a page with all of its parts, every anchor and every link leads somewhere."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from pages import SITE, read

from logitsproc.conformance.closure import checks, miniatures, of, reference_lines
from logitsproc.conformance.drift import places
from logitsproc.conformance.track_record import RECORD, link_of
from logitsproc.spec import BLOCK, CHAPTERS, Clause, chapter_text, clauses

PAGES = sorted(SITE.rglob("index.html"))
SPEC = Path(__file__).parent.parent.parent / "spec"


def page(name: str) -> Path:
    return SITE / name / "index.html"


def plain(markdown: str) -> str:
    """Markdown as it is read: without marks of code, emphasis and links."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", markdown)
    return " ".join(re.sub(r"[`*]|\\(?=[\W_])", "", text).split())


def drawn(path: Path) -> int:
    return path.read_text(encoding="utf-8").count('<svg xmlns="http://www.w3.org/2000/svg" class="history"')


def test_every_page_of_the_spec_is_there() -> None:
    for path in SPEC.glob("*.md"):
        assert page("" if path.stem == "README" else path.stem).is_file()


@pytest.mark.parametrize("clause", clauses().values(), ids=lambda clause: clause.id)
def test_a_clause_has_a_page_with_all_that_rests_on_it(clause: Clause) -> None:
    path = page(f"clauses/{clause.id}")
    text, source = read(path).text, path.read_text(encoding="utf-8")
    for part in (clause.title, clause.level, *clause.bearers, clause.sentence, clause.why, clause.verdict):
        assert plain(part) in plain(text), part
    assert drawn(path) == len(clause.examples)
    for example in (*clause.examples, *clause.sessions):
        assert plain(example) in plain(text)
    for found in of(clause.id, reference_lines()):
        assert plain(found.source) in plain(text)
    for found in of(clause.id, [*checks(), *miniatures(), *reference_lines()]):
        assert f"{found.file}, {found.name}" in text
        assert f"/{found.file}#L{found.line}-L" in source
    for found in of(clause.id, miniatures()):
        assert plain(found.says) in plain(text)
    for place in places(clause):
        assert all(part in text for part in (place.file, place.symbol, place.blob) if part)


@pytest.mark.parametrize("fault", RECORD, ids=lambda fault: fault.miniature or fault.says)
def test_a_public_fault_stands_at_its_clause(fault: object) -> None:
    path = page(f"clauses/{fault.clause}")
    text, links = read(path).text, read(path).links
    assert fault.says in text
    assert fault.line in text
    assert {link for reference in fault.seen if (link := link_of(reference))} <= set(links)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_its_text_the_anchors_and_a_picture_of_each_history(chapter: str) -> None:
    path = page(chapter)
    for clause in [clause for clause in clauses().values() if clause.chapter == chapter]:
        assert read(path).ids.count(clause.id.lower()) == 1
        assert f"../clauses/{clause.id}/" in read(path).links
        assert plain(clause.sentence) in plain(read(path).text)
    assert drawn(path) == len(BLOCK.findall(chapter_text(chapter)))


def test_notation_and_deviations_are_drawn_too() -> None:
    for chapter in ("notation", "deviations"):
        assert drawn(page(chapter)) == len(BLOCK.findall(chapter_text(chapter))) > 0


@pytest.mark.parametrize("path", [*PAGES, SITE / "404.html"], ids=lambda path: str(path.relative_to(SITE)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in read(path).links:
        target, fragment = urldefrag(unquote(html.unescape(link)))
        if re.match(r"(?:https?|data|javascript):", target):
            continue
        found = SITE / target.lstrip("/") if target.startswith("/") else path.parent / target
        found = (found if target else path).resolve()
        found = found / "index.html" if found.is_dir() else found
        assert found.is_file(), link
        if fragment and found.suffix == ".html":
            assert fragment in read(found).ids, link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(SITE)))
def test_no_anchor_is_there_twice_and_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    ids = read(path).ids
    assert len(ids) == len(set(ids))
    text = path.read_text(encoding="utf-8")
    loaded = re.findall(r"<(?:script|img|iframe|object|source)[^>]+(?:src|data)=\"([^\"]+)\"", text)
    loaded += re.findall(r"<link[^>]+rel=\"(?:stylesheet|icon|preconnect|preload)\"[^>]*>", text)
    assert loaded
    assert not [each for each in loaded if "//" in each]
