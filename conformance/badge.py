"""A badge of the verdict, from reports in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anybadge import Badge

from logitsproc.conformance.suite import CONFORMANT, KNOWN, STALE, UNPROVEN, VERDICTS, VIOLATION

LABEL = "logitsproc"
COLOURS = {VIOLATION: "red", STALE: "red", UNPROVEN: "yellow", KNOWN: "orange", CONFORMANT: "green"}


def badge(reports: Sequence[dict[str, Any]]) -> str:
    """The SVG of the worst verdict among the reports, of which there is one at least."""
    worst = min((told["verdict"] for told in reports), key=VERDICTS.index)
    broken = dict.fromkeys(told["failure"]["clause"] for told in reports if told["failure"] is not None)
    text = f"violation of {', '.join(broken)}" if broken else worst
    return str(Badge(LABEL, text, default_color=COLOURS[worst]).badge_svg_text)
