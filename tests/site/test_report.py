"""The report of a run in a browser: nothing fails, nothing is asked for, it is read on a phone, and accessible."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import DESK, PHONE, serious_barriers
from playwright.sync_api import Browser, Page
from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.spec import chapter_text, clauses

CONSUMERS = "logitsproc.conformance.miniatures.consumers"
TARGETS = (f"{CONSUMERS}:MovesFromSnapshot", f"{CONSUMERS}:AddsFirst", "logitsproc.optimized:MinPLogitsProcessor")
SITE = clauses()["UPD-SWAP"].link.partition("/batch.md")[0]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    result = CliRunner().invoke(app, ["check", *TARGETS, "--as", "min_p", "--report", str(file)])
    assert result.exit_code == 1
    return file


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Page]:
    """The report, which must end without an error and without having asked for anything."""
    context = browser.new_context(viewport=DESK, color_scheme=request.param, offline=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    page.goto(report.as_uri())
    yield page
    context.close()
    assert wrong == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_is_readable(page: Page, size: dict[str, int]) -> None:
    page.set_viewport_size(size)
    assert page.locator("h1").is_visible()
    assert page.evaluate("Math.max(document.body.scrollWidth, document.documentElement.scrollWidth) <= innerWidth")
    picture = page.locator("svg.history").first
    assert picture.is_visible()
    assert picture.locator(".wrong").count() == 1
    assert page.get_by_text("every move reads the batch as it was before the first").is_visible()


def test_it_has_no_serious_barrier(page: Page) -> None:
    assert serious_barriers(page) == []


def test_the_two_schemes_differ(browser: Browser, report: Path) -> None:
    seen = set()
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        opened = context.new_page()
        opened.goto(report.as_uri())
        seen.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(seen) == 2


def test_links_lead_to_clauses(page: Page) -> None:
    links = page.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links
    for link in links:
        chapter, _, anchor = link.removeprefix(f"{SITE}/").partition(".md#")
        assert f'<a id="{anchor}"></a>' in chapter_text(chapter)


def test_the_script_opens(page: Page) -> None:
    script = page.get_by_text("processor.update_state(BatchUpdate(").first
    assert not script.is_visible()
    page.get_by_text("As a script that runs on its own").first.click()
    assert script.is_visible()
