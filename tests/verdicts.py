"""What `logitsproc prove` found, as it is kept and told: the record, a line under each clause, a page, README's block.

    python tests/verdicts.py RESULTS.json [--write]

Without --write it compares: exits 1, with a line for each, where the results are not those of the record, or the record
is not what is told.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from marks import replaced

from logitsproc import spec

ROOT = Path(__file__).parent.parent
RECORD = Path(__file__).parent / "proofs" / "verdicts.json"
MUTANTS = Path(__file__).parent / "mutants" / "proved.json"
PAGE = ROOT / "spec" / "proofs.md"
README = ROOT / "README.md"
PROVED, EXHAUSTIVE, EXAMINED, TESTED = "proved", "exhaustive", "examined", "tested"
HISTORIES = "histories"
MEASURED = "seconds"
Told = dict[str, Any]
"""A result of the record, by the names of its fields."""
UPSTREAM = re.compile(r"(^\*Upstream\.\* .+?)(?:\n\n\*Verdict\.\* .+?)?(?=\n\n|\n?\Z)", re.MULTILINE | re.DOTALL)
WIDTH = 120


def read_record() -> list[Told]:
    """The results as they are kept."""
    found: list[Told] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def differing(found: Sequence[Told], kept: Sequence[Told]) -> Iterator[str]:
    """A line for each result that is not as it is kept, whatever time it took."""
    now, then = ({each["name"]: {**each, MEASURED: 0} for each in told} for told in (found, kept))
    for name in {**now, **then}:
        if now.get(name) != then.get(name):
            yield f"{name}: {now.get(name, 'is gone')}, in the record {then.get(name, 'it is not')}"


def verdict_of(clause: str, told: Sequence[Told]) -> str:
    """The line of a clause: the strongest word, and what it rests on."""
    of = [each for each in told if clause in each["clauses"]]
    whole = [each for each in of if each["verdict"] == PROVED and not each["bound"]]
    within = [each for each in of if each["verdict"] == PROVED and each["bound"]]
    parts = [f"{PROVED} ({', '.join(map(link, whole))})"] if whole else []
    parts += bounded(PROVED, within) + bounded(EXHAUSTIVE, [each for each in of if each["verdict"] == EXHAUSTIVE])
    return f"*Verdict.* {'; '.join(parts) or TESTED}."


def bounded(word: str, told: Sequence[Told]) -> list[str]:
    """What is proved, or looked at, up to a bound: a phrase for each bound, and one for all histories."""
    groups: dict[str, list[Told]] = defaultdict(list)
    for each in told:
        groups[HISTORIES if each["name"].startswith(HISTORIES) else each["bound"]].append(each)
    return [
        f"{word} to {'the histories of ' + count(group) if bound == HISTORIES else bound} ({links(bound, group)})"
        for bound, group in groups.items()
    ]


def count(group: Sequence[Told]) -> str:
    """How many kinds there are."""
    return "one kind" if len(group) == 1 else f"{len(group)} kinds"


def links(bound: str, group: Sequence[Told]) -> str:
    """Where the page tells of them."""
    return f"[{HISTORIES}](proofs.md#{HISTORIES})" if bound == HISTORIES else ", ".join(map(link, group))


def link(told: Told) -> str:
    """Where the page tells of it."""
    return f"[{told['name']}](proofs.md#{anchor(told)})"


def anchor(told: Told) -> str:
    """The place on the page."""
    return str(told["name"]).partition(" ")[0].replace("_", "-")


def with_verdicts(chapter: str, told: Sequence[Told]) -> str:
    """A chapter with a verdict under each clause."""
    text = spec.chapter_text(chapter)
    parts = re.split(r"^(?=### )", text, flags=re.MULTILINE)
    return "".join(with_verdict(part, told) if spec.HEADING.match(part) else part for part in parts)


def with_verdict(part: str, told: Sequence[Told]) -> str:
    """The text of a clause with its verdict behind the upstream place."""
    heading = spec.HEADING.match(part)
    assert heading
    line = wrapped(verdict_of(heading[1], told))
    return UPSTREAM.sub(lambda found: f"{found[1]}\n\n{line}", part, count=1)


def wrapped(line: str) -> str:
    """The line in lines that are not too long; a link is not broken."""
    lines = [""]
    for word in line.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def page_table(told: Sequence[Told]) -> str:
    """A line for each statement, the histories of all kinds being one place."""
    rows, seen = [], set()
    for each in told:
        place = "" if anchor(each) in seen else f'<a id="{anchor(each)}"></a>'
        seen.add(anchor(each))
        clauses = ", ".join(f"[{clause}]({chapters()[clause]}.md#{clause.lower()})" for clause in each["clauses"])
        verdict = each["verdict"] + (f" to {each['bound']}" if each["bound"] else "")
        cases = f"{each['count']:,} {each['unit']}"
        errors = f"{each['refuted']} of {each['planted']}"
        rows.append(f"| {place}`{each['name']}` | {each['sentence']} | {clauses} | {verdict} | {cases} | {errors} |")
    head = "| name | says | clauses | verdict | cases | planted errors refuted |\n|---|---|---|---|---:|---:|"
    return "\n".join([head, *rows])


@functools.cache
def chapters() -> dict[str, str]:
    """The chapter of every clause, read from the headings alone: there may be no verdict yet."""
    return {name: chapter for chapter in spec.CHAPTERS for name, _ in spec.HEADING.findall(spec.chapter_text(chapter))}


def mutants_table() -> str:
    """A line for each file under proof: what became of its mutants."""
    kept = json.loads(MUTANTS.read_text(encoding="utf-8"))
    rows = [mutants_row(f"`{file}`", part["mutants"], part["refuted"], part["argued"]) for file, part in kept.items()]
    head = "| mutants of | how many | refuted by a lemma | by an exhaustive check | without end | argued |"
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|", *rows])


def mutants_row(file: str, mutants: int, refuted: dict[str, int], argued: int) -> str:
    """The counts of one file."""
    counts = (mutants, *(refuted.get(how, 0) for how in ("lemmas", "cases", "timeout")), argued)
    return f"| {file} | {' | '.join(map(str, counts))} |"


def summary(told: Sequence[Told]) -> str:
    """README's block."""
    rows = [summary_row(*row, told) for row in ROWS]
    errors = f"{sum(each['refuted'] for each in told)} of {sum(each['planted'] for each in told)}"
    words = [word_of(clause, told) for clause in chapters()]
    clauses = ", ".join(f"{words.count(word)} {word}" for word in (PROVED, EXHAUSTIVE, TESTED))
    seconds = sum(each[MEASURED] for each in told)
    return "\n".join(
        [
            "| what | statements | cases |",
            "|---|---:|---:|",
            *rows,
            "",
            f"{errors} planted errors are refuted. {seconds:.0f} seconds of computing, on two processes at a time.",
            f"Of the clauses, by the strongest word: {clauses}.",
        ]
    )


ROWS = (
    ("proved for batches of any size", PROVED, False, "paths"),
    ("proved for batches of any size, up to a number of operations", PROVED, True, "paths"),
    ("exhaustive: updates", EXHAUSTIVE, True, "updates"),
    ("exhaustive: decisions of an engine, in both dialects", EXHAUSTIVE, True, "decisions"),
    ("exhaustive: the state space of batches, closed", EXHAUSTIVE, True, "transitions"),
    ("exhaustive: histories, with the logits", EXHAUSTIVE, True, "histories"),
    ("questions to the executor", EXAMINED, False, "questions"),
)


def summary_row(says: str, verdict: str, has_bound: bool, unit: str, told: Sequence[Told]) -> str:
    """How many statements of a sort there are, and their cases."""
    of = [each for each in told if (each["verdict"], bool(each["bound"]), each["unit"]) == (verdict, has_bound, unit)]
    return f"| {says} | {len(of):,} | {sum(each['count'] for each in of):,} |"


def word_of(clause: str, told: Sequence[Told]) -> str:
    """The strongest word for a clause."""
    return verdict_of(clause, told).split()[1].rstrip(".")


def texts(told: Sequence[Told]) -> dict[Path, str]:
    """Every file that tells of the results, as it should be."""
    chapters = {ROOT / "spec" / f"{chapter}.md": with_verdicts(chapter, told) for chapter in spec.CHAPTERS}
    page = replaced(PAGE.read_text(encoding="utf-8"), "statements", page_table(told))
    page = replaced(page, "mutants", mutants_table())
    readme = replaced(README.read_text(encoding="utf-8"), "proofs", summary(told))
    return {**chapters, PAGE: page, README: readme}


def stale(told: Sequence[Told]) -> Iterator[str]:
    """A line for each file that tells something else."""
    for path, text in texts(told).items():
        if path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)} tells something else"


def write(found: Sequence[Told]) -> None:
    """Writes the record, and what is told of it."""
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for path, text in texts(found).items():
        path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Compares or writes."""
    found: list[Told] = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if "--write" in arguments[1:]:
        write(found)
        return 0
    kept = read_record()
    lines = [*differing(found, kept), *stale(kept)]
    print("\n".join([*lines, "`make verdicts` writes the record, and its words"] if lines else ["as in the record"]))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
