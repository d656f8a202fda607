"""A history or a recording from a file, checked against the list law and played to a subject."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from logitsproc.conformance.bindings import CannotRun, Subject
from logitsproc.conformance.explanation import count
from logitsproc.conformance.history import BFLOAT16, Arrival, History, batches, grow, new_request, to_update
from logitsproc.conformance.kinds import SMALLEST_VOCAB, Kind, Pool, kind_named
from logitsproc.conformance.machine import world_of
from logitsproc.conformance.notation import NotationError, format_drawing, parse
from logitsproc.conformance.oracles import reference_row
from logitsproc.conformance.plans import lifted, lifts, lower
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers.checks import Decision, Emission, replayed, told
from logitsproc.conformance.recording import Recording
from logitsproc.conformance.shrinking import shrink
from logitsproc.conformance.suite import Failure, Run, Settings, conditions, impatience
from logitsproc.reference.batch import Batch, IllFormed, apply_update
from logitsproc.reference.expectation import admits
from logitsproc.reference.pipeline import skips_invariant
from logitsproc.reference.validation import named_tokens, validate

MAX_BYTES = 10_000_000
SHRINK_SECONDS = 15.0


def to_history(path: Path, data: bytes) -> History:
    """The history that the bytes of a file are, checked; raises CannotRun with the line or the step."""
    if len(data) > MAX_BYTES:
        raise CannotRun(f"{path} is larger than {MAX_BYTES} bytes")
    try:
        history = parse(data.decode("utf-8-sig"))
        check_requests(history)
        check_drawings(history)
        check_sights(history, kind_named(history.kind))
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path} is not UTF-8 text") from error
    except (NotationError, IllFormed) as error:
        raise CannotRun(f"{path}: {error}") from error
    if not history.steps:
        raise CannotRun(f"{path} holds no history: there is no step in it")
    return history


def check_requests(history: History) -> None:
    """Raises IllFormed for what a host would not let in: params outside their domain, ids outside the vocabulary."""
    grown = largest_grown(history)
    for name, arrival in history.requests.items():
        try:
            validate(arrival.params)
        except ValueError as error:
            raise IllFormed(f"request {name}: {error}") from error
        if (largest := max([*ids_of(arrival), grown.get(name, 0)])) >= history.vocab:
            raise IllFormed(f"request {name}: token {largest} is not one of the vocabulary's {history.vocab}")
    if BFLOAT16 in history.options and not getattr(kind_named(history.kind), "bfloat16", False):
        raise IllFormed("bfloat16 logits are for pipelines, which convert them")


def ids_of(arrival: Arrival) -> list[int]:
    """Every token id that a request brings, but for a prompt that nobody has written."""
    prompt = arrival.prompt if arrival.prompt != Arrival().prompt else None
    return [*named_tokens(arrival.params), *(prompt or ()), *arrival.output]


def largest_grown(history: History) -> dict[str, int]:
    """The largest token id that each request gets, as far as it gets any."""
    largest: dict[str, int] = {}
    for step in history.steps:
        for growth in step.growth:
            largest[growth.request] = max([largest.get(growth.request, 0), *growth.tokens])
    return largest


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
            if kind is None or sight.expected is None:
                continue
            if not admits(reference_row(kind, request, sight.logits, skipped), sight.expected):
                raise IllFormed(f"step {number} shows {sight.request} a row that the reference does not give")


def play_history(history: History, subject: Subject, kind: str | None) -> Failure | None:
    """The failure that the history shows in the subject, named, if any; raises CannotRun."""
    settings = settings_of(history, subject, kind or history.kind)
    with conditions(settings):
        run = Run(settings)
        violation = run.replay(history)
        if violation is None:
            return None
        kept = replace(history, steps=history.steps[: violation.step + 1])
        return run.named(kept, violation, world_of(kept))


def settings_of(history: History, subject: Subject, kind: str | None) -> Settings:
    """What is run; without a kind, the params that tell faults apart are the history's own."""
    if kind is not None:
        return Settings(subject, kind_named(kind))
    asked: Pool = []
    for arrival in history.requests.values():
        asked += [] if arrival.params in asked else [dict(arrival.params)]
    return Settings(subject, params=asked)


def first_breach(history: History) -> tuple[int, str, str] | None:
    """The first step that is not what producers owe, the clause, and what is wrong; a drawing is the engine's rows."""
    batch: Batch = []
    requests = {name: new_request(name, arrival) for name, arrival in history.requests.items()}
    for number, step in enumerate(history.steps):
        before, update = tuple(batch), to_update(step, requests, batch)
        by_law = replayed(before, update)
        rows = before if by_law is None else by_law
        if step.drawing is not None:
            rows = tuple(None if name is None else requests[name] for name in step.drawing)
        if breach := told(Emission(before, Decision(), update, rows)):
            return number, *breach
        apply_update(batch, update)
    return None


def summary(recording: Recording) -> str:
    """What a recording without a breach holds."""
    history = recording.history
    steps, updates = count(len(history.steps), "step"), sum(not step.is_quiet for step in history.steps)
    known = all(step.drawing is not None for step in history.steps)
    law = " and follows the list law" if history.steps and known else ""
    return (
        f"{steps} of {recording.host}, {count(updates, 'update')}, {count(len(history.requests), 'request')}: "
        f"every update is well-formed{law}; {lifts(history)} of {updates} are the engine's own algorithm"
    )


def play_recording(history: History, subject: Subject, kind: str | None) -> Failure | None:
    """The failure that a recording shows in the subject, made small and named, if any; raises CannotRun."""
    try:
        check_requests(history)
    except IllFormed as error:
        raise CannotRun(str(error)) from error
    settings = settings_of(history, subject, kind)
    with conditions(settings):
        run = Run(settings)
        violation = run.replay(history)
        if violation is None:
            return None
        return made_small(run, replace(history, steps=history.steps[: violation.step + 1]), violation)


def made_small(run: Run, history: History, violation: Violation) -> Failure:
    """The violation with the smallest history found; without the logits that were recorded, if it needs none."""
    run.end = time.monotonic() + SHRINK_SECONDS
    plainer = replace(history, steps=tuple(replace(step, drawing=None) for step in history.steps))
    unlit = lifted(replace(plainer, steps=tuple(replace(step, sights=()) for step in plainer.steps)))
    if violation.hangs:
        return run.failure(world_of(history), unlit, violation)
    case = unlit if run.failing(unlit, violation) else lifted(plainer)
    with impatience(run.settings):
        case = shrink(case, partial(run.failing, violation=violation), history.vocab, run.plain)
    if not any(step.sights for step in lower(case).steps):
        run.vocabs = (vocab_of(lower(case)),)
    return run.failure(world_of(history), case, violation)


def vocab_of(history: History) -> int:
    """The smallest vocabulary that has every token id of the history."""
    ids = [token for arrival in history.requests.values() for token in (*ids_of(arrival), *(arrival.prompt or ()))]
    return max(SMALLEST_VOCAB, 1 + max([*ids, *largest_grown(history).values()], default=0))
