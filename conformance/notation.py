"""The notation of histories: what the spec shows, what failures print, what `replay` reads.

spec/notation.md describes it. Parsing what was printed gives the same history.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from logitsproc.conformance.history import OPTIONS, Added, Arrival, Growth, History, Sight, Step, batches
from logitsproc.conformance.logits import PALETTES
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, IllFormed
from logitsproc.reference.numerics import f32

MAX_VOCAB = 1 << 20
MAX_ROW = 1 << 16

COMMENT = re.compile(r"(?:^|\s)#.*")
NAME = r"[A-Z][A-Za-z0-9_]*"
REQUEST = re.compile(rf"({NAME})\s*:(.*)")
DRAWING = re.compile(r"\[(.*)\]")
HEADER = re.compile(r"(vocab|logits|with|as)\b\s*(.*)")
SIGHT = re.compile(rf"logits\s+({NAME})\s*=\s*(\[[^\]]*\])(?:\s*=>\s*(\[.*\]))?")
GROWTH = re.compile(rf"({NAME})\s*\+=\s*\[(.*)\]")
SHRINKAGE = re.compile(rf"({NAME})\s*-=\s*(\d+)")
REMOVE = re.compile(r"remove\s+(\d+)")
ADD = re.compile(rf"add\s+({NAME})\s*@\s*(\d+)(\s+fresh)?")
MOVE = re.compile(r"move\s+(\d+)\s*->\s*(\d+)")
SWAPPED = re.compile(r"swap\s+(\d+)\s*<->\s*(\d+)")
SIZE = re.compile(r"size\s+(\d+)")
APPLIES = {"no apply": 0, "apply twice": 2}
ORDER = "an update lists removals first, then additions, then moves"


class NotationError(ValueError):
    """A line that is not in the notation; the message names the line and what it should be."""


def parse(text: str) -> History:
    """Reads a history; raises NotationError, which names the first line that cannot be read."""
    history = History()
    for number, raw in enumerate(text.splitlines(), 1):
        line = COMMENT.sub("", raw).strip()
        if not line:
            continue
        try:
            history = read_line(history, line)
        except NotationError as error:
            raise NotationError(f"line {number}: {error}") from None
    return declare_all(history)


def read_line(history: History, line: str) -> History:
    """The history with one more line."""
    if match := SIGHT.fullmatch(line):
        return with_sight(history, match)
    if match := HEADER.fullmatch(line):
        return with_header(history, match[1], match[2].strip())
    if match := REQUEST.fullmatch(line):
        if match[1] in history.requests:
            raise NotationError(f"{match[1]} is declared twice")
        return replace(history, requests=history.requests | {match[1]: read_arrival(match[2])})
    return replace(history, steps=(*history.steps, read_step(line)))


def with_header(history: History, word: str, rest: str) -> History:
    """The history with `vocab 8`, `logits dense 3`, `with shared, strided` or `as min_p`."""
    if word == "vocab":
        return replace(history, vocab=integer(rest, 1, MAX_VOCAB))
    if word == "as":
        return replace(history, kind=rest)
    if word == "with":
        options = frozenset(option.strip() for option in rest.split(","))
        if unknown := sorted(options - set(OPTIONS)):
            raise NotationError(f"no option {unknown[0]!r}; there are {', '.join(OPTIONS)}")
        return replace(history, options=options)
    palette, _, offset = rest.partition(" ")
    if "=" in rest:
        raise NotationError("a row is shown as: logits A = [0, 1] => [-inf, 1]")
    if palette not in PALETTES:
        raise NotationError(f"no logits {palette!r}; there are {', '.join(PALETTES)}")
    return replace(history, palette=palette, offset=integer(offset or "0", 0, MAX_ROW))


def integer(text: str, least: int, most: int) -> int:
    """The number that the text is, from least to most."""
    if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        raise NotationError(f"{text!r} is not a number from {least} to {most}")
    return int(text)


def read_arrival(text: str) -> Arrival:
    """`min_p=0.5, prompt=[1, 2], output=[3]`: SamplingParams fields, and the two lists."""
    fields = read_fields(text)
    prompt, output = fields.pop("prompt", [1, 2]), fields.pop("output", [])
    if prompt is not None and not is_ids(prompt):
        raise NotationError("prompt is a list of token ids, or None")
    if not is_ids(output):
        raise NotationError("output is a list of token ids")
    return Arrival(fields, None if prompt is None else tuple(prompt), tuple(output))


def read_fields(text: str) -> dict[str, Any]:
    """Keyword arguments with literal values."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        return {str(item.arg): ast.literal_eval(item.value) for item in call.keywords if item.arg or fail()}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotationError(f"{text.strip()!r} is not a list of field=value with literal values") from None


def fail() -> bool:
    """Refuses `**fields`."""
    raise ValueError


def is_ids(value: object) -> bool:
    """Whether the value is a list of token ids."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def read_step(line: str) -> Step:
    """`A += [5]; remove 2; add E@0; move 3->2; swap 0<->1 => [B, E, D]`, or `[A, B]`, which adds them all."""
    body, arrow, drawn = line.partition("=>")
    drawing = read_drawing(drawn.strip()) if arrow else None
    if DRAWING.fullmatch(body.strip()):
        names = read_drawing(body.strip())
        if None in names:
            raise NotationError("a drawing that starts a history has no holes")
        added = tuple(Added(row, str(name)) for row, name in enumerate(names))
        return Step(added=added, drawing=drawing)
    step = Step(drawing=drawing)
    for part in body.split(";"):
        step = with_part(step, part.strip())
    return step


def with_part(step: Step, part: str) -> Step:
    """The step with one more operation."""
    if match := GROWTH.fullmatch(part):
        return replace(step, growth=(*step.growth, read_growth(match)))
    if match := SHRINKAGE.fullmatch(part):
        growth = Growth(match[1], dropped=integer(match[2], 1, MAX_ROW))
        return replace(step, growth=(*step.growth, growth))
    if match := REMOVE.fullmatch(part):
        demand(not step.added and not step.moved)
        return replace(step, removed=(*step.removed, integer(match[1], 0, MAX_ROW)))
    if match := ADD.fullmatch(part):
        demand(not step.moved)
        added = Added(integer(match[2], 0, MAX_ROW), match[1], bool(match[3]))
        return replace(step, added=(*step.added, added))
    for pattern, direction in ((MOVE, UNIDIRECTIONAL), (SWAPPED, SWAP)):
        if match := pattern.fullmatch(part):
            move = (integer(match[1], 0, MAX_ROW), integer(match[2], 0, MAX_ROW), direction)
            return replace(step, moved=(*step.moved, move))
    if match := SIZE.fullmatch(part):
        return replace(step, size=integer(match[1], 0, MAX_ROW))
    if part in APPLIES:
        return replace(step, applies=APPLIES[part])
    if part == "quiet":
        return step
    raise NotationError(
        f"{part!r} is none of: A += [5], A -= 1, remove 2, add E@0, move 3->2, swap 0<->1, size 3, quiet, "
        "no apply, apply twice"
    )


def demand(in_order: bool) -> None:
    """Refuses an operation that the update would list earlier."""
    if not in_order:
        raise NotationError(ORDER)


def read_growth(match: re.Match[str]) -> Growth:
    """`A += [4, ?5]`: two tokens, the second of which is a placeholder until apply."""
    items = [item.strip() for item in match[2].split(",")]
    late = sum(item.startswith("?") for item in items)
    if any(item.startswith("?") for item in items[: len(items) - late]):
        raise NotationError("placeholders (?5) come last")
    return Growth(match[1], tuple(integer(item.removeprefix("?"), 0, MAX_VOCAB) for item in items), late)


def read_drawing(text: str) -> tuple[str | None, ...]:
    """`[A, x, C]`: the batch, with x for a hole."""
    match = DRAWING.fullmatch(text)
    if not match:
        raise NotationError(f"{text!r} is not a drawing such as [A, x, C]")
    names = [name.strip() for name in match[1].split(",")] if match[1].strip() else []
    if bad := [name for name in names if name != "x" and not re.fullmatch(NAME, name)]:
        raise NotationError(f"{bad[0]!r} is not a request's name: a capital letter first, or x for a hole")
    return tuple(None if name == "x" else name for name in names)


def with_sight(history: History, match: re.Match[str]) -> History:
    """The history whose last step shows a request this logits row."""
    if not history.steps:
        raise NotationError("logits of a request belong to the step above, and there is none")
    sight = Sight(match[1], read_logits(match[2]), None if match[3] is None else read_logits(match[3]))
    if sight.expected is not None and len(sight.logits) != len(sight.expected):
        raise NotationError("the row in and the row out have different lengths")
    last = history.steps[-1]
    return replace(history, steps=(*history.steps[:-1], replace(last, sights=(*last.sights, sight))))


def read_logits(text: str) -> tuple[float, ...]:
    """`[0, -inf, 2.5, nan]` as float32 values."""
    try:
        return tuple(f32(float(item)) for item in text.strip()[1:-1].split(","))
    except ValueError:
        raise NotationError(f"{text!r} is not a list of numbers, inf, -inf or nan") from None


def declare_all(history: History) -> History:
    """The history in which a request that is only named has default params."""
    named = [add.request for step in history.steps for add in step.added]
    missing = {name: Arrival() for name in dict.fromkeys(named) if name not in history.requests}
    requests = history.requests | missing
    for step in history.steps:
        for name in [growth.request for growth in step.growth] + [sight.request for sight in step.sights]:
            if name not in requests:
                raise NotationError(f"request {name} never arrives")
    return replace(history, requests=requests)


def format_history(history: History, remarks: Sequence[str] = ()) -> str:
    """The history as text, with the batch drawn after each step; with a remark to each step, if there are any."""
    lines = [f"vocab {history.vocab}", f"logits {history.palette} {history.offset}"]
    if history.kind:
        lines.append(f"as {history.kind}")
    if history.options:
        lines.append(f"with {', '.join(sorted(history.options))}")
    lines += [f"{name}: {format_arrival(arrival)}".rstrip() for name, arrival in history.requests.items()]
    lines += [""]
    for step, given, remark in zip_longest(history.steps, drawn(history), remarks):
        drawing = given if step.drawing is None else step.drawing
        line = format_step(step) + (f"  => {format_drawing(drawing)}" if drawing is not None else "")
        lines.append(f"{line}  # {remark}" if remark else line)
        lines += [format_sight(sight) for sight in step.sights]
    return "\n".join(lines)


def drawn(history: History) -> list[list[str | None] | None]:
    """The batch after each step, as far as the history is well-formed."""
    drawings: list[list[str | None] | None] = []
    try:
        for names in batches(history):
            drawings.append(names)  # noqa: PERF402 - what came before an IllFormed step stays drawn
    except IllFormed:
        pass
    return drawings + [None] * (len(history.steps) - len(drawings))


def format_arrival(arrival: Arrival) -> str:
    """The fields of a request that are not the default."""
    fields = dict(arrival.params)
    if arrival.prompt != Arrival().prompt:
        fields["prompt"] = None if arrival.prompt is None else list(arrival.prompt)
    if arrival.output:
        fields["output"] = list(arrival.output)
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def format_step(step: Step) -> str:
    """One step as a line, without its drawing."""
    parts = [part for growth in step.growth for part in format_growth(growth)]
    parts += [f"remove {row}" for row in step.removed]
    parts += [f"add {add.request}@{add.row}" + (" fresh" if add.fresh else "") for add in step.added]
    parts += [
        f"swap {source}<->{destination}" if direction == SWAP else f"move {source}->{destination}"
        for source, destination, direction in step.moved
    ]
    if step.size is not None:
        parts.append(f"size {step.size}")
    parts += [words for words, times in APPLIES.items() if times == step.applies]
    return "; ".join(parts or ["quiet"])


def format_growth(growth: Growth) -> list[str]:
    """`A -= 1` and `A += [4, ?5]`."""
    known = len(growth.tokens) - growth.late
    tokens = ", ".join(f"?{token}" if place >= known else str(token) for place, token in enumerate(growth.tokens))
    shrinkage = [f"{growth.request} -= {growth.dropped}"] if growth.dropped else []
    return shrinkage + ([f"{growth.request} += [{tokens}]"] if growth.tokens else [])


def format_drawing(names: list[str | None] | tuple[str | None, ...]) -> str:
    """`[A, x, C]`."""
    return f"[{', '.join(name or 'x' for name in names)}]"


def format_sight(sight: Sight) -> str:
    """`logits A = [0, 1] => [-inf, 1]`."""
    shown = f"logits {sight.request} = {format_logits(sight.logits)}"
    return shown if sight.expected is None else f"{shown} => {format_logits(sight.expected)}"


def format_logits(row: tuple[float, ...]) -> str:
    """A row as a list that `read_logits` reads."""
    return f"[{', '.join(format_number(value) for value in row)}]"


def format_number(value: float) -> str:
    """The shortest text that is this float32."""
    if not math.isfinite(value):
        return str(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if f32(float(text)) == value:
            return text
    return repr(value)
