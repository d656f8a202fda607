"""Writes what became of mutants, and of what is right: a block in README.md, and the page beside the records.

`page.py README.md`: from kills.json, generic.json and alarms.json.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from generic import Results, killed, read_results, reasons  # noqa: E402
from marks import replaced  # noqa: E402

from logitsproc.conformance.mutants.derived import BELIEF, HAND, PLAIN, REFERENCE  # noqa: E402
from logitsproc.conformance.mutants.matrix import ALIVE, EQUIVALENT, OTHERWISE, RIGHT, most_named  # noqa: E402
from logitsproc.conformance.track_record import RECORD  # noqa: E402
from logitsproc.spec import clauses  # noqa: E402

ORIGINS = {
    HAND: "miniatures, written by hand",
    REFERENCE: "one thing changed in the reference",
    PLAIN: "one thing changed in a plain min-p, top-k or top-p",
    BELIEF: "one fault beside the list law",
}
GENERIC = {
    "reference": "any change to the source of the reference",
    "optimized": "any change to the bookkeeping of the fast path",
}
PAGE = HERE / "README.md"
Told = dict[str, Any]


def read(name: str) -> Any:
    """A record."""
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], texts: int = 0) -> str:
    """A table whose first column is text, and so many of the last; the others are numbers."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    numbers = len(headings) - 1 - texts
    return "\n".join([f"| {' | '.join(headings)} |", f"|---|{'---:|' * numbers}{'---|' * texts}", *lines])


def summary(kills: Told, results: Results, alarms: Told) -> str:
    """The block of README.md."""
    rows = [origin_row(each) for each in kills["figures"]]
    headings = ["mutants", "how many", "killed, rightly named", "argued", "others", "histories to the kill, median"]
    shown = sum(fault.miniature != "" for fault in RECORD)
    return "\n\n".join(
        [
            f"Over {kills['seeds']} seeds each, in the quick tier. Rightly named: at least 99 of 100 name a clause of "
            "what was changed.",
            table([*headings, "worst"], rows),
            table(["generic mutants", "how many", "killed", "share"], [generic_row(results, room) for room in GENERIC]),
            f"{len(RECORD)} public faults; {shown} of them have a miniature and a command that fails on their clause. "
            f"{alarm_count(alarms)} false alarms over {len(alarms)} right subjects with {least_seeds(alarms):,} seeds "
            "each.",
        ]
    )


def origin_row(figures: Told) -> Sequence[object]:
    """The counts of the mutants of one origin."""
    histories = figures["histories"]
    others = figures[OTHERWISE] + figures[ALIVE]
    counts = (figures["mutants"], figures[RIGHT], figures[EQUIVALENT], others)
    return ORIGINS[figures["origin"]], *counts, f"{histories['median']:g}", f"{histories['worst']:,}"


def generic_row(results: Results, room: str) -> Sequence[object]:
    """The counts of the generic mutants of a room."""
    count, of, _ = killed(results, room)
    return GENERIC[room], f"{of:,}", f"{count:,}", f"{count / of:.1%}"


def alarm_count(alarms: Told) -> int:
    """How many false alarms there were."""
    return sum(len(each["alarms"]) for each in alarms.values())


def least_seeds(alarms: Told) -> int:
    """How many seeds every subject was played with."""
    return min(each["seeds"] for each in alarms.values())


def clause_table(kills: Told) -> str:
    """For each clause the mutants that are named by it most, and what catches them."""
    groups: dict[str, list[Told]] = defaultdict(list)
    for each in kills["mutants"]:
        groups[most_named(each)].append(each)
    rows = [clause_row(clause, groups[clause]) for clause in clauses() if clause in groups]
    return table(["clause", "mutants", "by one check only", "miniatures", "checks"], rows, texts=2)


def clause_row(clause: str, group: Sequence[Told]) -> Sequence[object]:
    """The line of one clause."""
    by_hand = [f"`{each['name']}`" for each in group if each["origin"] == HAND]
    checks = Counter(check for each in group for check in each["checks"])
    caught = ", ".join(f"{check} ({times})" for check, times in checks.most_common())
    return clause, len(group), sum(each["only"] for each in group), ", ".join(by_hand), caught


def time_table(kills: Told) -> str:
    """Histories and seconds to the kill, for each origin."""
    rows = []
    for figures in kills["figures"]:
        spans = [f"{figures[what][which]:,g}" for what in ("histories", "seconds") for which in ("median", "worst")]
        rows.append((ORIGINS[figures["origin"]], *spans))
    return table(["mutants", "histories, median", "worst", "seconds, median", "worst"], rows)


def shrinking_table(kills: Told) -> str:
    """How many events more than the shortest known a shown history has, in the worst of all seeds."""
    more = Counter(each["events"]["over"] for each in kills["mutants"] if each["events"]["shortest"])
    return table(["events more than the shortest known, with the worst seed", "mutants"], sorted(more.items()))


def argued_list(kills: Told) -> str:
    """The mutants that live, or are named otherwise, by reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for each in kills["mutants"]:
        if each["outcome"] == EQUIVALENT:
            groups[each["argued"]].append(f"`{each['where']}` {code(each['change'])}")
    return listed(groups)


def listed(groups: dict[str, list[str]]) -> str:
    """Reasons, and under each what it is given for."""
    return "\n".join("\n".join([f"- {reason}", *(f"  - {one}" for one in found)]) for reason, found in groups.items())


def code(text: str) -> str:
    """The text as code, whatever is in it."""
    return f"`` {text} ``"


def generic_table(results: Results) -> str:
    """For each room what killed its generic mutants."""
    counts = {room: killed(results, room)[2] for room in GENERIC}
    killers = sorted({killer for count in counts.values() for killer in count})
    rows = [(*generic_row(results, room), *(f"{counts[room][killer]:,}" for killer in killers)) for room in GENERIC]
    return table(["mutants", "how many", "killed", "share", *(f"by {killer}" for killer in killers)], rows)


def generic_list() -> str:
    """The generic mutants that live, by reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for key, verdict, reason in reasons():
        where = f"`{key.file}`" + (f" `{key.within}`" if key.within else "")
        groups[f"{reason} ({verdict})"].append(f"{where} {code(f'{key.before} -> {key.after}')}")
    return listed(groups)


def alarm_table(alarms: Told) -> str:
    """What the right subjects of each kind played, and the false alarms."""
    groups: dict[str, Told] = defaultdict(dict)
    for name, count in alarms.items():
        groups[name.partition(" as ")[2]][name] = count
    rows = [alarm_row(judged, group) for judged, group in groups.items()]
    return table(["judged as", "right subjects", "seeds each", "histories", "steps", "false alarms"], sorted(rows))


def alarm_row(judged: str, group: Told) -> Sequence[str]:
    """The counts of the right subjects that are judged as one thing."""
    histories, steps = (sum(count[what] for count in group.values()) for what in ("histories", "steps"))
    counts = (len(group), least_seeds(group), histories, steps, alarm_count(group))
    return judged, *(f"{count:,}" for count in counts)


def pages(readme: str, page: str) -> tuple[str, str]:
    """Both texts with their blocks."""
    kills, results, alarms = read("kills.json"), read_results(), read("alarms.json")
    blocks = {
        "clauses": clause_table(kills),
        "times": time_table(kills),
        "shrinking": shrinking_table(kills),
        "argued": argued_list(kills),
        "generic": generic_table(results),
        "survivors": generic_list(),
        "alarms": alarm_table(alarms),
    }
    for mark, block in blocks.items():
        page = replaced(page, mark, block)
    return replaced(readme, "mutants", summary(kills, results, alarms)), page


def main(readme: Path) -> None:
    """Writes both."""
    texts = pages(readme.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"))
    for path, text in zip((readme, PAGE), texts, strict=True):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
