"""Recordings of an engine as JSON lines: written line by line, and read back as a history.

spec/recording.md describes the format.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.history import WARM_UP, Added, Arrival, Growth, History, Sight, Step, batches
from logitsproc.conformance.interface import SamplingParams
from logitsproc.conformance.notation import MAX_ROW, MAX_VOCAB, NAME
from logitsproc.conformance.player import PLACEHOLDER
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL, IllFormed

FORMAT = "logitsproc"
VERSION = 1
MAX_BYTES = 200_000_000
BLANKS = b"\xef\xbb\xbf \t\r\n"
FLOATS = "float32"
LITTLE_ENDIAN = "<f4"
FIELDS = tuple(item.name for item in fields(SamplingParams) if item.name != "structured_outputs")
"""The params that are recorded; the one left out is an object of the engine's own."""
DEEPEST = 32
SHOWN = 40

Logits = list[list[float]]
Cell = list[int]
"""One output id, in a list of its own, so that a placeholder is filled in wherever it stands."""


@dataclass(frozen=True)
class Recording:
    """What a recording tells: a history, which engine it is of, and whether its last line was cut off."""

    history: History
    host: str
    cut: bool


class Malformed(ValueError):
    """A line that is not in the format; the message says what is wrong with it."""


def to_line(entry: dict[str, Any]) -> str:
    """One line of a recording."""
    return json.dumps(entry, default=plain, allow_nan=False) + "\n"


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON has it: numbers of any type as its numbers, sets as sorted lists, all else as its repr."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral) and abs(int(value)) < 1 << 63:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and math.isfinite(value):
        return float(value)
    if isinstance(value, dict | list | tuple | set | frozenset) and depth < DEEPEST:
        return plain_items(value, depth + 1)
    return described(value)


def plain_items(value: Any, depth: int) -> Any:
    """The mapping, sequence or set with items that JSON has."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else described(key): plain(item, depth) for key, item in value.items()}
    items = [plain(item, depth) for item in value]
    return sorted(items, key=lambda item: (str(type(item)), item)) if isinstance(value, set | frozenset) else items


def described(value: Any) -> str:
    """The repr, or the type's name where there is none."""
    try:
        return repr(value)
    except Exception:
        return type(value).__name__


def logits_entry(rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    """float32 [rows, vocab] as an apply line holds it."""
    data = base64.b64encode(np.ascontiguousarray(rows, LITTLE_ENDIAN).tobytes()).decode()
    return {"dtype": FLOATS, "shape": list(rows.shape), "base64": data}


def is_recording(data: bytes) -> bool:
    """Whether the text begins as a recording does, and not as a typed history."""
    return data.lstrip(BLANKS).startswith(b"{")


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """What is in the file, once; raises CannotRun when it cannot be read, or is too much."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise CannotRun(f"{path} is larger than {most} bytes")
    return data


def read_recording(path: Path) -> Recording:
    """The recording in the file; raises CannotRun with the line that is wrong."""
    return to_recording(str(path), read_bytes(path))


def to_recording(name: str, data: bytes) -> Recording:
    """The recording that the bytes are; raises CannotRun with the line that is wrong."""
    return read_lines(name, io.BytesIO(data.lstrip(BLANKS)))


def read_lines(path: str, lines: Iterator[bytes]) -> Recording:
    """The recording that the lines are; a last line without its end is left out."""
    try:
        reading = begun(next(lines, b""))
    except Malformed as error:
        raise CannotRun(f"{path} is not a recording: line 1 {error}") from None
    cut = False
    for number, line in enumerate(lines, 2):
        cut = not line.endswith(b"\n")
        try:
            if not cut:
                read_line(reading, line)
        except Malformed as error:
            raise CannotRun(f"{path}, line {number}: {error}") from None
    return Recording(finished(reading), reading.host, cut)


@dataclass
class Outputs:
    """The output ids of one request. The steps so far tell of `told` of them; the first `kept` of these still stand."""

    cells: list[Cell] = field(default_factory=list)
    told: int = 0
    kept: int = 0

    def change(self, kept: int, ids: Sequence[int]) -> None:
        """So many ids stay and these come after them; those that stand where a placeholder stood fill it in."""
        same = 0
        for cell, token in zip(self.cells[kept:], ids, strict=False):
            if cell[0] not in (PLACEHOLDER, token):
                break
            cell[0] = token
            same += 1
        self.cells[kept + same :] = [[token] for token in ids[same:]]
        self.kept = min(self.kept, kept + same)

    def grown(self, name: str) -> Grown | None:
        """What the next step tells of the request, or None if nothing has changed."""
        cells, dropped = self.cells[self.kept :], self.told - self.kept
        self.told = self.kept = len(self.cells)
        if not cells and not dropped:
            return None
        known = max((place for place, cell in enumerate(cells, 1) if cell[0] != PLACEHOLDER), default=0)
        return Grown(name, cells, len(cells) - known, dropped)


@dataclass
class Grown:
    """A Growth whose placeholders may still be filled in."""

    request: str
    cells: list[Cell]
    late: int
    dropped: int

    def growth(self) -> Growth:
        """The growth; an id that nobody ever told is 0."""
        return Growth(self.request, tuple(max(cell[0], 0) for cell in self.cells), self.late, self.dropped)


@dataclass
class Draft:
    """A step whose lines are still being read: what its own line says, its apply lines, and their first logits."""

    step: Step
    grown: list[Grown]
    applies: int = 0
    logits: Logits | None = None

    def finished(self) -> Step:
        """The step, without its logits."""
        return replace(self.step, growth=tuple(grown.growth() for grown in self.grown), applies=self.applies)


@dataclass
class Reading:
    """A recording as far as it has been read; `touched` are the requests of which apply lines spoke since a step."""

    host: str
    vocab: int
    requests: dict[str, Arrival] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    warm: bool = False


def begun(line: bytes) -> Reading:
    """The reading that the header begins; raises Malformed."""
    if not line.endswith(b"\n"):
        raise Malformed("is cut off" if line else "is missing")
    entry = parsed(line)
    if entry.get("recording") != FORMAT:
        raise Malformed('is not {"recording": "logitsproc", ...}')
    if type(version := entry.get("version")) is int and version > VERSION:
        raise Malformed(f"says version {shown(version)} of the format, and this logitsproc reads version {VERSION}")
    host = demand(entry, "host", "a name", lambda value: isinstance(value, str) and value.isprintable())
    number(entry, "version", VERSION, VERSION)
    refuse_others(entry, ("recording", "version", "host", "vocab"))
    return Reading(host, number(entry, "vocab", 1, MAX_VOCAB))


def read_line(reading: Reading, line: bytes) -> None:
    """Takes in a request, a step or an apply; raises Malformed."""
    entry = parsed(line)
    for key, read in READERS.items():
        if key in entry:
            read(reading, entry)
            return
    raise Malformed("a second header" if "recording" in entry else f"none of {', '.join(READERS)}")


def read_request(reading: Reading, entry: dict[str, Any]) -> None:
    """Takes in `{"request": "A", "params": {...}, "prompt": [...]}`."""
    refuse_others(entry, ("request", "params", "prompt"))
    name = demand(entry, "request", "a name: a capital letter first", is_name)
    if name in reading.requests:
        raise Malformed(f"{name} is declared twice")
    says = f"a list of token ids of the vocabulary's {reading.vocab}, or null"
    demand(entry, "prompt", says, lambda ids: ids is None or are_ids(ids, 0, reading.vocab))
    prompt = entry["prompt"]
    params = read_params(demand(entry, "params", "an object", lambda value: isinstance(value, dict)))
    reading.requests[name] = Arrival(params, None if prompt is None else tuple(prompt))
    reading.outputs[name] = Outputs()


def read_params(given: dict[str, Any]) -> dict[str, Any]:
    """The params, with the keys of logit_bias, which JSON makes strings, as token ids."""
    for name, value in given.items():
        if name not in FIELDS:
            raise Malformed(f"no such SamplingParams field: {shown(name)}")
        if name in TYPES and not isinstance(value, TYPES[name]):
            raise Malformed(f"{name} cannot be {shown(value)}")
        if depth_of(value) > DEEPEST:
            raise Malformed(f"{name} is nested deeper than {DEEPEST}")
    if given.get("logit_bias") is None:
        return given
    try:
        return given | {"logit_bias": {int(token): bias for token, bias in given["logit_bias"].items()}}
    except (AttributeError, ValueError):
        raise Malformed("logit_bias is not an object of token id: number") from None


def depth_of(value: Any) -> int:
    """How deep lists and objects are nested in the value; no further than one beyond what is allowed."""
    level, depth = [value], 0
    while depth <= DEEPEST and (level := [item for value in level for item in items_of(value)]):
        depth += 1
    return depth


def items_of(value: Any) -> Sequence[Any]:
    """What a list or an object holds."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def read_step(reading: Reading, entry: dict[str, Any]) -> None:
    """Takes in `{"step": 0, "outputs": {...}, "update": {...} or null, "rows": [...]}`."""
    refuse_others(entry, ("step", "outputs", "update", "rows"))
    if number(entry, "step", 0, 1 << 62) != len(reading.drafts):
        raise Malformed(f"step {shown(entry['step'])}, where step {len(reading.drafts)} comes next")
    changed = read_outputs(reading, entry)
    names = dict.fromkeys([*reading.touched, *changed])
    reading.touched.clear()
    grown = [found for name in names if (found := reading.outputs[name].grown(name))]
    step = read_update(reading, demand(entry, "update", "an object, or null", is_object_or_null))
    if "rows" in entry:
        rows = demand(entry, "rows", "a list of requests", lambda names: are_names(names, reading))
        step = replace(step, drawing=tuple(rows))
    reading.drafts.append(Draft(step, grown))


def read_outputs(reading: Reading, entry: dict[str, Any]) -> list[str]:
    """Takes in `{"A": [kept, [ids]]}`; the requests of which it speaks."""
    changes = demand(entry, "outputs", "an object", lambda value: isinstance(value, dict))
    for name, change in changes.items():
        outputs = known(reading, name)
        if not is_list_of(change, 2) or not are_ids(change[1], PLACEHOLDER, reading.vocab):
            raise Malformed(f"outputs of {name}: not [kept, [ids]] with ids of the vocabulary's {reading.vocab}")
        if type(change[0]) is not int or not 0 <= change[0] <= len(outputs.cells):
            raise Malformed(f"outputs of {name}: {shown(change[0])} ids stay, of {len(outputs.cells)}")
        outputs.change(*change)
    return list(changes)


def read_update(reading: Reading, update: dict[str, Any] | None) -> Step:
    """The step with the rows of an update."""
    if update is None:
        return Step()
    refuse_others(update, ("size", "removed", "added", "moved"))
    removed, added, moved = (
        demand(update, key, "a list", lambda value: isinstance(value, list)) for key in ("removed", "added", "moved")
    )
    return Step(
        removed=tuple(row_of(row) for row in removed),
        added=tuple(read_added(reading, item) for item in added),
        moved=tuple(read_moved(item) for item in moved),
        size=number(update, "size", 0, MAX_ROW),
    )


def read_added(reading: Reading, item: Any) -> Added:
    """`[0, "A"]`, or `[0, "A", "fresh"]`."""
    if not (is_list_of(item, 2) or (is_list_of(item, 3) and item[2] == "fresh")):
        raise Malformed(f'added {shown(item)}, which is not [row, request] or [row, request, "fresh"]')
    known(reading, item[1])
    return Added(row_of(item[0]), item[1], len(item) == 3)


def read_moved(item: Any) -> tuple[int, int, str]:
    """`[3, 2, "UNIDIRECTIONAL"]` or `[0, 1, "SWAP"]`."""
    if not is_list_of(item, 3) or item[2] not in (UNIDIRECTIONAL, SWAP):
        raise Malformed(f"moved {shown(item)}, which is not [row, row, {UNIDIRECTIONAL!r} or {SWAP!r}]")
    return row_of(item[0]), row_of(item[1]), item[2]


def read_apply(reading: Reading, entry: dict[str, Any]) -> None:
    """Takes in `{"apply": 0, "rows": 2, "outputs": {...}, "logits": {...}}`; null in place of 0 is a warm-up."""
    refuse_others(entry, ("apply", "rows", "outputs", "logits"))
    last = len(reading.drafts) - 1 if reading.drafts else None
    if entry["apply"] != last or isinstance(entry["apply"], bool | float):
        raise Malformed(f"apply {shown(entry['apply'])} follows {'no step' if last is None else f'step {last}'}")
    rows = number(entry, "rows", 0, MAX_ROW)
    reading.touched += read_outputs(reading, entry)
    logits = read_logits(reading, entry["logits"], rows) if "logits" in entry else None
    if last is None:
        reading.warm = True
        return
    draft = reading.drafts[-1]
    draft.applies += 1
    draft.logits = draft.logits or logits


def read_logits(reading: Reading, entry: Any, rows: int) -> Logits:
    """The logits of an apply line: float32 [rows, vocab]."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "base64"} or entry["dtype"] != FLOATS:
        raise Malformed(f"logits are not an object of dtype {FLOATS}, shape and base64")
    if entry["shape"] != [rows, reading.vocab]:
        raise Malformed(f"logits of shape {shown(entry['shape'])}, not [{rows}, {reading.vocab}]")
    try:
        data = base64.b64decode(entry["base64"], validate=True)
        values: Logits = np.frombuffer(data, LITTLE_ENDIAN).reshape(rows, reading.vocab).tolist()
    except (TypeError, ValueError, binascii.Error):
        raise Malformed(f"logits are not the base64 of {rows} rows of {reading.vocab} numbers") from None
    return values


READERS: dict[str, Callable[[Reading, dict[str, Any]], None]] = {
    "request": read_request,
    "step": read_step,
    "apply": read_apply,
}
TYPES: dict[str, Any] = {
    "n": int,
    "seed": int | None,
    "stop": list | None,
    "ignore_eos": bool,
    "max_tokens": int | None,
    "logprobs": int | None,
    "extra_args": dict | None,
    "bad_words": list | None,
    "thinking_token_budget": int | None,
    "eos_token_id": int | None,
}
"""The types of the params that have no domain."""


def finished(reading: Reading) -> History:
    """The history of what was read; logits are shown where the list law says whose they are."""
    options = frozenset({WARM_UP}) if reading.warm else frozenset[str]()
    steps = tuple(draft.finished() for draft in reading.drafts)
    history = History(reading.requests, steps, reading.vocab, options=options)
    if all(draft.logits is None for draft in reading.drafts):
        return history
    return replace(history, steps=tuple(with_sights(history, [draft.logits for draft in reading.drafts])))


def with_sights(history: History, recorded: list[Logits | None]) -> Iterator[Step]:
    """The steps, each with a sight for every row of the logits that were recorded."""
    law = batches(history)
    for step, logits in zip(history.steps, recorded, strict=True):
        names = after(law)
        if logits is None or names is None or len(names) != len(logits):
            yield step
            continue
        pairs = zip(names, logits, strict=True)
        yield replace(step, sights=tuple(Sight(name, tuple(row), None) for name, row in pairs if name is not None))


def after(law: Iterator[list[str | None]]) -> list[str | None] | None:
    """The batch after the next step, or None from the first that the list law has no meaning for."""
    try:
        return next(law, None)
    except IllFormed:
        return None


def parsed(line: bytes) -> dict[str, Any]:
    """The object that the line is; raises Malformed."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=refuse_constant, object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise Malformed("is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise Malformed(f"is not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise Malformed("is not a JSON object")
    return value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; raises ValueError for a key that it has twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def refuse_constant(name: str) -> None:
    """Refuses NaN and the infinities, which JSON has not."""
    raise ValueError(f"there is no {name} in it")


def demand(entry: dict[str, Any], key: str, says: str, has: Callable[[Any], bool]) -> Any:
    """The entry's value for the key; raises Malformed when there is none, or it is not what it has to be."""
    if key not in entry:
        raise Malformed(f"has no {key}")
    if not has(entry[key]):
        raise Malformed(f"{key} is not {says}")
    return entry[key]


def number(entry: dict[str, Any], key: str, least: int, most: int) -> int:
    """The entry's number for the key; raises Malformed."""
    found: int = demand(entry, key, "a number", lambda value: type(value) is int)
    if not least <= found <= most:
        raise Malformed(f"{key} is {shown(found)}, not a number from {least} to {most}")
    return found


def refuse_others(entry: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Raises Malformed for a key that the line cannot have."""
    for key in entry:
        if key not in keys:
            raise Malformed(f"{shown(key)} is none of {', '.join(keys)}")


def known(reading: Reading, name: Any) -> Outputs:
    """The outputs of a request that was declared; raises Malformed."""
    if not isinstance(name, str) or name not in reading.outputs:
        raise Malformed(f"request {shown(name)} is not declared")
    return reading.outputs[name]


def row_of(value: Any) -> int:
    """The row, which may be one that there is not; raises Malformed."""
    if type(value) is not int or not -MAX_ROW <= value <= MAX_ROW:
        raise Malformed(f"{shown(value)} is not a row from {-MAX_ROW} to {MAX_ROW}")
    return value


def are_ids(value: Any, least: int, vocab: int) -> bool:
    """Whether the value is a list of token ids, from the least on."""
    return isinstance(value, list) and all(type(token) is int and least <= token < vocab for token in value)


def are_names(value: Any, reading: Reading) -> bool:
    """Whether the value is a list of requests that were declared."""
    return isinstance(value, list) and all(isinstance(name, str) and name in reading.requests for name in value)


def is_name(value: Any) -> bool:
    """Whether the value may name a request."""
    return isinstance(value, str) and re.fullmatch(NAME, value) is not None


def is_list_of(value: Any, count: int) -> bool:
    """Whether the value is a list of so many items."""
    return isinstance(value, list) and len(value) == count


def is_object_or_null(value: Any) -> bool:
    """Whether the value is a JSON object, or null."""
    return value is None or isinstance(value, dict)


def shown(value: Any) -> str:
    """The value's repr, cut to what fits on a line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
