"""Judges every mutant that cosmic-ray makes of the reference and of the fast path's bookkeeping; writes generic.json.

    python tests/mutants/generic.py [--only FILE]... [--again | --survived | --sample N]

A file is judged when its text is not the one that generic.json knows. Its killers must all be content with the file as
it is.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from changes import Mutant, mutants_of
from forked import Fate, judged, tree

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent / "generic.json"
SURVIVORS = Path(__file__).parent / "survivors.toml"
BOOKKEEPING = ("table", "processor", "packing", "domains", "adapter", "loading", "seen")
AT_ONCE = 2
VERDICTS = ("equivalent", "unobservable", "accepted")


class Result(NamedTuple):
    """A mutant and the killer that noticed it, which has no name when none did."""

    line: int
    within: str
    operator: str
    before: str
    after: str
    killer: str


class Entry(NamedTuple):
    """A file's part of the results: of which text they are, how many changes were left out, by reason, and the rest."""

    sha256: str
    left_out: dict[str, int]
    mutants: list[Result]


class Key(NamedTuple):
    """What says which survivor is meant, wherever in its function it now stands."""

    file: str
    within: str
    operator: str
    before: str
    after: str


Results = dict[str, Entry]
"""file -> its part."""
Fates = Mapping[Mutant, Fate]
Choose = Callable[[list[Mutant]], list[Mutant]]
"""Of a file's mutants those that are to be judged."""


def files() -> list[str]:
    """The files that are mutated."""
    reference = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "reference").rglob("*.py")))
    return [*reference, *(f"optimized/{name}.py" for name in BOOKKEEPING)]


def digest(file: str) -> str:
    """The sha256 of a file's text."""
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def read_results() -> Results:
    """The results as they are kept; none when there are none yet."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["files"] if RESULTS.exists() else {}
    return {
        file: Entry(part["sha256"], part["left_out"], [Result(*row) for row in part["mutants"]])
        for file, part in kept.items()
    }


def write_results(results: Results) -> None:
    """Writes the results in the order of the files, a line for each mutant."""
    head = f'"tool": "cosmic-ray {version("cosmic-ray")}", "columns": {json.dumps(Result._fields)}'
    parts = ",\n".join(f"{json.dumps(file)}: {in_lines(results[file])}" for file in files() if file in results)
    new = RESULTS.with_suffix(".new")
    new.write_text(f'{{{head}, "files": {{\n{parts}\n}}}}\n', encoding="utf-8")
    new.replace(RESULTS)


def in_lines(entry: Entry) -> str:
    """A file's part as JSON."""
    rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in entry.mutants)
    head = f'"sha256": "{entry.sha256}", "left_out": {json.dumps(entry.left_out)}'
    return f'{{{head}, "mutants": [\n{rows}]}}'


def stale(results: Results) -> list[str]:
    """The files that the results do not know as they are now, and those they know that are gone."""
    now, known = {file: digest(file) for file in files()}, {file: entry.sha256 for file, entry in results.items()}
    return [file for file in {**now, **known} if known.get(file) != now.get(file)]


def key_of(file: str, mutant: Mutant | Result) -> Key:
    """The key of a mutant of the file."""
    return Key(file, mutant.within, mutant.operator, mutant.before, mutant.after)


def survivors(results: Results) -> list[Key]:
    """The mutants that nothing noticed."""
    return [key_of(file, each) for file, entry in results.items() for each in entry.mutants if not each.killer]


def reasons() -> Iterator[tuple[Key, str, str]]:
    """(survivor, verdict, reason) of every change that survivors.toml lists."""
    for group in tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["because"]:
        for change in group["changes"]:
            yield Key(group["file"], group["within"], *change), group["verdict"], group["reason"]


def killed(results: Results, room: str) -> tuple[int, int, Counter[str]]:
    """Of the mutants of a room: how many were killed, how many there are, and how many each killer killed."""
    mutants = [each for file, entry in results.items() if file.startswith(f"{room}/") for each in entry.mutants]
    killers = Counter(each.killer for each in mutants if each.killer)
    return killers.total(), len(mutants), killers


def judge_files(results: Results, chosen: Sequence[str], choose: Choose, keep: bool) -> None:
    """Judges the chosen mutants of the files, each file as it is first; prints, and where told keeps, the fates."""
    with tree(ROOT) as base:
        print(f"{len(chosen)} files as they are", flush=True)
        for name, fate in judged(base, chosen, AT_ONCE):
            if fate.killer:
                raise SystemExit(f"{name} as it is does not get past {fate.killer}: {fate.by}")
        for file in chosen:
            source = (base / "logitsproc" / file).read_text(encoding="utf-8")
            mutants, left_out = mutants_of(file, source)
            fates = {each: fate for each, fate in judged(base, choose(mutants), AT_ONCE) if isinstance(each, Mutant)}
            show(file, fates, all_of_them=not keep)
            if keep:
                sha256 = hashlib.sha256(source.encode()).hexdigest()
                known = results[file].mutants if file in results else []
                results[file] = Entry(sha256, dict(left_out), in_order(file, mutants, fates, known))
                write_results(results)


def in_order(file: str, mutants: Sequence[Mutant], fates: Fates, known: Sequence[Result]) -> list[Result]:
    """The result of every mutant: of those that were judged as they were, of the others as it is known."""
    killers = {key_of(file, each): each.killer for each in known}
    killers |= {key_of(file, each): fate.killer for each, fate in fates.items()}
    return [
        Result(each.line, each.within, each.operator, each.before, each.after, killers[key_of(file, each)])
        for each in mutants
    ]


def show(file: str, fates: Fates, all_of_them: bool) -> None:
    """Prints how many were judged, and those that survived or all of them."""
    print(f"{file}: {len(fates)}", flush=True)
    for each, fate in fates.items():
        if all_of_them or not fate.killer:
            print("  " + " | ".join((str(each.line), each.before, each.after, fate.killer, fate.by)), flush=True)


def summary(results: Results, room: str) -> str:
    """How many were killed, and by what."""
    count, of, killers = killed(results, room)
    return f"{count} of {of} killed ({', '.join(f'{name} {number}' for name, number in killers.most_common())})"


def chooser(results: Results, sample: int | None, survived: bool) -> Choose:
    """Which of a file's mutants are judged: all, so many of every kind, or those that survived."""
    if sample is not None:
        return lambda mutants: mutants[:: max(1, len(mutants) // sample)]
    known = set(survivors(results))
    return lambda mutants: [each for each in mutants if not survived or key_of(each.file, each) in known]


def main(
    only: Annotated[list[str] | None, typer.Option(help="a file to judge, and no other")] = None,
    again: Annotated[bool, typer.Option(help="also files that have not changed")] = False,
    survived: Annotated[bool, typer.Option(help="of files that have not changed, what survived, again")] = False,
    sample: Annotated[int | None, typer.Option(min=1, help="so many of each file; nothing is written")] = None,
) -> None:
    """Judges the mutants of the files that have changed."""
    if unknown := [file for file in only or [] if file not in files()]:
        raise SystemExit(f"{unknown[0]} is not one of the files that are mutated")
    if sum((again, survived, sample is not None)) > 1:
        raise SystemExit("--again, --survived and --sample are three, of which one may be given")
    results = read_results()
    changed = stale(results)
    chosen = [file for file in only or files() if again or sample is not None or survived != (file in changed)]
    judge_files(results, chosen, chooser(results, sample, survived), keep=sample is None)
    for room in ("reference", "optimized"):
        print(f"{room}: {summary(results, room)}")


if __name__ == "__main__":
    typer.run(main)
