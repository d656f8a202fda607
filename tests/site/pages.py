"""What the tests of the site share: its folder, its pages as they are read, a server, and Chromium."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SITE = Path(__file__).parent.parent.parent / "build" / "site"
CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LINKS = ("href", "src", "action", "poster", "data")


class Reader(HTMLParser):
    """The ids and links of a page, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in LINKS if name in given]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@functools.cache
def read(path: Path) -> Reader:
    """A page as it is read, once."""
    return Reader(path)


class Silent(SimpleHTTPRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *_: object) -> None:
        pass


def serious_barriers(page: Page) -> list[str]:
    """What axe finds on a page that keeps somebody from reading it."""
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


@contextmanager
def served() -> Iterator[str]:
    """The address at which the site is served meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
