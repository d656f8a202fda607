"""What says which row is right: a reference row function, a fresh processor alone, or the author's own function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from logitsproc.conformance.bindings import CannotRun, Subject, one_line, resolve
from logitsproc.conformance.kinds import Kind
from logitsproc.conformance.logits import Palette
from logitsproc.conformance.watch import WATCH, TookTooLong
from logitsproc.reference.expectation import Expectation, untouched
from logitsproc.reference.processor import expected_row
from logitsproc.reference.request import Request
from logitsproc.reference.row.temperature import is_greedy

CACHED = 20_000
Author = Callable[[Any, list[int] | None, list[int], torch.Tensor], torch.Tensor]


class Oracle(Protocol):
    """Says what a request's row may be when it is shown row `pick` of the palette."""

    @property
    def name(self) -> str:
        """What a report calls it."""

    def expect(self, request: Request, rows: Palette, pick: int, skipped: bool) -> Expectation:
        """skipped: whether the whole batch is greedy, so that argmax-invariant processors are left out."""


@dataclass
class ReferenceOracle:
    """The row function of the reference for a kind; what it has said once is remembered."""

    kind: Kind
    seen: dict[tuple[Any, ...], Expectation] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"reference {self.kind.field}"

    def expect(self, request: Request, rows: Palette, pick: int, skipped: bool) -> Expectation:
        """The reference's row; raises CannotRun for params that it has no meaning for."""
        key = what_a_row_is_of(request, rows, pick, self.kind.reads_outputs)
        return remembered(
            self.seen, (*key, skipped), lambda: reference_row(self.kind, request, rows.values[pick], skipped)
        )


def what_a_row_is_of(request: Request, rows: Palette, pick: int, reads_outputs: bool = True) -> tuple[Any, ...]:
    """What the row of a request is a function of."""
    logits = tuple(rows.bits[pick])
    if not reads_outputs:
        return repr(request.params), logits
    prompt = None if request.prompt is None else tuple(request.prompt)
    return repr(request.params), logits, prompt, tuple(request.output)


def remembered(
    seen: dict[tuple[Any, ...], Expectation], key: tuple[Any, ...], make: Callable[[], Expectation]
) -> Expectation:
    """What was said for the key before, or what is said now."""
    found = seen.get(key)
    if found is None:
        if len(seen) >= CACHED:
            seen.clear()
        found = seen[key] = make()
    return found


def reference_row(kind: Kind, request: Request, logits: Sequence[float], skipped: bool) -> Expectation:
    """The reference's row for a request; raises CannotRun for params that it has no meaning for."""
    try:
        return expected_row(request, kind.skipped if skipped and kind.skipped else kind.row, logits)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        params = ", ".join(f"{field}={value!r}" for field, value in request.params.items())
        raise CannotRun(f"the reference has no meaning for {params}: {one_line(error)}") from error


class SoloFailure(Exception):
    """A fresh processor raised for one request alone; `error` is what it raised, `request` whom it served."""

    def __init__(self, error: BaseException, request: Request) -> None:
        super().__init__(one_line(error))
        self.error = error
        self.request = request


@dataclass
class SoloOracle:
    """The solo law: what a fresh processor of the same class gives for that request alone."""

    subject: Subject
    name: str = "solo"
    seen: dict[tuple[Any, ...], Expectation] = field(default_factory=dict)

    def expect(self, request: Request, rows: Palette, pick: int, skipped: bool) -> Expectation:
        """The row that a fresh processor gives; remembered by what the row is a function of."""
        return remembered(self.seen, what_a_row_is_of(request, rows, pick), lambda: self.run(request, rows, pick))

    def run(self, request: Request, rows: Palette, pick: int) -> Expectation:
        """Adds the request with its outputs to a new processor and applies it once."""
        got = run_alone(self.subject, request, rows, pick)
        if got.dtype == torch.float32 and got.view(torch.int32).tolist() == rows.bits[pick]:
            return untouched(rows.values[pick])
        values = got.tolist()
        return Expectation(values, values)


def run_alone(subject: Subject, request: Request, rows: Palette, pick: int) -> torch.Tensor:
    """The row that a fresh processor gives for one request added with its outputs; raises SoloFailure."""
    return played_alone(subject, request, rows.tensor[pick : pick + 1], list(request.output), [])


def grown_alone(subject: Subject, request: Request, rows: Palette, pick: int) -> torch.Tensor:
    """As run_alone, but added with no outputs, which then grow by one a step; raises SoloFailure."""
    return played_alone(subject, request, rows.tensor[pick : pick + 1], [], request.output)


def played_alone(
    subject: Subject, request: Request, logits: torch.Tensor, live: list[int], tokens: Sequence[int]
) -> torch.Tensor:
    """The row after a fresh processor got the request and then the tokens one by one; raises SoloFailure."""
    binding, logits = subject.binding, logits.to(subject.device)
    prompt = None if request.prompt is None else list(request.prompt)
    added = (0, binding.make_params(dict(request.params)), prompt, live)
    try:
        processor = WATCH.call(subject.build, logits.shape[1])
        WATCH.call(processor.update_state, binding.batch_update(1, [], [added], []))
        for token in tokens:
            WATCH.call(processor.apply, logits.clone())
            live.append(token)
            WATCH.call(processor.update_state, None)
        return row_of(WATCH.call(processor.apply, logits.clone()))
    except CannotRun:
        raise
    except TookTooLong:
        raise SoloFailure(TimeoutError("did not return in time"), request) from None
    except (Exception, SystemExit) as error:
        raise SoloFailure(error, request) from error


def row_of(returned: Any) -> torch.Tensor:
    """The only row of what apply returned, on the CPU; raises TypeError when it is not a tensor."""
    if not isinstance(returned, torch.Tensor):
        raise TypeError(f"apply returned {type(returned).__name__}, not a tensor")
    return returned[0].contiguous().cpu()


@dataclass
class AuthorOracle:
    """The author's own f(params, prompt_token_ids, output_token_ids, logits) -> logits, one row, 1-D.

    An answer within one float32 rounding of it is right, as NUM-EDIT says; its masks are exact.
    """

    function: Author
    subject: Subject
    name: str

    def expect(self, request: Request, rows: Palette, pick: int, skipped: bool) -> Expectation:
        """The author's row, one rounding wide."""
        params = self.subject.binding.make_params(dict(request.params))
        prompt = None if request.prompt is None else list(request.prompt)
        logits = rows.tensor[pick].clone()
        try:
            row = WATCH.call(self.function, params, prompt, list(request.output), logits)
        except TookTooLong:
            raise CannotRun(f"the oracle {self.name} did not return in time") from None
        except (Exception, SystemExit) as error:
            raise CannotRun(f"the oracle {self.name} raised {one_line(error)}") from error
        return self.widened(row, rows, pick)

    def widened(self, row: Any, rows: Palette, pick: int) -> Expectation:
        """The row as an expectation; raises CannotRun when it is not a row."""
        wanted = rows.tensor[pick]
        if not isinstance(row, torch.Tensor) or row.shape != wanted.shape or row.dtype != torch.float32:
            raise CannotRun(f"the oracle {self.name} must return a float32 row of {wanted.shape[0]} logits")
        if row.view(torch.int32).tolist() == rows.bits[pick]:
            return untouched(rows.values[pick])
        low = torch.nextafter(row, torch.full_like(row, -torch.inf))
        high = torch.nextafter(row, torch.full_like(row, torch.inf))
        infinite = torch.isinf(row)
        return Expectation(torch.where(infinite, row, low).tolist(), torch.where(infinite, row, high).tolist())


def load_oracle(target: str | Author, subject: Subject) -> AuthorOracle:
    """The author's oracle, by `module:function` or itself; raises CannotRun."""
    function = resolve(target) if isinstance(target, str) else target
    name = target if isinstance(target, str) else getattr(target, "__qualname__", repr(target))
    if not callable(function):
        raise CannotRun(f"the oracle {name} is not a function")
    return AuthorOracle(function, subject, name)


def uses(oracle: Oracle, request: Request, rows: Palette, outputs: Sequence[Sequence[int]]) -> bool:
    """Whether the oracle touches any of a few rows for these params with any of these outputs."""
    for tokens in outputs:
        probe = Request(request.name, request.params, request.prompt, list(tokens))
        for pick in range(0, len(rows.values), 5):
            if not oracle.expect(probe, rows, pick, is_greedy(probe.params)).untouched:
                return True
    return False
