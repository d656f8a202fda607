"""Producers as subjects: wrong ones are caught by their clause, right ones pass, and both dialects mean the same."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from logitsproc.conformance import CannotRun, NotConformant, check_producer
from logitsproc.conformance.bindings import Subject, plain_binding
from logitsproc.conformance.explanation import explain
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.history import Arrival, History
from logitsproc.conformance.miniatures.catalogue import PRODUCERS
from logitsproc.conformance.miniatures.producers import (
    MINIATURES,
    CopiesTheOutputs,
    ForgetsAMove,
    KnowsIdsOnly,
    RefillsFromTheTop,
)
from logitsproc.conformance.notation import format_history, parse
from logitsproc.conformance.plans import Case, Lowering, Plan
from logitsproc.conformance.producers import Schedule
from logitsproc.conformance.producers.checks import Emission, troubles
from logitsproc.conformance.producers.player import SAME_ID, ProducerPlayer
from logitsproc.conformance.producers.reference import Elided, Explicit
from logitsproc.conformance.producers.suite import ProducerRun, load_producer, run_producer
from logitsproc.conformance.replaying import check_drawings
from logitsproc.conformance.suite import CONFORMANT, VIOLATION, Report, Settings
from logitsproc.reference.batch import IllFormed
from logitsproc.spec import clauses

SHORT_STEPS = 4

pytestmark = pytest.mark.usefixtures("short_tier")


def judge(producer: type, **options: Any) -> Report:
    return run_producer(Settings(load_producer(producer), **options))


def test_every_miniature_is_listed() -> None:
    assert list(MINIATURES) == PRODUCERS


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda cls: cls.__name__)
def test_a_wrong_producer_is_caught_by_its_clause_with_a_small_history(producer: type) -> None:
    report = judge(producer)
    clause = clauses()[clause_of(producer)]
    wrong = {result.clause.id for result in report.results if result.status in ("broken", "not met")}
    assert wrong == {clause.id}
    assert report.verdict == (CONFORMANT if clause.level == "SHOULD" else VIOLATION)
    failure = report.failure or report.beyond[0].failure
    assert failure is not None
    assert len(failure.history.steps) <= SHORT_STEPS
    assert explain(failure, report.settings.subject).startswith(f"{report.settings.subject.target} breaks {clause.id}")


@pytest.mark.parametrize("producer", [Elided, Explicit])
def test_the_reference_producer_keeps_every_clause(producer: type[Elided]) -> None:
    report = judge(producer)
    assert report.verdict == CONFORMANT
    assert report.scope == "every schedule"
    assert {result.status for result in report.results} == {"held"}
    assert report.note == f"speaks the {producer.DIALECT} dialect"


def test_the_script_of_a_failure_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    failure = judge(ForgetsAMove).failure
    assert failure is not None
    exec("\n".join(failure.script), {})
    *steps, everything = capsys.readouterr().out.splitlines()
    assert steps[-1] == "rows [('B', ['B'])]"
    assert everything.count("BatchUpdate") == len(failure.history.steps)


def test_the_script_of_a_failure_shows_whose_lists_are_held(capsys: pytest.CaptureFixture[str]) -> None:
    failure = judge(CopiesTheOutputs).failure
    assert failure is not None
    exec("\n".join(failure.script), {})
    assert "adds the lists of [[]]" in capsys.readouterr().out


def test_what_a_producer_emitted_is_a_history_that_the_list_law_refuses() -> None:
    failure = judge(ForgetsAMove).failure
    assert failure is not None
    text = format_history(failure.history, failure.asked)
    assert "# A leaves" in text
    with pytest.raises(IllFormed, match="batch_size 1 cuts off a live request"):
        check_drawings(parse(text))


def test_check_producer_gives_a_report_or_raises_with_the_explanation() -> None:
    assert check_producer(Elided).verdict == CONFORMANT
    with pytest.raises(NotConformant, match="breaks PROD-LIVE"):
        check_producer(CopiesTheOutputs)
    with pytest.raises(CannotRun, match="no tier"):
        check_producer(Elided, tier="slow")


def test_a_should_that_is_not_met_is_no_violation() -> None:
    assert check_producer(RefillsFromTheTop).verdict == CONFORMANT


def test_other_clauses_are_noted_and_do_not_decide() -> None:
    report = judge(KnowsIdsOnly, glob="PROD-SIZE")
    assert report.verdict == CONFORMANT
    assert [failure.clause.id for failure in report.outside] == ["PROD-ROWS"]


class Raises(Elided):
    """Raises at once."""

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        raise OSError("no room")


class GivesADict(Elided):
    """Gives something that is no update."""

    def step(self, schedule: Schedule) -> Any:
        return {"added": schedule.coming}


class GivesNoRows(Elided):
    """Gives ids where rows are wanted."""

    def rows(self) -> Any:
        return [request.name for request in self.batch if request]


class HasNoRows:
    """Is no producer."""

    def step(self, schedule: Schedule) -> None:
        return None


class Spoils(Elided):
    """Takes a list out of the update before."""

    last: Any = None

    def step(self, schedule: Schedule) -> Any:
        if self.last is not None:
            object.__setattr__(self.last, "removed", None)
        self.last = super().step(schedule)
        return self.last


class Cancels(Elided):
    """Raises what is no Exception."""

    def step(self, schedule: Schedule) -> Any:
        raise asyncio.CancelledError


class ChangesInRows(Elided):
    """Clears the update when its rows are asked for."""

    def step(self, schedule: Schedule) -> Any:
        self.last = super().step(schedule)
        return self.last

    def rows(self) -> Any:
        if self.last is not None:
            self.last.added.clear()
        return super().rows()


class WritesPrompts(Elided):
    """Changes the prompt that it was handed."""

    def step(self, schedule: Schedule) -> Any:
        for coming in schedule.coming:
            if coming.prompt_token_ids:
                coming.prompt_token_ids.append(0)
        return super().step(schedule)


class WritesOutputs(Elided):
    """Appends a token of its own."""

    def step(self, schedule: Schedule) -> Any:
        for request in self.batch:
            if request is not None:
                request.output.append(1)
        return super().step(schedule)


class MixesUpLists(Elided):
    """Has a copy of the list in its own rows."""

    def rows(self) -> Any:
        return [(request.name, list(request.output)) for request in self.batch if request]


@pytest.mark.parametrize(
    ("producer", "clause"),
    [
        (Spoils, "PROD-UNCHANGED"),
        (Cancels, "PROD-EXCEPTION"),
        (ChangesInRows, "PROD-UNCHANGED"),
        (WritesPrompts, "PROD-PARAMS"),
        (WritesOutputs, "PROD-LIVE"),
        (MixesUpLists, "PROD-ROWS"),
    ],
)
def test_odd_wrong_producers_are_caught(producer: type, clause: str) -> None:
    with pytest.raises(NotConformant, match=f"breaks {clause}"):
        check_producer(producer)


class FixedSlots(Explicit):
    """Gives all slots that there are, empty ones at the end; tuples and strings in its updates."""

    def __init__(self, max_num_seqs: int, vocab_size: int) -> None:
        super().__init__(max_num_seqs, vocab_size)
        self.slots = max_num_seqs

    def step(self, schedule: Schedule) -> Any:
        given = super().step(schedule)
        moved = [[source, to, how.name] for source, to, how in given.moved] if given else []
        return given and replace(given, removed=tuple(given.removed), moved=moved)

    def rows(self) -> Any:
        yield from super().rows()
        yield from [(None, None)] * (self.slots - len(self.batch))


def test_odd_right_producers_pass() -> None:
    assert check_producer(FixedSlots).verdict == CONFORMANT


class Evil:
    """Cannot be written, compared or read."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    @property
    def added(self) -> None:
        raise RuntimeError("not today")


class GivesEvil(Elided):
    """Gives an update that cannot be read."""

    def step(self, schedule: Schedule) -> Any:
        return Evil()


class EvilIds(Elided):
    """Gives ids that cannot be compared."""

    def rows(self) -> Any:
        return [(Evil(), request.output) for request in self.batch if request]


class AddsThree(Elided):
    """Leaves the output list out of its adds."""

    def step(self, schedule: Schedule) -> Any:
        given = super().step(schedule)
        return given and replace(given, added=[add[:3] for add in given.added])


@pytest.mark.parametrize(
    ("producer", "says"),
    [
        (GivesEvil, "GivesEvil gave what cannot be read: RuntimeError: not today"),
        (EvilIds, "EvilIds gave what cannot be read: RuntimeError"),
        (AddsThree, r"an add is \(row, params, prompt ids, output ids\)"),
        (Raises, r"Raises\(max_num_seqs, vocab_size\) raised OSError: no room"),
        (GivesADict, r"GivesADict.step\(\) gave {.*, no BatchUpdate: AttributeError"),
        (GivesNoRows, r"GivesNoRows.rows\(\) gave 'A', not \(id, output list\)"),
        (HasNoRows, r"HasNoRows is not a producer: it has no rows\(\)"),
        ("no_such_module:Thing", "no_such_module cannot be imported"),
        (len, "is not a class"),
    ],
)
def test_what_is_no_producer_is_refused_in_one_line(producer: Any, says: str) -> None:
    with pytest.raises(CannotRun, match=says) as caught:
        check_producer(producer)
    assert "\n" not in str(caught.value)


def played(producer: type, plans: tuple[Plan, ...], options: frozenset[str] = frozenset()) -> ProducerPlayer:
    """A play of plans about the requests A to F."""
    header = History({name: Arrival() for name in "ABCDEF"}, options=options)
    player = ProducerPlayer(Subject(producer.__name__, producer, plain_binding()), header)
    lowering = Lowering("elided", requests=player.requests)
    for plan in plans:
        lowering.batch = list(player.batch)
        player.play(lowering.lower_plan(plan))
    return player


def emissions(player: ProducerPlayer) -> Iterator[Emission]:
    """What came of every step."""
    for item in player.record:
        assert item.emission is not None
        yield item.emission


def come(names: str) -> tuple[tuple[str, bool], ...]:
    """These requests come, with their own lists."""
    return tuple((name, False) for name in names)


DESIGN_PAGE = (Plan(come=come("ABCD")), Plan(leave=("A", "C"), come=come("E"), swaps=((0, 1),)))
"""The first worked example of vLLM's design page."""


def test_the_worked_example_is_emitted_in_both_dialects_and_means_the_same() -> None:
    elided, explicit = played(Elided, DESIGN_PAGE), played(Explicit, DESIGN_PAGE)
    (_, short), (_, long) = emissions(elided), emissions(explicit)
    assert short.update is not None and long.update is not None
    assert (short.update.removed, long.update.removed) == ((), (2,))
    assert str(short.rows) == str(long.rows) == "(B, E, D)"
    assert not troubles(short) and not troubles(long)


def test_both_dialects_mean_the_same_for_every_decision_about_up_to_four_rows() -> None:
    for size, mask, count in product(range(5), range(16), range(3)):
        leave = tuple(name for place, name in enumerate("ABCD"[:size]) if mask >> place & 1)
        last = size - len(leave) + count - 1
        swaps = ((0, last),) if last > 0 else ()
        plans = (Plan(come=come("ABCD"[:size])), Plan(leave=leave, come=come("EF"[:count]), swaps=swaps))
        elided, explicit = played(Elided, plans), played(Explicit, plans)
        assert not [
            trouble for player in (elided, explicit) for item in emissions(player) for trouble in troubles(item)
        ]
        assert str(elided.batch) == str(explicit.batch)


def test_an_id_that_is_used_again_in_one_step_is_another_request() -> None:
    plans = (Plan(come=come("A")), Plan(leave=("A",), come=come("B")), Plan(leave=("B",), come=come("A")))
    player = played(Elided, plans, frozenset({SAME_ID}))
    asked = [(item.schedule.leaving, [coming.req_id for coming in item.schedule.coming]) for item in player.record]
    assert asked == [((), ["A"]), (("A",), ["A"]), (("A",), ["A"])]
    assert str(player.batch) == "[A]"


def test_a_request_that_left_comes_back_under_another_id_when_its_own_is_taken() -> None:
    plans = (Plan(come=come("A")), Plan(leave=("A",), come=come("B")), Plan(come=come("A")))
    player = played(Elided, plans, frozenset({SAME_ID}))
    assert player.ids == {"A": "A'", "B": "A"}


def test_a_case_that_breaks_nothing_shows_nothing() -> None:
    run = ProducerRun(Settings(load_producer(Elided)))
    header = History({name: Arrival() for name in "ABCDE"})
    assert run.trace(Case(header, DESIGN_PAGE), "PROD-REPLAY").violation is None
