"""Recordings: what the recorder writes reads back, what a real engine did holds, and what is wrong is one line."""

import base64
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from logitsproc import spec
from logitsproc.conformance import CannotRun
from logitsproc.conformance.bindings import load_subject
from logitsproc.conformance.cli import app
from logitsproc.conformance.history import SHARED, WARM_UP, Added, Growth, History, batches, rows_after
from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality, SamplingParams, host_config
from logitsproc.conformance.kinds import KINDS
from logitsproc.conformance.machine import LITERAL, NO_PROMPT, OVERLAP, REACHABLE, SHRINK, Draw, Drive, World, explore
from logitsproc.conformance.notation import parse
from logitsproc.conformance.plans import Case, Plan, lifted, lower, renamed
from logitsproc.conformance.player import Player
from logitsproc.conformance.recorder import PATH, REMEMBERED, WITH_LOGITS, Recorder
from logitsproc.conformance.recording import MAX_BYTES, read_recording, to_line
from logitsproc.conformance.replaying import first_breach, play_recording, summary
from logitsproc.conformance.suite import Settings, run

RECORDINGS = Path(__file__).parent / "recordings"
SYNC, ASYNC = RECORDINGS / "vllm-0.32-cpu-sync.jsonl", RECORDINGS / "vllm-0.32-cpu-async.jsonl"
RECORDER = "logitsproc.conformance.recorder:Recorder"
CONTROLS = "logitsproc.conformance.miniatures.controls"
CONSUMERS = "logitsproc.conformance.miniatures.consumers"
UNIDIRECTIONAL, SWAP = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP
Entry = dict[str, Any]
HEADER = {"recording": "logitsproc", "version": 1, "host": "an engine", "vocab": 8}
REQUEST = {"request": "A", "params": {}, "prompt": [1]}
ADD = {"step": 0, "outputs": {}, "update": {"size": 1, "removed": [], "added": [[0, "A"]], "moved": []}}
APPLY = {"apply": 0, "rows": 1, "outputs": {}}


def entries_of(path: Path) -> list[Entry]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path: Path, entries: list[Entry]) -> Path:
    path.write_text("".join(map(to_line, entries)))
    return path


def of_step(entries: list[Entry], number: int) -> Entry:
    return next(entry for entry in entries if entry.get("step") == number)


# A real engine.


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (SYNC, "697 steps of vllm 0.32.0, 229 updates, 138 requests"),
        (ASYNC, "498 steps of vllm 0.32.0, 192 updates, 84 requests"),
    ],
)
def test_what_a_real_engine_did_is_what_producers_owe_and_its_own_algorithm(path: Path, says: str) -> None:
    result = CliRunner().invoke(app, ["replay", str(path)])
    updates = says.split(", ")[1].removesuffix(" updates")
    tail = "every update is well-formed and follows the list law"
    assert result.stdout == f"{path}: {says}: {tail}; {updates} of {updates} are the engine's own algorithm\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_the_recordings_have_in_them_what_they_are_for() -> None:
    sync, late = (read_recording(path).history for path in (SYNC, ASYNC))
    for history in (sync, late):
        added = [add.request for step in history.steps for add in step.added]
        assert len(added) > len(history.requests) + 40
        assert {direction for step in history.steps for _, _, direction in step.moved} == {"UNIDIRECTIONAL", "SWAP"}
    assert not any(add.fresh for step in sync.steps for add in step.added)
    assert [step.applies for step in sync.steps].count(0) == 1
    assert sum(growth.late for step in late.steps for growth in step.growth) > 1000
    assert sum(add.fresh for step in late.steps for add in step.added) > 40
    assert not any(growth.dropped for step in late.steps for growth in step.growth)


@pytest.mark.parametrize("path", [SYNC, ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("target", "kind"), [("MinTokens", "min_tokens"), ("LogitBias", "logit_bias"), ("MinP", "min_p")]
)
def test_right_processors_are_right_on_a_real_engines_history(path: Path, target: str, kind: str) -> None:
    history = read_recording(path).history
    assert play_recording(history, load_subject(f"{CONTROLS}:{target}"), kind) is None


@pytest.mark.parametrize(
    ("path", "target", "kind", "clause"),
    [
        (ASYNC, "ForgetsReplacement", "min_p", "PROC-STATE-DEPARTED"),
        (SYNC, "SleepsWhenQuiet", "min_tokens", "PROC-QUIET"),
        (ASYNC, "IgnoresMoves", "min_p", "UPD-MOVE"),
    ],
)
def test_a_wrong_processor_fails_on_a_recording_and_its_history_is_small(
    path: Path, target: str, kind: str, clause: str
) -> None:
    failure = play_recording(read_recording(path).history, load_subject(f"{CONSUMERS}:{target}"), kind)
    assert failure is not None
    assert failure.reproduced
    assert len(failure.history.steps) <= 4
    assert failure.clause.id == clause


def test_the_solo_law_judges_where_no_kind_is_named() -> None:
    result = CliRunner().invoke(app, ["replay", str(ASYNC), f"{CONSUMERS}:ForgetsReplacement"])
    assert result.exit_code == 1
    assert "breaks PROC-STATE-DEPARTED" in result.stdout
    assert "2 steps:" in result.stdout


# What an engine may do wrong.


def without_its_swap(entries: list[Entry]) -> None:
    step = next(
        entry for entry in entries if [m for m in (entry.get("update") or {}).get("moved", []) if m[2] == "SWAP"]
    )
    step["update"]["moved"].pop()


def first_update(entries: list[Entry], has: str) -> Entry:
    return next(entry["update"] for entry in entries if (entry.get("update") or {}).get(has))


def of_another_size(entries: list[Entry]) -> None:
    first_update(entries, "added")["size"] += 1


def out_of_range(entries: list[Entry]) -> None:
    first_update(entries, "removed")["removed"][0] = 9


def removed_and_added(entries: list[Entry]) -> None:
    update = first_update(entries, "added")
    update["removed"].append(update["added"][0][0])


def with_a_hole(entries: list[Entry]) -> None:
    step = next(
        entry for entry in entries if [m for m in (entry.get("update") or {}).get("moved", []) if m[2] != "SWAP"]
    )
    step["update"]["moved"] = []
    rows = step.pop("rows")
    step["update"]["removed"] += [row for row in range(len(rows)) if row not in step["update"]["removed"]][:1]


def unsaid(entries: list[Entry]) -> None:
    step = next(entry for entry in entries if (entry.get("update") or {}).get("removed"))
    step["update"] = None


def saying_nothing(entries: list[Entry]) -> None:
    quiet = next(entry for entry in entries if "step" in entry and entry["update"] is None)
    quiet["update"] = {"size": len(quiet["rows"]), "removed": [], "added": [], "moved": []}


@pytest.mark.parametrize(
    ("damage", "clause"),
    [
        (without_its_swap, "PROD-REPLAY"),
        (of_another_size, "PROD-SIZE"),
        (out_of_range, "PROD-RANGE"),
        (removed_and_added, "PROD-DISJOINT"),
        (with_a_hole, "PROD-CONTIGUOUS"),
        (unsaid, "PROD-NONE"),
        (saying_nothing, "PROD-NONE"),
    ],
)
def test_what_an_engine_does_wrong_is_found(tmp_path: Path, damage: Callable[[list[Entry]], None], clause: str) -> None:
    entries = entries_of(SYNC)
    damage(entries)
    path = written(tmp_path / "damaged.jsonl", entries)
    result = CliRunner().invoke(app, ["replay", str(path), f"{CONTROLS}:MinP"])
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{path}: step ")
    assert f" breaks {clause}: " in result.stdout
    assert result.stdout.count("\n") == 1


def test_where_the_engines_own_rows_are_not_known_the_line_does_not_claim_them(tmp_path: Path) -> None:
    entries = [
        {key: value for key, value in entry.items() if "step" not in entry or key != "rows"}
        for entry in entries_of(SYNC)
    ]
    recording = read_recording(written(tmp_path / "plain.jsonl", entries))
    assert first_breach(recording.history) is None
    assert ": every update is well-formed; 229 of 229 are" in summary(recording)


# Lifting.


@pytest.mark.parametrize(
    ("text", "plans"),
    [
        ("[A, B, C]\nremove 2; move 1->0", 2),
        ("[A, B, C]\nremove 0; move 2->0", 2),
        ("[A, B]\nremove 1\nB += [3, ?4]\nadd B@1 fresh", 4),
        ("[A, B]\nadd C@1", 2),
        ("[A, B]\nadd C@1; add D@0", 1),
        ("[A, B]\nadd B@1", 2),
        ("[A, B]\nremove 1; size 1", 2),
        ("[A, B]\nremove 1; size 2", 1),
        ("[A, B]\nswap 0<->1", 2),
        ("[A, B]\nquiet", 2),
        ("vocab 1\n[A]\nlogits A = [1]", 0),
    ],
)
def test_a_step_is_lifted_if_the_engine_would_have_made_it(text: str, plans: int) -> None:
    history = parse(text)
    items = lifted(history).items
    assert sum(isinstance(item, Plan) for item in items) == plans
    again = lower(lifted(history))
    assert list(batches(again)) == list(batches(history))
    assert [step.growth for step in again.steps] == [step.growth for step in history.steps]


# The recorder.


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recorder writes to."""
    path = tmp_path / "run.jsonl"
    monkeypatch.setenv(PATH, str(path))
    return path


def built(vocab: int = 8) -> Recorder:
    return Recorder(host_config(vocab, 16), torch.device("cpu"), False)


def machine_made(world: World, count: int, seed: int) -> list[Case]:
    """Histories of a world, played to nothing."""
    made: list[Case] = []
    kind = KINDS["min_tokens"]
    draw = Draw([{"min_tokens": 3, "stop_token_ids": [1]}, {"min_p": 0.5}], [{}, {"logit_bias": {3: 1.5}}], (8,))
    subject = load_subject(f"{CONTROLS}:MinTokens")
    drive = Drive(partial(Player, kind.prepare(subject)), world, draw, lambda player, outcome: None, finish=made.append)
    explore(drive, count, seed)
    return made


def play(history: History) -> None:
    player = Player(load_subject(RECORDER, "plain"), replace(history, steps=()))
    for step in history.steps:
        player.play(step)


def started(history: History) -> History:
    """The history from its first update on; what comes before is a warm-up."""
    first = next((number for number, step in enumerate(history.steps) if not step.is_quiet), len(history.steps))
    warm = any(step.applies for step in history.steps[:first]) or (WARM_UP in history.options and bool(history.steps))
    return replace(history, steps=history.steps[first:], options=frozenset({WARM_UP} if warm else ()))


def told(history: History) -> list[tuple[Any, ...]]:
    """The steps, with every size said; of growth what is late and what is dropped, for requests that stay."""
    rows: list[Any] = []
    steps = []
    for step, names in zip(history.steps, batches(history), strict=True):
        size = None if step.is_quiet else rows_after([*rows], step) if step.size is None else step.size
        kept = {(grown.request, grown.late, grown.dropped) for grown in step.growth if grown.request in names}
        late = {grown for grown in kept if grown[1:] != (0, 0)}
        steps.append((late, step.removed, step.added, step.moved, size, step.applies))
        rows = list(names)
    return steps


@pytest.mark.parametrize("world", [REACHABLE, LITERAL, OVERLAP, SHRINK, NO_PROMPT], ids=lambda world: world.name)
def test_a_history_played_to_the_recorder_reads_back_the_same(recorded: Path, world: World) -> None:
    for case in machine_made(world, 40, 7):
        if SHARED in case.header.options or not case.items:
            continue
        history = lower(renamed(case))
        play(history)
        read = read_recording(recorded).history
        recorded.unlink()
        expected = started(history)
        assert told(read) == told(expected)
        assert rows_of(read) == rows_of(expected)
        assert (read.options, read.vocab) == (expected.options, expected.vocab)
        for name, arrival in read.requests.items():
            assert arrival.prompt == history.requests[name].prompt
            assert SamplingParams(**arrival.params) == SamplingParams(**history.requests[name].params)


def rows_of(history: History) -> list[list[tuple[str, Any, tuple[int, ...]]]]:
    """What every row serves at each step, by meaning."""
    outputs: dict[str, list[int]] = {name: list(arrival.output) for name, arrival in history.requests.items()}
    meanings = []
    for step, names in zip(history.steps, batches(history), strict=True):
        for grown in step.growth:
            del outputs[grown.request][len(outputs[grown.request]) - grown.dropped :]
            outputs[grown.request] += grown.tokens
        served = [(history.requests[name], outputs[name]) for name in names if name is not None]
        meanings.append(
            [(repr(SamplingParams(**arrival.params)), arrival.prompt, tuple(output)) for arrival, output in served]
        )
    return meanings


@pytest.mark.parametrize("seed", [1, 2])
def test_requests_that_share_their_params_mean_the_same(recorded: Path, seed: int) -> None:
    seen = 0
    for case in machine_made(REACHABLE, 40, seed):
        if SHARED in case.header.options and case.items:
            history = lower(renamed(case))
            play(history)
            assert rows_of(read_recording(recorded).history) == rows_of(started(history))
            recorded.unlink()
            seen += 1
    assert seen > 5


def test_the_recorder_is_an_idle_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH, os.devnull)
    report = run(Settings(load_subject(RECORDER, "plain"), seconds=3.0))
    assert report.failure is None
    assert report.evidence.idle_copies == 0
    assert not [beyond.world.name for beyond in report.beyond if beyond.failure]


def test_apply_gives_back_the_tensor_it_got(recorded: Path) -> None:
    recorder, logits = built(), torch.randn(2, 8)
    before = logits.clone()
    assert recorder.apply(logits) is logits
    assert torch.equal(logits, before)
    assert recorder.is_argmax_invariant() is False
    assert entries_of(recorded)[1] == {"apply": None, "rows": 2, "outputs": {}}
    assert WARM_UP in read_recording(recorded).history.options


def test_outputs_that_a_request_comes_with_are_told(recorded: Path) -> None:
    play(parse("A: output=[7, 5]\n[A]\nA += [3]"))
    assert [step.growth for step in read_recording(recorded).history.steps] == [
        (Growth("A", (7, 5)),),
        (Growth("A", (3,)),),
    ]


def test_a_request_that_comes_back_is_known_by_its_params_and_its_outputs(recorded: Path) -> None:
    recorder, params, output = built(), SamplingParams(min_p=0.5), [4]
    recorder.update_state(BatchUpdate(1, [], [(0, params, [1], output)], []))
    recorder.update_state(BatchUpdate(0, [0], [], []))
    output.append(5)
    recorder.update_state(BatchUpdate(1, [], [(0, params, [1], output)], []))
    recorder.update_state(BatchUpdate(1, [], [(0, params, [1], [4, 5, 6])], []))
    recorder.update_state(BatchUpdate(1, [], [(0, params, [1], [4, 7])], []))
    recorder.update_state(BatchUpdate(1, [], [(0, params, [2], [4, 7])], []))
    recorder.update_state(BatchUpdate(1, [], [(0, SamplingParams(min_p=0.5), [1], [4, 7])], []))
    added = [add for step in read_recording(recorded).history.steps for add in step.added]
    assert added == [Added(0, "A"), Added(0, "A"), Added(0, "A", True), *(Added(0, name) for name in "BCD")]


def test_a_request_that_stays_is_not_taken_for_the_one_that_comes(recorded: Path) -> None:
    recorder, params = built(), SamplingParams()
    recorder.update_state(BatchUpdate(1, [], [(0, params, [1], [])], []))
    recorder.update_state(BatchUpdate(2, [], [(1, params, [1], [])], []))
    recorder.update_state(BatchUpdate(2, [], [(1, params, [1], [])], [(1, 0, SWAP)]))
    added = [add for step in read_recording(recorded).history.steps for add in step.added]
    assert added == [Added(0, "A"), Added(1, "B"), Added(1, "B", True)]


def test_a_request_may_leave_and_come_back_in_one_update(recorded: Path) -> None:
    recorder, params, lists = built(), [SamplingParams() for _ in range(3)], [[1], [2], [3]]
    a, b, c = ((one, [1], ids) for one, ids in zip(params, lists, strict=True))
    recorder.update_state(BatchUpdate(3, [], [(0, *a), (1, *b), (2, *c)], []))
    recorder.update_state(BatchUpdate(3, [], [(0, *b), (1, *a)], []))
    recorder.update_state(BatchUpdate(2, [], [(0, *a)], [(2, 1, UNIDIRECTIONAL)]))
    recorder.update_state(BatchUpdate(2, [], [(1, *c)], []))
    history = read_recording(recorded).history
    assert list(batches(history))[1:3] == [["B", "A", "C"], ["A", "C"]]
    assert history.steps[3].added == (Added(1, "C"),)


def test_only_the_latest_departed_are_remembered(recorded: Path) -> None:
    recorder = built()
    for _ in range(REMEMBERED + 9):
        recorder.update_state(BatchUpdate(1, [], [(0, SamplingParams(), [1], [])], []))
    assert len(recorder.departed) == REMEMBERED


def test_updates_without_meaning_are_recorded_as_they_are(recorded: Path) -> None:
    recorder = built()
    update = BatchUpdate(
        1, [5], [(3, SamplingParams(), None, [])], [(7, 2, SWAP), (6, 6, UNIDIRECTIONAL), (3, 9, SWAP)]
    )
    recorder.update_state(update)
    recorder.apply(torch.zeros(1, 8))
    recorder.update_state(BatchUpdate(0, [9, 9], [], [(4, 4, SWAP)]))
    first, second = read_recording(recorded).history.steps
    assert first.removed == (5,)
    assert first.moved == ((7, 2, "SWAP"), (6, 6, "UNIDIRECTIONAL"), (3, 9, "SWAP"))
    assert (second.removed, second.size) == ((9, 9), 0)
    result = CliRunner().invoke(app, ["replay", str(recorded)])
    assert result.exit_code == 1
    assert "step 0 breaks PROD-RANGE: remove 5, which holds no request" in result.stdout


def test_what_cannot_be_recorded_ends_the_recording_and_not_the_engine(
    recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = built()
    recorder.update_state("no update at all")
    recorder.update_state(BatchUpdate(1, [], [(0, SamplingParams(), [1], [])], []))
    recorder.apply(torch.zeros(1, 8))
    assert caplog.text.count("the recording ends at step 0") == 1
    assert len(recorded.read_text().splitlines()) == 1


class Odd:
    """A value that JSON has not, and that will not say what it is."""

    def __repr__(self) -> str:
        raise RuntimeError


def test_exotic_params_are_recorded(recorded: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    extra = {
        "t": torch.ones(1),
        "odd": Odd(),
        "set": {3, 1},
        5: b"x",
        "nan": float("nan"),
        "big": 10**5000,
        "e": endless,
    }
    params = SamplingParams(
        stop_token_ids=[3, 1], logit_bias={2: 0.5}, seed=4, max_tokens=9, stop=["x"], extra_args=extra
    )
    built().update_state(BatchUpdate(1, [], [(0, params, np.array([1, 2]), [])], []))
    arrival = read_recording(recorded).history.requests["A"]
    given = arrival.params.pop("extra_args")
    assert arrival.params == {
        "stop_token_ids": [3, 1],
        "logit_bias": {2: 0.5},
        "seed": 4,
        "max_tokens": 9,
        "stop": ["x"],
    }
    assert (given["t"], given["odd"], given["set"], given["5"]) == ("tensor([1.])", "Odd", [1, 3], "b'x'")
    assert (given["nan"], given["big"]) == ("nan", "int")


def test_logits_are_recorded_on_demand_and_shown_again(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITH_LOGITS, "1")
    header = "vocab 2\nA: prompt=[1]\nB: prompt=None\n"
    play(parse(f"{header}[A, B]\nlogits A = [0.5, inf]\nlogits B = [-inf, -0.0]\nremove 1; no apply"))
    first, second = read_recording(recorded).history.steps
    assert [(sight.request, str(sight.logits), sight.expected) for sight in first.sights] == [
        ("A", "(0.5, inf)", None),
        ("B", "(-inf, -0.0)", None),
    ]
    assert second.sights == ()


def test_a_recording_with_logits_is_played_with_them(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITH_LOGITS, "1")
    play(parse("vocab 8\nA: min_p=0.5\n[A]\nlogits A = [9, 0, 0, 0, 0, 0, 0, 0]\nadd B@0\nquiet"))
    history = read_recording(recorded).history
    assert play_recording(history, load_subject(f"{CONTROLS}:MinP"), "min_p") is None
    failure = play_recording(history, load_subject(f"{CONSUMERS}:ForgetsReplacement"), "min_p")
    assert failure is not None
    assert failure.clause.id == "PROC-STATE-DEPARTED"
    assert len(failure.history.steps) == 2


def test_no_file_is_written_over(recorded: Path) -> None:
    recorders = [built() for _ in range(3)]
    assert len(recorders) == 3
    assert sorted(path.name for path in recorded.parent.iterdir()) == ["run.1.jsonl", "run.2.jsonl", "run.jsonl"]
    assert all(read_recording(path).history.steps == () for path in recorded.parent.iterdir())


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "LOGITSPROC_RECORD names no file to record to"),
        ("no/such/folder/run.jsonl", "LOGITSPROC_RECORD: no/such/folder/run.jsonl cannot be written: No such file"),
        (".", "LOGITSPROC_RECORD: . cannot be written: Is a directory"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, path: str, says: str
) -> None:
    monkeypatch.setattr("os.environ", {PATH: path})
    with pytest.raises(ValueError, match="LOGITSPROC_RECORD") as caught:
        built()
    assert str(caught.value).startswith(says)


KILLED = """
import os, signal, torch
from logitsproc.conformance.interface import BatchUpdate, SamplingParams, host_config
from logitsproc.conformance.recorder import Recorder
recorder, output = Recorder(host_config(8, 16), torch.device("cpu"), False), []
recorder.update_state(BatchUpdate(1, [], [(0, SamplingParams(), [1], output)], []))
for token in range(5):
    recorder.apply(torch.zeros(1, 8))
    output.append(token)
    recorder.update_state(None)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_written_survives_a_kill(recorded: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    recording = read_recording(recorded)
    assert not recording.cut
    assert [step.growth for step in recording.history.steps[1:]] == [(Growth("A", (token,)),) for token in range(5)]


# Reading.


def test_the_example_of_the_spec_is_a_recording(tmp_path: Path) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", spec.chapter_text("recording"), re.DOTALL)
    path = tmp_path / "example.jsonl"
    path.write_text(block)
    history = read_recording(path).history
    assert first_breach(history) is None
    drawn = parse(
        "A: min_p=0.5, prompt=[5, 1, 3]\nB: prompt=None\n[A, B]\nA += [7]; B += [?9]\nA += [4]; remove 1 => [A]"
    )
    assert (history.requests, lower(lifted(history)).steps[:2]) == (drawn.requests, drawn.steps[:2])
    assert history.steps[2] == replace(drawn.steps[2], size=1)


def test_placeholders_take_their_ids_from_later_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path / "late.jsonl",
        [
            HEADER,
            REQUEST,
            {**ADD, "outputs": {"A": [0, [5, -1]]}},
            {"apply": 0, "rows": 1, "outputs": {"A": [1, [6]]}},
            {"step": 1, "outputs": {"A": [2, [-1]]}, "update": None},
            {"step": 2, "outputs": {"A": [2, [7, 3]]}, "update": None},
            {"step": 3, "outputs": {"A": [4, [-1, -1]]}, "update": None},
            {"apply": 3, "rows": 1, "outputs": {"A": [4, [2, 2, 1]]}},
            {"step": 4, "outputs": {"A": [5, [4]]}, "update": None},
            {"step": 5, "outputs": {"A": [6, [-1]]}, "update": None},
        ],
    )
    steps = read_recording(path).history.steps
    assert [step.growth for step in steps] == [
        (Growth("A", (5, 6), 1),),
        (Growth("A", (7,), 1),),
        (Growth("A", (3,)),),
        (Growth("A", (2, 2), 2),),
        (Growth("A", (4,), 0, 1),),
        (Growth("A", (0,), 1),),
    ]
    assert [step.applies for step in steps] == [1, 0, 0, 1, 0, 0]


def test_the_first_line_tells_a_recording_from_a_typed_history(tmp_path: Path) -> None:
    path = tmp_path / "either"
    path.write_text("[A]\n")
    assert CliRunner().invoke(app, ["replay", str(path)]).stdout == "step 0: [A]\n"
    written(path, [HEADER, REQUEST, ADD, APPLY])
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert result.stdout.endswith(
        "1 step of an engine, 1 update, 1 request: every update is well-formed; 1 of 1 are the engine's own algorithm\n"
    )


def test_a_last_line_that_was_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    path = written(tmp_path / "cut.jsonl", [HEADER, REQUEST, ADD, APPLY])
    path.write_text(path.read_text()[:-9])
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert result.exit_code == 0
    assert result.stderr == f"logitsproc: {path}: the last line was cut off, and is left out\n"
    assert "1 step of an engine" in result.stdout
    assert read_recording(path).history.steps[0].applies == 0


def says_of(path: Path, *arguments: str) -> str:
    """The one line with which a file is refused."""
    result = CliRunner().invoke(app, ["replay", str(path), *arguments])
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith(f"logitsproc: {path}")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix(f"logitsproc: {path}").rstrip()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", " is not a recording: line 1 is cut off"),
        (b"{\n", " is not a recording: line 1 is not JSON: Expecting property name"),
        (b"{} \n", ' is not a recording: line 1 is not {"recording": "logitsproc", ...}'),
        (b'{"a": 1}\n{"b": 2}\n', ' is not a recording: line 1 is not {"recording": "logitsproc", ...}'),
        (b'{"recording": "\xff"}\n', " is not a recording: line 1 is not UTF-8 text"),
        (b"{\0\x01\x02\n\x03", " is not a recording: line 1 is not JSON"),
        (b'{"a":' * 100_000 + b"\n", " is not a recording: line 1 is not JSON: maximum recursion depth"),
        (b'{"recording": "logitsproc", "version": 2, "new": 1}\n', "line 1 says version 2 of the format"),
        (b'{"recording": "logitsproc", "version": "1", "host": "x"}\n', "line 1 version is not a number"),
        (b'{"recording": "logitsproc", "version": 1, "host": "\\n", "vocab": 8}\n', "line 1 host is not a name"),
        (b'{"recording": "logitsproc", "version": 1, "host": "x", "vocab": 0}\n', "vocab is 0, not a number from 1"),
        (b'{"recording": "logitsproc", "version": 1, "host": "x", "vocab": 8, "more": 1}\n', "'more' is none of"),
    ],
)
def test_what_is_no_recording_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert says in says_of(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"[]", "is not a JSON object"),
        (b"[" * 100_000, "is not JSON: maximum recursion depth"),
        (b'{"step": NaN}', "is not JSON: there is no NaN in it"),
        (b'{"step": ' + b"9" * 5000 + b"}", "is not JSON: Exceeds the limit"),
        (b'{"step": "\xff"}', "is not UTF-8 text"),
        (b"{}", "none of request, step, apply"),
        (json.dumps(HEADER).encode(), "a second header"),
        ({**REQUEST}, "A is declared twice"),
        ({**REQUEST, "request": "b"}, "request is not a name: a capital letter first"),
        ({"request": "B", "params": {}}, "has no prompt"),
        (
            {**REQUEST, "request": "B", "prompt": [8]},
            "prompt is not a list of token ids of the vocabulary's 8, or null",
        ),
        ({**REQUEST, "request": "B", "params": {"min_q": 1}}, "no such SamplingParams field: 'min_q'"),
        ({**REQUEST, "request": "B", "params": {"seed": "x"}}, "seed cannot be 'x'"),
        ({**REQUEST, "request": "B", "params": {"logit_bias": {"x": 1}}}, "logit_bias is not an object of token id"),
        ({**REQUEST, "request": "B", "params": {"logit_bias": [1]}}, "logit_bias is not an object of token id"),
        ({**ADD, "step": 2}, "step 2, where step 1 comes next"),
        ({**ADD, "step": True}, "step is not a number"),
        ({"step": 1, "outputs": {}}, "has no update"),
        ({"step": 1, "outputs": {}, "update": []}, "update is not an object, or null"),
        ({"step": 1, "outputs": {"B": [0, []]}, "update": None}, "request 'B' is not declared"),
        ({"step": 1, "outputs": {"A": [1, []]}, "update": None}, "outputs of A: 1 ids stay, of 0"),
        ({"step": 1, "outputs": {"A": [0, [8]]}, "update": None}, "outputs of A: not [kept, [ids]] with ids of"),
        ({"step": 1, "outputs": {"A": [0, [-2]]}, "update": None}, "outputs of A: not [kept, [ids]] with ids of"),
        ({"step": 1, "outputs": {"A": 0}, "update": None}, "outputs of A: not [kept, [ids]] with ids of"),
        ({"step": 1, "outputs": {}, "update": None, "rows": ["B"]}, "rows is not a list of requests"),
        ({"step": 1, "outputs": {}, "update": None, "rows": [["A"]]}, "rows is not a list of requests"),
        ({**ADD, "step": 1, "update": {"size": 1}}, "has no removed"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "removed": [-70000]}}, "-70000 is not a row from"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "removed": [10**30]}}, "is not a row from -65536 to 65536"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "size": 10**9}}, "size is 1000000000, not a number from 0"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "added": [[0, {}]]}}, "request {} is not declared"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "added": [[0, "A", "new"]]}}, "is not [row, request]"),
        ({**ADD, "step": 1, "update": {**ADD["update"], "moved": [[0, 1, "BOTH"]]}}, "is not [row, row, 'UNI"),
        ({"apply": 1, "rows": 1, "outputs": {}}, "apply 1 follows step 0"),
        ({"apply": None, "rows": 1, "outputs": {}}, "apply None follows step 0"),
        ({**APPLY, "rows": -1}, "rows is -1, not a number from 0"),
        ({**APPLY, "logits": {}}, "logits are not an object of dtype float32"),
        (
            {**APPLY, "logits": {"dtype": "float32", "shape": [1, 9], "base64": ""}},
            "logits of shape [1, 9], not [1, 8]",
        ),
        ({**APPLY, "logits": {"dtype": "float32", "shape": [1, 8], "base64": "AAAA"}}, "logits are not the base64 of"),
        ({**APPLY, "logits": {"dtype": "float32", "shape": [1, 8], "base64": "?"}}, "logits are not the base64 of"),
        ({**APPLY, "logits": {"dtype": "float32", "shape": [1, 8], "base64": 5}}, "logits are not the base64 of"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: bytes | Entry, says: str) -> None:
    path = written(tmp_path / "wrong.jsonl", [HEADER, REQUEST, ADD, APPLY])
    raw = line if isinstance(line, bytes) else to_line(line).encode().rstrip()
    path.write_bytes(path.read_bytes() + raw + b"\n")
    found = says_of(path)
    assert found.startswith(", line 5: ")
    assert says in found


def test_params_that_no_host_lets_in_are_one_line(tmp_path: Path) -> None:
    path = written(tmp_path / "params.jsonl", [HEADER, {**REQUEST, "params": {"min_p": 3}}, ADD, APPLY])
    result = CliRunner().invoke(app, ["replay", str(path), f"{CONTROLS}:MinP"])
    assert result.exit_code == 2
    assert result.stderr == "logitsproc: request A: min_p must be a number from 0 to 1, not 3\n"


def test_a_file_that_is_too_large_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(MAX_BYTES + 1)
    assert says_of(path) == f" is larger than {MAX_BYTES} bytes"


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be read: No such file"):
        read_recording(tmp_path / "nowhere")


def test_little_endian_floats_are_what_the_format_says(tmp_path: Path) -> None:
    data = base64.b64encode(struct.pack("<8f", *range(8))).decode()
    logits = {"dtype": "float32", "shape": [1, 8], "base64": data}
    path = written(tmp_path / "logits.jsonl", [HEADER, REQUEST, ADD, {**APPLY, "logits": logits}])
    (step,) = read_recording(path).history.steps
    assert step.sights[0].logits == tuple(map(float, range(8)))


NESTED: Any = []
for _ in range(40):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"step": 0, "step": 0, "outputs": {}, "update": null}', "a key stands twice in an object"),
        ({**REQUEST, "request": "B", "params": {"extra_args": {"a": NESTED}}}, "extra_args is nested deeper than 32"),
    ],
)
def test_what_could_mean_two_things_or_break_a_reader_is_refused(
    tmp_path: Path, line: bytes | Entry, says: str
) -> None:
    path = written(tmp_path / "wrong.jsonl", [HEADER, REQUEST])
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    path.write_bytes(path.read_bytes() + raw + b"\n")
    assert says in says_of(path)


def test_a_row_below_zero_is_the_engines_fault(tmp_path: Path) -> None:
    step = {"step": 0, "outputs": {}, "update": {"size": 1, "removed": [-1], "added": [[0, "A"]], "moved": []}}
    path = written(tmp_path / "below.jsonl", [HEADER, REQUEST, step])
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert result.exit_code == 1
    assert "step 0 breaks PROD-RANGE: remove -1" in result.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"", "holds no history"), (b"# nothing\n", "holds no history"), (b"\xef\xbb\xbf[A]\n", "step 0: [A]")],
)
def test_an_empty_file_is_said_and_a_byte_order_mark_is_nothing(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert says in result.output
    assert result.exit_code == (2 if "no history" in says else 0)


def test_what_never_ends_is_read_to_a_limit() -> None:
    result = CliRunner().invoke(app, ["replay", "/dev/zero"])
    assert result.exit_code == 2
    assert result.stderr == "logitsproc: /dev/zero is larger than 200000000 bytes\n"


def test_a_recording_through_a_pipe_is_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(SYNC.read_bytes()))
    writer.start()
    result = CliRunner().invoke(app, ["replay", str(pipe)])
    writer.join()
    assert "697 steps of vllm 0.32.0" in result.stdout


def test_a_kind_that_there_is_not_is_said_before_anything_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(SYNC), "--as", "nope"])
    assert result.exit_code == 2
    assert "no reference for 'nope'" in result.stderr
