"""Plays everything that is right for many seeds and counts false alarms: `alarms.py [--seeds N] [--output FILE]`.

The same seed gives the same histories; every control plays the same ones, with params of its own kind.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from test_spec import OPTIMIZED

from logitsproc.conformance.bindings import CannotRun, describe, load_subject
from logitsproc.conformance.explanation import explain
from logitsproc.conformance.history import History, Step, grow, new_request, to_update
from logitsproc.conformance.kinds import KINDS, Pool
from logitsproc.conformance.machine import BEYOND, OPTION_MIX, REACHABLE, SCHEDULES, Draw, Drive, World, explore
from logitsproc.conformance.miniatures.catalogue import CONTROLS, NO_REPEAT, SOLO_CONTROLS, kind_of
from logitsproc.conformance.miniatures.producer_shapes import PRODUCER_SHAPES
from logitsproc.conformance.miniatures.shapes import SHAPES
from logitsproc.conformance.notation import format_history
from logitsproc.conformance.plans import Case, Lowering, lower
from logitsproc.conformance.player import Violation
from logitsproc.conformance.producers.player import ProducerPlayer
from logitsproc.conformance.producers.reference import Elided, Explicit
from logitsproc.conformance.producers.suite import MIXES, ProducerRun, judged, load_producer
from logitsproc.conformance.suite import Failure, Run, Settings, conditions
from logitsproc.reference.batch import Batch, IllFormed, apply_update
from logitsproc.reference.request import Request

ALARMS = Path(__file__).parent / "mutants" / "alarms.json"
SEEDS = 1000
HISTORIES = 2
"""How many of each world a seed has."""
PROCESSES = 2
SOLO, PRODUCER = "the solo law", "a producer"


@dataclass(frozen=True)
class Control:
    """What is right, by its target, and what it is judged as: a kind, by the solo law, or a producer."""

    target: str
    judged: str

    @property
    def name(self) -> str:
        """What it is called in the record."""
        return f"{self.target.removeprefix('logitsproc.')} as {self.judged}"


@dataclass
class Count:
    """What a control has played, and the false alarms."""

    seeds: int = 0
    histories: int = 0
    steps: int = 0
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def __iadd__(self, other: Count) -> Count:
        """Both together."""
        for name in ("seeds", "histories", "steps", "alarms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def control(cls: type, *, solo: bool = False) -> Control:
    """A processor, judged by its kind's reference if it has one, or by the solo law."""
    kind = None if solo else kind_of(cls)
    return Control(describe(cls), kind.field if kind else SOLO)


def controls() -> list[Control]:
    """Everything that is right, each once."""
    found = [control(cls) for cls in (*CONTROLS, *SHAPES)]
    found += [control(cls, solo=True) for cls in SOLO_CONTROLS]
    found += [Control(f"logitsproc.optimized:{name}", kind) for kind, name in OPTIMIZED.items()]
    found += [Control(describe(cls), PRODUCER) for cls in (Elided, Explicit, *PRODUCER_SHAPES)]
    return list(dict.fromkeys(found))


class Picks(Draw):
    """What requests draw: the pick itself, for which every control has params of its own."""

    def params(self, pick: int, turn: int) -> dict[str, Any]:
        """The pick and the turn."""
        return {"pick": pick, "turn": turn}


@dataclass
class Model:
    """Plays histories to nobody."""

    header: History
    batch: Batch = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)

    def arrive(self, name: str, arrival: Any) -> None:
        """Makes a request known."""
        self.requests[name] = new_request(name, arrival)

    def play(self, step: Step) -> None:
        """Tokens land and rows change."""
        for growth in step.growth:
            grow(self.requests[growth.request].output, growth)
        apply_update(self.batch, to_update(step, self.requests, self.batch))


def made(world: World, seed: int) -> list[Case]:
    """The histories of a seed in a world, with picks for params and the number of a vocabulary for its size."""
    cases: list[Case] = []
    draw = Picks([], [], (0, 1), mixes=MIXES if world is SCHEDULES else OPTION_MIX)
    explore(Drive(Model, world, draw, lambda player, outcome: None, finish=cases.append), HISTORIES, seed)
    return cases


def drawn(case: Case, draw: Draw) -> Case:
    """The history as a control plays it."""
    header, mixes = case.header, draw.mixes
    requests = {name: replace(come, params=dict(draw.params(**come.params))) for name, come in header.requests.items()}
    vocab, options = draw.vocabs[header.vocab % len(draw.vocabs)], draw.options(mixes.index(header.options))
    return replace(case, header=replace(header, requests=requests, vocab=vocab, options=options, kind=draw.kind))


def params_for(cls: type, seed: int) -> Pool | None:
    """The params of a processor that the solo law judges: those of its kind, if it has one."""
    kind, chance = kind_of(cls), random.Random(seed)
    return [*kind.users(chance), *kind.others(chance)] if kind else NO_REPEAT


def settings(control: Control, seed: int) -> Settings:
    """How a processor is judged; time decides nothing."""
    subject = load_subject(control.target)
    kind = KINDS.get(control.judged)
    params = None if kind else params_for(subject.factory, seed)
    return Settings(subject, kind, params=params, seed=seed, seconds=math.inf)


def play_processor(control: Control, seed: int, cases: dict[str, list[Case]]) -> Count:
    """Every history of a seed, in each world in which the processor says that it holds."""
    chosen, count = settings(control, seed), Count(1)
    with conditions(chosen):
        run = Run(chosen)
        for world in (REACHABLE, *BEYOND):
            if world.literal and chosen.subject.reachable:
                continue
            for case in cases[world.name]:
                case = drawn(case, run.draw)
                history = lower(case)
                count += Count(0, 1, len(history.steps))
                if violation := run.replay(history):
                    count.alarms.append(alarm(run.failure(world, case, violation), seed, chosen))
    return count


def play_producer(control: Control, seed: int, cases: dict[str, list[Case]]) -> Count:
    """Every schedule of a seed."""
    chosen, count = Settings(load_producer(control.target), seed=seed, seconds=math.inf), Count(1)
    with conditions(chosen):
        run = ProducerRun(chosen)
        for case in cases[SCHEDULES.name]:
            case = drawn(case, run.draw)
            player = ProducerPlayer(chosen.subject, case.header)
            violation = scheduled(player, case)
            count += Count(0, 1, player.count)
            if violation:
                count.alarms.append(alarm(run.failure(case, violation), seed, chosen))
    return count


def scheduled(player: ProducerPlayer, case: Case) -> Violation | None:
    """The first violation of a producer that is asked for these plans."""
    lowering = Lowering(case.dialect, requests=player.requests)
    try:
        for item in case.items:
            lowering.batch = list(player.batch)
            if (step := lowering.lower(item)) is not None:
                judged(player, player.play(step))
    except Violation as violation:
        return violation
    except IllFormed as error:
        raise CannotRun(f"no schedule: {error}") from error
    return None


def alarm(failure: Failure, seed: int, chosen: Settings) -> dict[str, Any]:
    """A false alarm, printed and as the record has it."""
    print(f"seed {seed}, {failure.world.says}:\n{explain(failure, chosen.subject)}\n", flush=True)
    return {
        "seed": seed,
        "world": failure.world.name,
        "clause": failure.clause.id,
        "history": format_history(failure.history).splitlines(),
    }


def play(chosen: Sequence[Control], seed: int) -> list[Count]:
    """What each control makes of a seed."""
    cases = {world.name: made(world, seed) for world in (REACHABLE, *BEYOND, SCHEDULES)}
    return [(play_producer if one.judged == PRODUCER else play_processor)(one, seed, cases) for one in chosen]


def play_all(chosen: Sequence[Control], seeds: int, processes: int = PROCESSES) -> dict[str, Count]:
    """What each control makes of the first so many seeds, by name."""
    if processes == 1:
        return summed(chosen, seeds, map(partial(play, chosen), range(seeds)))
    with get_context("spawn").Pool(processes) as pool:
        return summed(chosen, seeds, pool.imap(partial(play, chosen), range(seeds)))


def summed(chosen: Sequence[Control], seeds: int, played: Iterable[list[Count]]) -> dict[str, Count]:
    """The counts of all seeds together, while a line on stderr says how far it is."""
    total = {one.name: Count() for one in chosen}
    for done, counts in enumerate(played, 1):
        for one, count in zip(chosen, counts, strict=True):
            total[one.name] += count
        print(f"\r{done} of {seeds} seeds", end="\n" if done == seeds else "", file=sys.stderr, flush=True)
    return total


def complaints(record: dict[str, Any], chosen: Sequence[Control]) -> Iterator[str]:
    """What a record lacks: a control, seeds; or has too much: false alarms."""
    names = [one.name for one in chosen]
    yield from (f"not played: {name}" for name in names if name not in record)
    yield from (f"no control: {name}" for name in record if name not in names)
    for name, count in record.items():
        if count["seeds"] < SEEDS:
            yield f"{count['seeds']} seeds only: {name}"
        if count["alarms"]:
            yield f"{len(count['alarms'])} false alarms: {name}"


def positive(text: str) -> int:
    """A number of seeds; raises ValueError."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def main(arguments: Sequence[str], chosen: Sequence[Control], processes: int = PROCESSES) -> int:
    """Plays, writes the record, and gives 1 if there was a false alarm, 2 if something could not be run."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0].partition(":")[0])
    parser.add_argument("--seeds", type=positive, default=SEEDS)
    parser.add_argument("--output", type=Path, default=ALARMS)
    options = parser.parse_args(arguments)
    try:
        if not options.output.absolute().parent.is_dir():
            raise CannotRun(f"there is no folder for {options.output}")
        total = play_all(chosen, options.seeds, processes)
    except CannotRun as error:
        print(f"alarms: {error}", file=sys.stderr)
        return 2
    record = {name: asdict(count) for name, count in sorted(total.items())}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    alarms = sum(len(count.alarms) for count in total.values())
    histories = sum(count.histories for count in total.values())
    print(f"{len(total)} controls, {options.seeds} seeds, {histories:,} histories, {alarms} false alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], controls()))
