"""A logits processor for vLLM V1 that changes nothing, and records what the engine hands to it.

LOGITSPROC_RECORD names the file; with LOGITSPROC_RECORD_LOGITS=1 the logits are recorded too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import torch

from logitsproc.conformance.interface import SamplingParams
from logitsproc.conformance.plans import name_of
from logitsproc.conformance.player import PLACEHOLDER
from logitsproc.conformance.recording import FIELDS, FORMAT, VERSION, logits_entry, plain, to_line
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL

PATH, WITH_LOGITS = "LOGITSPROC_RECORD", "LOGITSPROC_RECORD_LOGITS"
REMEMBERED = 1024
"""How many departed requests are known again when they come back."""
DEFAULTS = {name: getattr(SamplingParams(), name) for name in FIELDS}

logger = logging.getLogger(__name__)


def vllm_base() -> tuple[Any, str]:
    """vLLM's base class for processors and its version, or `object` where vLLM cannot be imported."""
    try:
        from vllm import __version__
        from vllm.v1.sample.logits_processor import LogitsProcessor
    except Exception:
        return object, "unknown"
    return LogitsProcessor, f"vllm {__version__}"


BASE, HOST_NAME = vllm_base()


@dataclass(eq=False, slots=True)
class Seen:
    """A request as the engine handed it over, and its output ids as the recording last said them.

    The params are held, so that no other object gets their identity while they are remembered; of the prompt, which may
    be long, only a hash.
    """

    name: str
    params: Any
    prompt: int
    output: Sequence[int]
    said: list[int] = field(default_factory=list)

    def change(self) -> tuple[int, list[int]] | None:
        """How many ids still stand and the ids after them, seen from the end; None if nothing has changed."""
        said, output = self.said, self.output
        kept = min(len(said), len(output))
        while kept and (said[kept - 1] != output[kept - 1] or said[kept - 1] == PLACEHOLDER):
            kept -= 1
        ids = list(output[kept:])
        if ids == said[kept:]:
            return None
        said[kept:] = ids
        return kept, ids

    def has(self, prompt: Any, output: Sequence[int]) -> bool:
        """Whether these are the request's prompt, and its outputs or what has become of them."""
        return hash_of(ids_of(prompt)) == self.prompt and (output is self.output or begins(output, self.said))


Rows = dict[int, Seen]


class Recorder(BASE):  # type: ignore[misc, valid-type]
    """Records every update and every apply, and gives back the logits that it got.

    Raises ValueError, when it is built, if LOGITSPROC_RECORD is not set or cannot be written. After that it raises
    nothing: what cannot be recorded ends the recording, with a line in the log.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        vocab = vllm_config.model_config.get_vocab_size()
        self.file: TextIO | None = opened(os.environ.get(PATH, ""))
        logger.info("recording to %s", self.file.name)
        self.with_logits = os.environ.get(WITH_LOGITS) == "1"
        self.rows: Rows = {}
        self.departed: dict[str, Seen] = {}
        self.declared = 0
        self.steps = 0
        self.write({"recording": FORMAT, "version": VERSION, "host": HOST_NAME, "vocab": vocab})

    def is_argmax_invariant(self) -> bool:
        """No: an engine leaves out those that are, and then not every apply would be recorded."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Records a step."""
        self.guarded(self.record_step, batch_update)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Records an apply; the logits are returned as they are."""
        self.guarded(self.record_apply, logits)
        return logits

    def guarded(self, record: Callable[[Any], None], argument: Any) -> None:
        """Records, unless the recording has ended; it ends where that raises, and the engine goes on."""
        if self.file is None:
            return
        try:
            record(argument)
        except Exception as error:
            self.file = None
            logger.warning("the recording ends at step %d: %r", self.steps, error)

    def record_step(self, update: Any) -> None:
        """Writes the requests that are new, and the step; nothing for a None before the first update."""
        if update is None and not self.steps:
            return
        before = list(self.rows.values())
        entry = None if update is None else self.follow(update)
        outputs = changes(dict.fromkeys([*before, *self.rows.values()]))
        self.write({"step": self.steps, "outputs": outputs, "update": entry})
        self.steps += 1

    def record_apply(self, logits: torch.Tensor) -> None:
        """Writes the apply, with the number of its step, and what has changed since the step was written."""
        step = self.steps - 1 if self.steps else None
        entry = {"apply": step, "rows": len(logits), "outputs": changes(self.rows.values())}
        if self.with_logits:
            entry["logits"] = logits_entry(logits.detach().to("cpu", torch.float32).numpy())
        self.write(entry)

    def follow(self, update: Any) -> dict[str, Any]:
        """The update as a step line has it; the rows follow it, also where the list law gives it no meaning."""
        rows, left = dict(self.rows), leaving(self.rows, update)
        known = [*left, *reversed(self.departed.values())]
        added = [self.added(item, known) for item in update.added]
        self.rows = followed(rows, update, [seen for _, seen, _ in added])
        self.remember([*left, *(seen for _, seen, _ in added)])
        return {
            "size": update.batch_size,
            "removed": list(update.removed),
            "added": [[row, seen.name, *(["fresh"] if fresh else [])] for row, seen, fresh in added],
            "moved": [[source, to, SWAP if is_swap(way) else UNIDIRECTIONAL] for source, to, way in update.moved],
        }

    def added(self, item: tuple[int, Any, Any, Sequence[int]], known: list[Seen]) -> tuple[int, Seen, bool]:
        """The row, the request, one of those known if it is the same, and whether its list is another object."""
        row, params, prompt, output = item
        same = [seen for seen in known if seen.params is params and seen.has(prompt, output)]
        if not same:
            return row, self.declare(params, prompt, output), False
        seen = max(same, key=lambda seen: (seen.output is output, len(seen.said)))
        known.remove(seen)
        fresh, seen.output = seen.output is not output, output
        return row, seen, fresh

    def declare(self, params: Any, prompt: Any, output: Sequence[int]) -> Seen:
        """A request that is new, once its line is written."""
        ids = ids_of(prompt)
        seen = Seen(name_of(self.declared), params, hash_of(ids), output)
        self.declared += 1
        self.write({"request": seen.name, "params": params_entry(params), "prompt": ids})
        return seen

    def remember(self, left: Iterable[Seen]) -> None:
        """Keeps the latest of the requests that have no row."""
        for seen in left:
            self.departed[seen.name] = seen
        for seen in self.rows.values():
            self.departed.pop(seen.name, None)
        while len(self.departed) > REMEMBERED:
            del self.departed[next(iter(self.departed))]

    def write(self, entry: dict[str, Any]) -> None:
        """Writes a line, which is in the file when this returns."""
        assert self.file is not None
        self.file.write(to_line(entry))


def opened(path: str) -> TextIO:
    """A new file, line by line, at the path or the next free name; a device as it is. Raises ValueError."""
    if not path:
        raise ValueError(f"{PATH} names no file to record to")
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            return target.open("w", buffering=1, encoding="utf-8")
        return next(file for file in map(created, names(target)) if file is not None)
    except OSError as error:
        raise ValueError(f"{PATH}: {path} cannot be written: {error.strerror}") from error


def names(path: Path) -> Iterable[Path]:
    """`run.jsonl`, `run.1.jsonl`, `run.2.jsonl` and so on."""
    yield path
    for number in count(1):
        yield path.with_name(f"{path.stem}.{number}{path.suffix}")


def created(path: Path) -> TextIO | None:
    """The file, opened anew, or None if there is one."""
    try:
        return path.open("x", buffering=1, encoding="utf-8")
    except FileExistsError:
        return None


def ids_of(prompt: Any) -> list[Any] | None:
    """The prompt token ids, of whatever type, as a list."""
    return None if prompt is None else [token if type(token) is int else plain(token) for token in prompt]


def hash_of(ids: list[Any] | None) -> int:
    """A number for the prompt, another one for another prompt as good as always."""
    return hash(None if ids is None else tuple(ids))


def params_entry(params: Any) -> dict[str, Any]:
    """The fields that are not the default, as JSON has them."""
    given = {name: getattr(params, name, default) for name, default in DEFAULTS.items()}
    return {name: plain(value) for name, value in given.items() if is_given(value, DEFAULTS[name])}


def is_given(value: Any, default: Any) -> bool:
    """Whether a field says something; None is the default of lists too."""
    return value is not None and (type(value) is not type(default) or value != default)


def changes(requests: Iterable[Seen]) -> dict[str, tuple[int, list[int]]]:
    """What has changed in the output lists, by request."""
    return {seen.name: change for seen in requests if (change := seen.change()) is not None}


def begins(output: Sequence[int], said: list[int]) -> bool:
    """Whether the outputs begin with what was said of them, placeholders at the end aside."""
    known = len(said)
    while known and said[known - 1] == PLACEHOLDER:
        known -= 1
    return list(output[:known]) == said[:known]


def leaving(rows: Rows, update: Any) -> list[Seen]:
    """The requests that have no row after the update, whoever is added."""
    staying = set(followed(dict(rows), update, [None] * len(update.added)).values())
    return [seen for seen in rows.values() if seen not in staying]


def followed(rows: dict[int, Any], update: Any, added: Sequence[Any]) -> dict[int, Any]:
    """The rows after the update, with what is added in the place of its items; nothing is an error."""
    for row in update.removed:
        rows.pop(row, None)
    for (row, *_), seen in zip(update.added, added, strict=True):
        rows[row] = seen
    for source, destination, way in update.moved:
        moved, held = rows.get(source), rows.get(destination)
        rows[source] = held if is_swap(way) else None
        rows[destination] = moved
    return {row: seen for row, seen in rows.items() if seen is not None}


def is_swap(way: Any) -> bool:
    """Whether a move is a swap, by the name of its direction."""
    return bool(getattr(way, "name", way) == SWAP)
