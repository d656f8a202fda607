"""A history as a picture: rows down, steps across, each request a bar, moves as arrows, and what is wrong marked."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rich.text import Text

from logitsproc.conformance.history import History
from logitsproc.conformance.notation import format_arrival, format_step
from logitsproc.conformance.timeline import ADD, Event, Moment, at, timeline

COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d98cff", "#ff9e80", "#b0bec5")
"""Of requests, in the order of arrival; also for who does not see all colours, and dark text is read on each."""
INK = "#111111"
SHOWN_STEPS, SHOWN_ROWS = 24, 24
"""A picture has the last steps, and the rows around the one that is wrong."""
LEFT, TOP, ROW, CELL, LANE, EDGE = 64, 34, 34, 64, 26, 18
"""Pixels: where the first step and the first row begin, how high a row and how wide a step is, how wide an operation of
an update, and what is around them."""
BAR, THIN = 24, 10
LETTER, LEGEND = 8, 100
"""Pixels of a letter, and the letters of a line of the legend; what a request asks for may be a list of any length."""
FAIL = "!"
Mark = tuple[int, int | None]
"""The step and the row that are wrong."""


class Window(NamedTuple):
    """What a picture shows: the steps, and the rows from the first on."""

    moments: Sequence[Moment]
    rows: range


def window(history: History, mark: Mark | None) -> Window:
    """The last steps, and the rows around the one that is wrong."""
    moments = timeline(history)[-SHOWN_STEPS:]
    states = [names for moment in moments for names in moment.states]
    most = max(map(len, states), default=0)
    row = 0 if mark is None or mark[1] is None else mark[1]
    first = max(0, min(row - SHOWN_ROWS // 2, most - SHOWN_ROWS))
    return Window(moments, range(first, min(most, first + SHOWN_ROWS)))


def colour(history: History, name: str) -> str:
    """The colour of a request."""
    return COLOURS[list(history.requests).index(name) % len(COLOURS)]


def in_text(history: History, mark: Mark | None = None) -> Text:
    """The picture in characters, in colours where the terminal has them.

    `A` stays, `+A` is added, `A<-3` comes from row 3, `.` is a hole; what is wrong stands between exclamation marks.
    """
    moments, rows = window(history, mark)
    lines = [["", *(f"step {moment.index}" for moment in moments)]]
    lines += [[f"row {row}", *(cell(moment, row) for moment in moments)] for row in rows]
    wrong = {(moment.index, row) for moment in moments for row in rows if (moment.index, row) == mark}
    widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    text = Text()
    for number, line in enumerate(lines):
        for place, (words, width) in enumerate(zip(line, widths, strict=True)):
            key = (moments[place - 1].index, rows[number - 1]) if number and place else None
            shown = f"{FAIL}{words or '-'}{FAIL}" if key in wrong else words
            name = at(moments[place - 1].names, rows[number - 1]) if key else None
            text.append(
                f"{shown:<{width}}" if name is None else f"{shown:^{width}}", style_of(history, name, key in wrong)
            )
            text.append(" ")
        text.rstrip()
        text.append("\n")
    text.rstrip()
    return text


def style_of(history: History, name: str | None, is_wrong: bool) -> str:
    """How a cell of a request looks."""
    ground = "" if name is None else f"{INK} on {colour(history, name)}"
    return f"bold underline {ground}" if is_wrong else ground


def cell(moment: Moment, row: int) -> str:
    """What a cell says: who stands there, and how they came."""
    if row >= len(moment.names):
        return ""
    name = moment.names[row]
    if name is None:
        return "."
    start, is_new = row, False
    for event in reversed(moment.events):
        start = next((begin for who, begin, end in event.moves if who == name and end == start), start)
        is_new = is_new or (event.kind == ADD and event.after[event.row] == name and event.row == start)
    came = "" if start == row else f"<-{start}"
    return f"+{name}{came}" if is_new else f"{name}{came}"


def picture(history: History, mark: Mark | None = None) -> str:
    """The picture as an SVG element that needs nothing else; its text has the colour of the text around it.

    Between two steps stand the operations of the update, in their order, from left to right.
    """
    moments, rows = window(history, mark)
    if not moments:
        return ""
    columns = [CELL + LANE * (len(moment.events) + 1) for moment in moments]
    width = LEFT + sum(columns) + EDGE
    legend = {name: legend_text(history, name) for name in named(moments)}
    overall = max([width, *(30 + LETTER * len(text) + EDGE for text in legend.values())])
    height = TOP + ROW * max(len(rows), 1) + EDGE + 20 * len(legend)
    parts = [f'<text x="8" y="{middle(rows, row) + 4}" class="label">row {row}</text>' for row in rows]
    parts += [f'<path class="line" d="M{LEFT} {middle(rows, row)}H{width - EDGE}"/>' for row in rows]
    x = LEFT
    for moment, wide in zip(moments, columns, strict=True):
        parts += lanes(history, moment, rows, x)
        parts += cells(history, moment, rows, x + wide - CELL, mark)
        x += wide
    bottom = TOP + ROW * max(len(rows), 1) + EDGE
    parts += [
        part
        for place, (name, text) in enumerate(legend.items())
        for part in entry(history, name, text, bottom + 20 * place)
    ]
    label = escape("; ".join(f"step {moment.index}: {format_step(moment.step)}" for moment in moments), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="history" role="img" aria-label="{label}" '
        f'viewBox="0 0 {overall} {height}" width="{overall}" height="{height}">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )


STYLE = (
    ".history{font:13px ui-monospace,Menlo,Consolas,monospace;max-width:none}"
    ".history .label{fill:currentColor}.history .name{fill:#111;text-anchor:middle;font-weight:600}"
    ".history .line{stroke:currentColor;opacity:.18;fill:none}"
    ".history .gone{stroke:currentColor;stroke-width:2;fill:none}"
    ".history .wrong{fill:none;stroke:#d32f2f;stroke-width:3}.history .flag{fill:#d32f2f}"
    ".history .cross{stroke:#fff;stroke-width:2;fill:none}"
)


def named(moments: Sequence[Moment]) -> list[str]:
    """The requests that stand in the batch at some time, in the order in which they come."""
    states = [names for moment in moments for names in moment.states]
    return list(dict.fromkeys(name for names in states for name in names if name is not None))


def middle(rows: range, row: int) -> int:
    """How far down the middle of a row is."""
    return TOP + ROW * (row - rows.start) + ROW // 2


def lanes(history: History, moment: Moment, rows: range, x: int) -> list[str]:
    """The operations between two steps: thin bars for who stands where, and what each operation does."""
    states = [moment.before, *(event.after for event in moment.events)]
    parts = [
        bar(history, name, x + LANE * place, middle(rows, row), LANE, THIN)
        for place, names in enumerate(states)
        for row, name in enumerate(names)
        if name is not None and row in rows
    ]
    for place, event in enumerate(moment.events):
        parts += operation(history, event, rows, x + LANE * (place + 1))
    return parts


def bar(history: History, name: str, x: int, y: int, width: int, height: int) -> str:
    """A part of a request's bar; y is its middle."""
    return f'<rect x="{x}" y="{y - height // 2}" width="{width}" height="{height}" fill="{colour(history, name)}"/>'


def operation(history: History, event: Event, rows: range, x: int) -> list[str]:
    """An arrow for each request that moves, and a cross for one that is gone."""
    parts = []
    shift = -4 if len(event.moves) > 1 else 0
    for name, start, end in event.moves:
        if start in rows and end in rows:
            parts.append(arrow(x + shift, middle(rows, start), middle(rows, end), colour(history, name)))
        shift = -shift
    if event.gone is not None and (row := event.before.index(event.gone)) in rows:
        y = middle(rows, row)
        parts.append(
            f'<path class="gone" d="M{x - 4} {y - 4}l8 8m0 -8l-8 8"><title>{escape(event.gone)} is gone</title></path>'
        )
    return parts


def arrow(x: int, start: int, end: int, fill: str) -> str:
    """An arrow down or up, outlined so that it is seen on any ground."""
    tip = 7 if end > start else -7
    shaft = f"M{x} {start}V{end - tip}"
    head = f"M{x - 6} {end - tip}H{x + 6}L{x} {end}Z"
    return (
        f'<path d="{shaft}" stroke="{INK}" stroke-width="6" fill="none"/>'
        f'<path d="{head}" fill="{fill}" stroke="{INK}"/>'
        f'<path d="{shaft}" stroke="{fill}" stroke-width="4" fill="none"/>'
    )


def cells(history: History, moment: Moment, rows: range, x: int, mark: Mark | None) -> list[str]:
    """The step itself: a wide bar for each request, with its name, and the mark."""
    parts = [f'<text x="{x + CELL // 2}" y="20" class="label" text-anchor="middle">step {moment.index}</text>']
    for row in rows:
        y, name = middle(rows, row), at(moment.names, row)
        if name is not None:
            parts.append(bar(history, name, x, y, CELL, BAR))
            parts.append(f'<text x="{x + CELL // 2}" y="{y + 5}" class="name">{escape(name)}</text>')
        if (moment.index, row) == mark:
            parts += wrong(x, y)
    return parts


def wrong(x: int, y: int) -> list[str]:
    """A frame around a cell, and a flag with a cross."""
    right = x + CELL - 16
    return [
        f'<rect class="wrong" x="{x + 1}" y="{y - BAR // 2 - 2}" width="{CELL - 2}" height="{BAR + 4}"/>',
        f'<rect class="flag" x="{right}" y="{y - BAR // 2 - 2}" width="15" height="15"/>',
        f'<path class="cross" d="M{right + 4} {y - BAR // 2 + 2}l7 7m0 -7l-7 7"/>',
    ]


def legend_text(history: History, name: str) -> str:
    """A request and what it asks for, in a line."""
    text = f"{name}: {format_arrival(history.requests[name]) or 'asks for nothing'}"
    return text if len(text) <= LEGEND else f"{text[: LEGEND - 3]}..."


def entry(history: History, name: str, text: str, y: int) -> list[str]:
    """A line of the legend."""
    return [
        f'<rect x="8" y="{y}" width="14" height="14" fill="{colour(history, name)}"/>',
        f'<text x="30" y="{y + 12}" class="label">{escape(text)}</text>',
    ]
