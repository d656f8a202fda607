"""The badge: what it says and its colour, by the worst verdict of a report."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import anybadge
import pytest
from test_cli import call, refused

from logitsproc.conformance.suite import TIERS, Tier

REPORT = {"version": 1, "target": "a:B", "binding": "plain", "device": "cpu", "known": []}
CONFORMANT = REPORT | {"verdict": "conformant", "failure": None}
KNOWN = REPORT | {"verdict": "known failures", "failure": None}
STALE = REPORT | {"verdict": "stale known failures", "failure": None}
UNPROVEN = REPORT | {"verdict": "unproven", "failure": None}


def broken(clause: str) -> dict[str, Any]:
    """A report of a violation."""
    return REPORT | {"verdict": "violation", "failure": {"clause": clause, "history": "", "reproduced": True}}


def drawn(path: Path) -> tuple[str, str]:
    """What the badge says, and its colour."""
    svg = ElementTree.fromstring(path.read_text())
    space = "{http://www.w3.org/2000/svg}"
    _, label, _, text = (each.text for each in svg.iter(f"{space}text"))
    assert label == "logitsproc"
    colour = [each.attrib["fill"] for each in svg.iter(f"{space}path")][1]
    return str(text), colour


@pytest.mark.parametrize(
    ("reports", "text", "colour"),
    [
        ([CONFORMANT], "conformant", "GREEN"),
        ([KNOWN, CONFORMANT], "known failures", "ORANGE"),
        ([CONFORMANT, UNPROVEN, KNOWN], "unproven", "YELLOW"),
        ([UNPROVEN, STALE], "stale known failures", "RED"),
        ([broken("UPD-SWAP"), CONFORMANT], "violation of UPD-SWAP", "RED"),
        ([STALE, broken("UPD-SWAP"), broken("UPD-ADD"), broken("UPD-SWAP")], "violation of UPD-SWAP, UPD-ADD", "RED"),
    ],
)
def test_the_badge_is_of_the_worst_verdict(tmp_path: Path, reports: list[Any], text: str, colour: str) -> None:
    told, svg = tmp_path / "report.json", tmp_path / "badge.svg"
    told.write_text(json.dumps(reports))
    assert call("badge", str(told), str(svg)).exit_code == 0
    assert drawn(svg) == (text, anybadge.Color[colour].value)


def test_the_badge_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIERS, "quick", Tier(40, 2, 90))
    told, svg = str(tmp_path / "report.json"), tmp_path / "badge.svg"
    call("check", "logitsproc.conformance.miniatures.consumers:ForgetsReplacement", "--as", "min_p", "--json", told)
    call("badge", told, str(svg))
    assert drawn(svg)[0] == "violation of PROC-STATE-DEPARTED"


@pytest.mark.parametrize(
    ("content", "says"), [("{", "is not JSON"), ("[]", "is not a report"), ('[{"version": 2}]', "of version 1")]
)
def test_what_is_no_report_has_no_badge(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "report.json").write_text(content)
    assert says in refused("badge", str(tmp_path / "report.json"), str(tmp_path / "badge.svg"))
    assert not (tmp_path / "badge.svg").exists()


def test_a_file_that_is_not_there_or_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    says = refused("badge", str(tmp_path / "no.json"), str(tmp_path / "badge.svg"))
    assert says.endswith("no.json cannot be read: No such file or directory")
    (tmp_path / "report.json").write_text(json.dumps([CONFORMANT]))
    assert refused("badge", str(tmp_path / "report.json"), str(tmp_path)) == f"{tmp_path} cannot be written"
