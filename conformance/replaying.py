"""A history from a file, checked against the list law and played to a subject."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from logitsproc.conformance.api import kind_named
from logitsproc.conformance.bindings import CannotRun, Subject
from logitsproc.conformance.history import BFLOAT16, Arrival, History, batches, grow, new_request
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.machine import NO_PROMPT, OVERLAP, REACHABLE, SHRINK, World
from logitsproc.conformance.notation import NotationError, format_drawing, parse
from logitsproc.conformance.oracles import reference_row
from logitsproc.conformance.suite import Failure, Run, Settings, conditions
from logitsproc.reference.batch import IllFormed
from logitsproc.reference.expectation import admits
from logitsproc.reference.pipeline import skips_invariant
from logitsproc.reference.validation import named_tokens, validate

MAX_BYTES = 10_000_000


def read_history(path: Path) -> History:
    """The history in the file, checked against its own drawings; raises CannotRun with the line or the step."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CannotRun(f"{path} is larger than {MAX_BYTES} bytes")
        history = parse(path.read_text(encoding="utf-8"))
        check_requests(history)
        check_drawings(history)
        check_sights(history, kind_named(history.kind))
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path} is not UTF-8 text") from error
    except (NotationError, IllFormed) as error:
        raise CannotRun(f"{path}: {error}") from error
    return history


def check_requests(history: History) -> None:
    """Raises IllFormed for what a host would not let in: params outside their domain, ids outside the vocabulary."""
    for name, arrival in history.requests.items():
        try:
            validate(arrival.params)
        except ValueError as error:
            raise IllFormed(f"request {name}: {error}") from error
        if (largest := max(ids_of(name, history), default=0)) >= history.vocab:
            raise IllFormed(f"request {name}: token {largest} is not one of the vocabulary's {history.vocab}")
    if BFLOAT16 in history.options and not getattr(kind_named(history.kind), "bfloat16", False):
        raise IllFormed("bfloat16 logits are for pipelines, which convert them")


def ids_of(name: str, history: History) -> list[int]:
    """Every token id that a request has or gets, but for a prompt that nobody has written."""
    arrival = history.requests[name]
    prompt = arrival.prompt if arrival.prompt != Arrival().prompt else None
    growths = [growth for step in history.steps for growth in step.growth if growth.request == name]
    grown = [token for growth in growths for token in growth.tokens]
    return [*named_tokens(arrival.params), *(prompt or ()), *arrival.output, *grown]


def check_drawings(history: History) -> None:
    """Raises IllFormed where a drawing is not the batch that the list law gives, or a step is impossible."""
    for number, (step, names) in enumerate(zip(history.steps, batches(history), strict=True)):
        if step.drawing is not None and list(step.drawing) != names:
            drawn, given = format_drawing(step.drawing), format_drawing(names)
            raise IllFormed(f"step {number} draws {drawn}, and the list law gives {given}")


def check_sights(history: History, kind: Kind | None) -> None:
    """Raises IllFormed where a row that is shown is not as wide as the vocabulary, or not what the reference gives."""
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    for number, (step, names) in enumerate(zip(history.steps, batches(history), strict=True)):
        skipped = skips_invariant([requests[name] for name in names if name is not None])
        for growth in step.growth:
            grow(requests[growth.request].output, growth)
        for sight in step.sights:
            if len(sight.logits) != history.vocab:
                raise IllFormed(f"step {number} shows {sight.request} {len(sight.logits)} logits, of {history.vocab}")
            request = requests[sight.request]
            if kind is not None and not admits(reference_row(kind, request, sight.logits, skipped), sight.expected):
                raise IllFormed(f"step {number} shows {sight.request} a row that the reference does not give")


def play_history(history: History, subject: Subject, kind: str | None) -> Failure | None:
    """The failure that the history shows in the subject, named, if any; raises CannotRun."""
    settings = Settings(subject, kind_named(kind or history.kind))
    with conditions(settings):
        run = Run(settings)
        violation = run.replay(history)
        if violation is None:
            return None
        kept = replace(history, steps=history.steps[: violation.step + 1])
        return run.named(kept, violation, world_of(kept))


def world_of(history: History) -> World:
    """The world that a history is of."""
    if any(arrival.prompt is None for arrival in history.requests.values()):
        return NO_PROMPT
    if any(growth.dropped for step in history.steps for growth in step.growth):
        return SHRINK
    if any(set(step.removed) & {add.row for add in step.added} for step in history.steps):
        return OVERLAP
    return REACHABLE
