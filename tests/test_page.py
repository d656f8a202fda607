"""The report as one HTML page: all of its parts, nothing from elsewhere, whatever a subject is called or says."""

import json
import re
import shlex
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.conformance.formats import environment
from logitsproc.spec import clauses

WRONG = "logitsproc.conformance.miniatures.consumers:SwapsByAssignment"
VOID = {"meta", "link", "br", "hr", "img", "input"}

pytestmark = pytest.mark.usefixtures("short_tier")


class Reader(HTMLParser):
    """Reads a page, and fails where an element is not closed or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page_of(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    page = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["check", *arguments, "--report", str(page)])
    return result.exit_code, page.read_text(encoding="utf-8")


def test_a_page_has_verdict_scope_evidence_failure_environment_and_the_command(tmp_path: Path) -> None:
    right = "logitsproc.optimized:MinPLogitsProcessor"
    status, text = page_of(tmp_path, WRONG, right, "--as", "min_p", "--seed", "3")
    assert status == 1
    read = Reader(text)
    clause = clauses()["UPD-SWAP"]
    for part in (
        f"{WRONG}: violation of UPD-SWAP",
        f"{right}: conformant on every well-formed update",
        f"Breaks UPD-SWAP: {clause.title}",
        "but it came out as one of A's",
        "the state stays behind as well",
        clause.sentence,
        "To fix:",
        "swap 0<->1",
        "processor.update_state(BatchUpdate(",
        "seed 3",
        *(f"{name} {version}" for name, version in environment().items()),
    ):
        assert part in read.text
    links = {attributes.get("href") for tag, attributes in read.found if tag == "a"}
    assert {clause.link, clauses()["MINP-THRESHOLD"].link} <= links
    assert [tag for tag, _ in read.found].count("svg") == 1
    assert [tag for tag, _ in read.found].count("table") == 2


def test_the_command_repeats_the_run(tmp_path: Path) -> None:
    given = [WRONG, "--as", "min_p", "--seed", "3", "--clauses", "UPD-*", "--scope", "literal"]
    _, text = page_of(tmp_path, *given)
    command = re.search(r"<pre[^>]*>(logitsproc check .*?)</pre>", text)
    assert command is not None
    assert shlex.split(unescape(command[1])) == [
        "logitsproc",
        "check",
        *given,
        "--report",
        str(tmp_path / "report.html"),
    ]


def test_nothing_comes_from_elsewhere_and_nothing_runs(tmp_path: Path) -> None:
    _, text = page_of(tmp_path, WRONG, "--as", "min_p")
    read = Reader(text)
    assert not {"script", "iframe", "img", "object"} & {tag for tag, _ in read.found}
    assert all("src" not in attributes for _, attributes in read.found)
    assert [attributes["href"] for tag, attributes in read.found if tag == "link"] == ["data:,"]
    assert "@import" not in text
    assert "url(" not in text


def test_what_a_subject_says_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud.py").write_text(
        "class Loud:\n"
        "    def __init__(self, *_): pass\n"
        "    def is_argmax_invariant(self): return False\n"
        "    def update_state(self, update): raise ValueError('<script>alert(1)</script>')\n"
        "    def apply(self, logits): return logits\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    status, text = page_of(tmp_path, "loud:Loud", "--as", "min_p")
    assert status == 1
    assert "<script" not in text
    assert "<script>alert(1)</script>" in Reader(text).text


def test_unproven_says_what_is_missing(tmp_path: Path) -> None:
    status, text = page_of(tmp_path, "logitsproc.optimized:MinPLogitsProcessor", "--as", "min_p", "--clauses", "PROD-*")
    assert status == 3
    assert "unproven, no MUST was judged" in Reader(text).text


def test_the_json_of_the_same_run_says_the_same(tmp_path: Path) -> None:
    told = tmp_path / "report.json"
    _, text = page_of(tmp_path, WRONG, "--as", "min_p", "--json", str(told))
    failure = json.loads(told.read_text())[0]["failure"]
    read = " ".join(Reader(text).text.split())
    assert " ".join(failure["history"].split()) in read


def test_a_page_that_cannot_be_written_is_one_line() -> None:
    result = CliRunner().invoke(app, ["check", WRONG, "--report", "/no/such/folder/report.html"])
    assert (result.exit_code, result.stderr) == (2, "logitsproc: /no/such/folder/report.html cannot be written\n")
