"""The site in a browser: nothing fails, nothing is asked elsewhere, it is found, read on a phone, and accessible."""

from collections.abc import Iterator

import pytest
from pages import DESK, PHONE, serious_barriers, served
from playwright.sync_api import Browser, Page

TRIED = ("batch/", "clauses/UPD-SWAP/", "writing-a-processor/")
LOOKED_AT = ("", "clauses/", "notation/", "proofs/", "track-record/", "clauses/PROC-EXCEPTION/", *TRIED)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Page]:
    """A page that must end without an error and without having asked another server."""
    context = browser.new_context(viewport=DESK, color_scheme=request.param)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith((site, "data:")) else wrong.append(asked.url))
    page.on("response", lambda got: wrong.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    yield page
    context.close()
    assert wrong == []


@pytest.mark.parametrize("path", LOOKED_AT)
def test_a_page_is_readable_on_a_desk_and_on_a_phone(page: Page, site: str, path: str) -> None:
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        page.goto(site + path)
        assert page.locator("h1").is_visible()
        widths = page.evaluate("[document.body.scrollWidth, document.documentElement.scrollWidth, innerWidth]")
        assert max(widths[:2]) <= widths[2], widths


@pytest.mark.parametrize("path", TRIED)
def test_a_page_has_no_serious_barrier(page: Page, site: str, path: str) -> None:
    page.goto(site + path)
    assert serious_barriers(page) == []


@pytest.mark.parametrize(
    ("asked", "wanted"), [("UPD-SWAP", "clauses/UPD-SWAP/"), ("placeholder", "clauses/PROC-PLACEHOLDER/")]
)
def test_search_finds_a_clause(page: Page, site: str, asked: str, wanted: str) -> None:
    page.goto(site)
    page.locator("[data-md-component=search-query]").fill(asked)
    first = page.locator(".md-search-result__link").first
    first.wait_for()
    assert wanted in str(first.get_attribute("href"))


def test_an_anchor_leads_to_the_clause_and_its_line_to_its_page(page: Page, site: str) -> None:
    page.goto(f"{site}batch/#upd-order")
    heading = page.locator("#upd-order")
    assert heading.is_visible()
    assert heading.evaluate("node => node.getBoundingClientRect().top") < DESK["height"] / 2
    page.locator("a", has_text="UPD-ORDER on a page").click()
    assert page.url == f"{site}clauses/UPD-ORDER/"
    assert page.locator("svg.history").first.is_visible()


def test_the_palette_can_be_changed(page: Page, site: str) -> None:
    page.goto(site)
    seen = set()
    for _ in range(3):
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.locator("[data-md-component=palette] label:not([hidden])").click()
    assert len(seen) == 2


def test_a_miniature_opens(page: Page, site: str) -> None:
    page.goto(f"{site}clauses/UPD-SWAP/")
    code = page.locator("details .highlight").first
    assert not code.is_visible()
    page.locator("details summary").first.click()
    assert code.is_visible()
