"""Judges every mutant of the code under proof by the proofs alone: lemmas first, then exhaustive checks.

    python tests/mutants/proved.py [--only FILE]... [--write]

Nothing here imports logitsproc, whose copy a mutant's own process imports. Exits 1 where a mutant is not refuted and
has no argument in unproved.toml, where an argument is about none, or where the counts are not those of the record,
proved.json; --write writes it.
"""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from changes import Mutant, differing_lines, mutants_of
from forked import Fate, judged, tree
from generic import ROOT, Key, digest, key_of
from killers import LEMMAS_OF, provers_of

sys.path.append(str(ROOT / "conformance" / "mutants"))
import operators

RECORD = Path(__file__).parent / "proved.json"
ARGUMENTS = Path(__file__).parent / "unproved.toml"
AT_ONCE = 2


class Count(NamedTuple):
    """What became of a file's mutants: how many there are, how many each prover refuted, how many are argued."""

    sha256: str
    mutants: int
    refuted: dict[str, int]
    argued: int


def ours(file: str, source: str) -> Iterator[Mutant]:
    """Every change that the suite's own operators make to the functions and methods of a file."""
    module, plain = ast.parse(source), ast.unparse(ast.parse(source))
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        for number, change in enumerate(operators.changes(module, function)):
            text = ast.unparse(change.tree)
            before, after = differing_lines(plain, text)
            yield Mutant(file, function.lineno, function.name, change.operator, number, before, after, text)


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a file under proof, each text once."""
    source = (ROOT / file).read_text(encoding="utf-8")
    found = [*mutants_of(file, source)[0], *ours(file, source)]
    return list({ast.dump(ast.parse(each.text)): each for each in reversed(found)}.values())[::-1]


def arguments() -> dict[Key, str]:
    """Why a mutant that is not refuted is none that could be."""
    groups = tomllib.loads(ARGUMENTS.read_text(encoding="utf-8"))["because"]
    return {
        Key(group["file"], group["within"], *change): group["reason"] for group in groups for change in group["changes"]
    }


def fates(file: str) -> dict[Mutant, Fate]:
    """What became of every mutant of a file; ends the process where the file as it is is refuted."""
    with tree(ROOT) as base:
        found = dict(judged(base, [file, *mutants(file)], AT_ONCE, provers_of))
    if found[file].killer:
        raise SystemExit(f"{file} as it is does not get past {found[file].killer}: {found[file].by}")
    return {mutant: fate for mutant, fate in found.items() if isinstance(mutant, Mutant)}


def counted(file: str, found: dict[Mutant, Fate]) -> Count:
    """The counts of a file."""
    killers = Counter(fate.killer for fate in found.values() if fate.killer)
    return Count(digest(file), len(found), dict(sorted(killers.items())), len(found) - killers.total())


def unargued(file: str, found: dict[Mutant, Fate]) -> Iterator[str]:
    """A line for each mutant that lives without an argument, and for each argument that is about none."""
    alive = {key_of(file, mutant) for mutant, fate in found.items() if not fate.killer}
    known = {key for key in arguments() if key.file == file}
    yield from (f"not refuted, and not argued: {key}" for key in sorted(alive - known))
    yield from (f"argued, and refuted or not there: {key}" for key in sorted(known - alive))


def read_record() -> dict[str, Count]:
    """The counts as they are kept."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return {file: Count(**part) for file, part in kept.items()}


def main(
    only: Annotated[list[str] | None, typer.Option(help="a file to judge, and no other")] = None,
    write: Annotated[bool, typer.Option(help="write the record")] = False,
) -> None:
    """Judges the mutants of the files under proof."""
    record, troubles = read_record(), []
    for file in only or LEMMAS_OF:
        found = fates(file)
        count = counted(file, found)
        print(f"{file}: {count.mutants} mutants, refuted {count.refuted}, argued {count.argued}", flush=True)
        troubles += unargued(file, found)
        if not write and count._replace(refuted={}) != record[file]._replace(refuted={}):
            troubles.append(f"{file}: the record has {record[file]}")
        record[file] = count
    if write:
        kept = {file: count._asdict() for file, count in record.items()}
        RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print("\n".join(troubles or ["every mutant is refuted or argued"]))
    sys.exit(bool(troubles))


if __name__ == "__main__":
    typer.run(main)
