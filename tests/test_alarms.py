"""Right subjects of every shape pass, false alarms are counted, and a suite that sees nothing is refused."""

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from alarms import ALARMS, HISTORIES, SOLO, Control, Model, complaints, controls, drawn, made, main, play_all, settings
from typer.testing import CliRunner

from logitsproc.conformance import suite
from logitsproc.conformance.bindings import CannotRun, describe, load_subject
from logitsproc.conformance.cli import app
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.machine import BEYOND, REACHABLE, SCHEDULES, Draw, Drive, World, explore
from logitsproc.conformance.miniatures import producer_shapes, shapes
from logitsproc.conformance.miniatures.canaries import CANARIES, COMPOSITES, BreaksEveryUpdate
from logitsproc.conformance.miniatures.catalogue import NO_REPEAT, classes, kind_of
from logitsproc.conformance.miniatures.controls import CONTROLS, ByRow
from logitsproc.conformance.miniatures.pipelines import Pipeline
from logitsproc.conformance.miniatures.producer_shapes import PRODUCER_SHAPES
from logitsproc.conformance.miniatures.shapes import SHAPES
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers import suite as producer_suite
from logitsproc.conformance.producers.reference import Elided
from logitsproc.conformance.producers.suite import ProducerRun, load_producer, run_producer
from logitsproc.conformance.suite import CONFORMANT, TIERS, Canary, Run, Settings, Tier, conditions, run

FEW = 2
SPOILED = "logitsproc.conformance.miniatures.consumers:ForgetsReplacement"
SPOILED_PRODUCER = "logitsproc.conformance.miniatures.producers:ForgetsAMove"


@pytest.fixture(scope="module")
def few_histories() -> Iterator[None]:
    """The quick tier cut to what witnesses every clause; `make alarms` plays more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TIERS, "quick", Tier(100, 5, 90))
        yield


@pytest.mark.usefixtures("few_histories")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda cls: cls.__name__)
def test_a_right_processor_passes_whatever_its_shape(shape: type) -> None:
    kind = kind_of(shape)
    report = run(Settings(load_subject(shape), kind, params=None if kind else NO_REPEAT))
    assert [seen.failure for seen in (report, *report.beyond) if seen.failure is not None] == []
    assert report.verdict == CONFORMANT


@pytest.mark.usefixtures("few_histories")
@pytest.mark.parametrize("shape", PRODUCER_SHAPES, ids=lambda cls: cls.__name__)
def test_a_right_producer_passes_whatever_its_shape(shape: type) -> None:
    report = run_producer(Settings(load_producer(shape)))
    assert report.failure is None
    assert report.verdict == CONFORMANT


def leaves(module: ModuleType, base: type) -> set[type]:
    """The classes of a module that have this base and are the base of no other there."""
    found = {cls for cls in classes(module) if issubclass(cls, base)}
    return {cls for cls in found if not any(cls in other.__bases__ for other in found)}


def test_every_shape_is_listed() -> None:
    assert leaves(shapes, ByRow) | leaves(shapes, Pipeline) == set(SHAPES)
    assert leaves(producer_shapes, Elided) <= set(PRODUCER_SHAPES)


def test_the_program_raises_no_alarm_for_a_few_seeds() -> None:
    counts = play_all(controls(), FEW, 1)
    assert {name: count.alarms for name, count in counts.items() if count.alarms} == {}
    assert {count.seeds for count in counts.values()} == {FEW}
    assert {count.histories for count in counts.values()} == {FEW * HISTORIES, FEW * HISTORIES * (1 + len(BEYOND))}


def test_the_program_says_the_same_twice() -> None:
    chosen = [control for control in controls() if control.judged in ("min_p", "a producer")]
    assert play_all(chosen, 1, 1) == play_all(chosen, 1, 1)


@pytest.mark.parametrize("kind", ["min_p", "pipeline"])
@pytest.mark.parametrize("world", [REACHABLE, *BEYOND], ids=lambda world: world.name)
def test_the_histories_are_those_of_the_suite(kind: str, world: Any) -> None:
    seed = 3
    chosen = settings(next(control for control in controls() if control.judged == kind), seed)
    draw = Run(chosen).draw
    cases: list[Any] = []
    explore(Drive(Model, world, draw, lambda player, outcome: None, finish=cases.append), HISTORIES, seed)
    assert [drawn(case, draw) for case in made(world, seed)] == cases
    assert len(cases) == HISTORIES


@pytest.mark.parametrize(
    ("spoiled", "clause"),
    [(Control(SPOILED, "min_p"), "PROC-STATE-DEPARTED"), (Control(SPOILED_PRODUCER, "a producer"), "PROD-REPLAY")],
    ids=["processor", "producer"],
)
def test_a_spoiled_control_is_an_alarm(
    spoiled: Control, clause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "alarms.json"
    assert main(["--seeds", str(FEW), "--output", str(record)], [spoiled], 1) == 1
    (count,) = json.loads(record.read_text()).values()
    assert {alarm["clause"] for alarm in count["alarms"]} == {clause}
    assert f"breaks {clause}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "folder", "says"),
    [("json:NoSuch", "", "json has no NoSuch"), (SPOILED, "missing", "there is no folder for ")],
    ids=["target", "folder"],
)
def test_what_cannot_be_played_is_one_line_and_writes_nothing(
    target: str, folder: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / folder / "alarms.json"
    assert main(["--seeds", "1", "--output", str(record)], [Control(target, "min_p")], 1) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"alarms: {says}")
    assert said.count("\n") == 1
    assert not record.exists()


def test_the_record_is_complete() -> None:
    record = json.loads(ALARMS.read_text(encoding="utf-8"))
    assert list(complaints(record, controls())) == [], "stale, run `make alarms`"


def test_a_record_that_lacks_something_is_stale() -> None:
    one, two = controls()[:2]
    whole = {"seeds": 1000, "alarms": []}
    assert list(complaints({one.name: whole, two.name: whole}, [one, two])) == []
    assert list(complaints({one.name: whole}, [one, two])) == [f"not played: {two.name}"]
    assert list(complaints({one.name: whole, two.name: whole}, [one])) == [f"no control: {two.name}"]
    assert list(complaints({one.name: whole | {"seeds": 999}}, [one])) == [f"999 seeds only: {one.name}"]
    assert list(complaints({one.name: whole | {"alarms": [{}]}}, [one])) == [f"1 false alarms: {one.name}"]


def canary_settings(kind: str) -> Settings:
    """A right subject of the kind, or for the solo law."""
    targets = {control.judged: control for control in controls()}
    return settings(targets[kind], 0)


def judged_of(canary: Canary, seen: list[str | None]) -> Canary:
    """The canary, whose judge notes the clause when it says no; what a player says of itself is not noted."""

    def judge(player: Any, outcome: Any) -> None:
        try:
            canary.judge(player, outcome)
        except Violation as violation:
            seen.append(violation.clause)
            raise

    return Canary(canary.name, canary.player, judge)


def caught(canary: Canary, world: World, draw: Draw) -> list[int]:
    """The seeds, of 100, whose first history the judge lets pass."""
    missed = []
    for seed in range(100):
        seen: list[str | None] = []
        histories = iter((True, False))
        noting = judged_of(canary, seen)
        explore(Drive(noting.player, world, draw, noting.judge, partial(next, histories)), 2, seed)
        missed += [] if seen else [seed]
    return missed


@pytest.mark.parametrize("kind", [*COMPOSITES, SOLO])
def test_the_judge_catches_the_composite_in_the_first_history(kind: str) -> None:
    chosen = canary_settings(kind)
    with conditions(chosen):
        run = Run(chosen)
        field = KINDS.get(kind, KINDS["min_p"])
        draw = run.draw_from(field.users(random.Random(0)), field.others(random.Random(0)), field)
        assert caught(run.canary_of(field, COMPOSITES[field.field]), REACHABLE, draw) == []


def test_the_judge_catches_the_producers_composite_in_the_first_history() -> None:
    chosen = Settings(load_producer(Elided))
    with conditions(chosen):
        draw = ProducerRun(chosen).draw
        assert caught(producer_suite.canary_of(BreaksEveryUpdate), SCHEDULES, draw) == []


def test_there_is_a_composite_for_every_kind() -> None:
    assert set(COMPOSITES) == set(CANARIES) == set(KINDS)


def refusal(arguments: list[str]) -> str:
    """What a check says that cannot run."""
    result = CliRunner().invoke(app, ["check", *arguments])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize("kind", COMPOSITES)
def test_a_suite_that_accepts_all_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "judge", lambda player, outcome, oracle: [])
    said = refusal([canary_settings(kind).subject.target, "--as", kind])
    assert said == f"logitsproc: suite broken: the composite {COMPOSITES[kind].__name__} passed\n"


def test_a_suite_that_accepts_all_by_the_solo_law_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "judge", lambda player, outcome, oracle: [])
    assert "the composite MinPComposite passed" in refusal([describe(CONTROLS["min_p"])])


def test_a_suite_that_accepts_every_update_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_suite, "troubles", lambda emission: [])
    said = refusal(["--producer", describe(Elided)])
    assert said == "logitsproc: suite broken: the composite BreaksEveryUpdate passed\n"


@pytest.mark.parametrize("named", ["composite", "canary"])
def test_a_right_processor_for_a_canary_is_refused(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem({"composite": COMPOSITES, "canary": CANARIES}[named], "min_p", CONTROLS["min_p"])
    chosen = canary_settings("min_p")
    with conditions(chosen), pytest.raises(CannotRun, match=f"the {named} MinP passed"):
        Run(chosen).canary()
