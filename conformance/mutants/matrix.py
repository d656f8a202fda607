"""What a campaign shows: a line for each mutant, a cell for each mutant and clause, figures, and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from logitsproc.conformance.bindings import CannotRun
from logitsproc.conformance.formats import require_writable
from logitsproc.conformance.mutants.campaign import Fate, Kill
from logitsproc.conformance.mutants.derived import Mutant
from logitsproc.spec import clauses

PICTURES = (".svg", ".png")
ALIVE, RIGHT, OTHERWISE, EQUIVALENT = "alive", "right", "otherwise", "argued"
"""What became of a mutant: it lives; it is named by one of its clauses; by another; or a reason is given for that."""


def line(mutant: Mutant, fate: Fate) -> dict[str, Any]:
    """All that is known of a mutant, as plain data."""
    kills = [kill for kill in fate.kills if kill.clauses]
    right = [kill for kill in kills if set(kill.clauses) & set(mutant.clauses)]
    named = Counter(clause for kill in kills for clause in named_of(mutant, kill))
    return {
        "name": mutant.name,
        "origin": mutant.origin,
        "where": mutant.place,
        "change": mutant.change,
        "judged_as": "producer" if mutant.producer else mutant.kind.field if mutant.kind else "solo",
        "clauses": list(mutant.clauses),
        "killed": len(kills),
        "right": len(right),
        "named": dict(sorted(named.items())),
        "checks": dict(sorted(Counter(kill.check for kill in kills).items())),
        "only": fate.only,
        "histories": spread(kills, lambda kill: kill.histories),
        "seconds": spread(kills, lambda kill: round(kill.seconds, 2)),
        "events": spread([kill for kill in kills if kill.events], lambda kill: kill.events)
        | {"shortest": min(fate.shortest.values(), default=0), "over": over(kills, fate.shortest)},
        "argued": mutant.argument,
        "first": first(fate.kills[0]),
    }


def named_of(mutant: Mutant, kill: Kill) -> tuple[str, ...]:
    """The clause that counts of those that were named: the mutant's own, if it is among them."""
    return tuple(clause for clause in kill.clauses if clause in mutant.clauses)[:1] or kill.clauses[:1]


def spread(kills: Sequence[Kill], of: Callable[[Kill], float]) -> dict[str, float]:
    """The median and the worst of a figure."""
    figures = [of(kill) for kill in kills] or [0]
    return {"median": median(figures), "worst": max(figures)}


def over(kills: Sequence[Kill], shortest: Mapping[str, int]) -> int:
    """How many events more than the shortest known that shows the same the longest shown history has."""
    return max((kill.events - shortest[kill.check] for kill in kills if kill.events), default=0)


def first(kill: Kill) -> dict[str, Any]:
    """What the first seed gave, which any machine can do again."""
    return {
        "seed": kill.seed,
        "clauses": list(kill.clauses),
        "check": kill.check,
        "histories": kill.histories,
        "events": kill.events,
    }


def outcome(told: dict[str, Any], seeds: int) -> str:
    """What became of a mutant: right is at least 99 of 100 seeds under one of its clauses."""
    if 100 * told["right"] >= 99 * seeds:
        return RIGHT
    if told["argued"]:
        return EQUIVALENT
    return ALIVE if told["killed"] < seeds else OTHERWISE


def matrix(mutants: Sequence[Mutant], fates: Iterable[Fate], seeds: int) -> dict[str, Any]:
    """The whole campaign as plain data, with its figures."""
    lines = [line(mutant, fate) for mutant, fate in zip(mutants, fates, strict=True)]
    for told in lines:
        told["outcome"] = outcome(told, seeds)
    return {"seeds": seeds, "figures": figures(lines), "mutants": lines}


def figures(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts by origin."""
    found = []
    for origin in dict.fromkeys(told["origin"] for told in lines):
        group = [told for told in lines if told["origin"] == origin]
        counts = Counter(told["outcome"] for told in group)
        killed = [told for told in group if told["killed"]]
        found.append(
            {
                "origin": origin,
                "mutants": len(group),
                **{name: counts[name] for name in (RIGHT, EQUIVALENT, OTHERWISE, ALIVE)},
                "only_one_check": sum(told["only"] for told in group),
                "histories": overall(killed, "histories"),
                "seconds": overall(killed, "seconds"),
            }
        )
    return found


def overall(killed: Sequence[dict[str, Any]], figure: str) -> dict[str, float]:
    """The median of the medians of a figure, and the worst of all."""
    each = [told[figure] for told in killed]
    return {
        "median": median([one["median"] for one in each] or [0]),
        "worst": max((one["worst"] for one in each), default=0),
    }


def most_named(told: dict[str, Any]) -> str:
    """The clause under which a mutant is reported most often, or nothing."""
    return str(max(told["named"], key=lambda clause: told["named"][clause], default=""))


def require_picture(path: Path | None) -> None:
    """Raises CannotRun when a picture is wanted that could not be drawn there."""
    require_writable(path)
    if path is None:
        return
    if path.suffix not in PICTURES:
        raise CannotRun(f"{path}: a picture is {' or '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise CannotRun("a picture needs matplotlib: pip install 'logitsproc[pictures]'")


def draw(told: dict[str, Any], path: Path) -> None:
    """The heat map: clauses down, mutants across, how often which was named; the same bytes for the same campaign."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "logitsproc"
    from matplotlib import pyplot

    names = list(clauses())
    killed = sorted((each for each in told["mutants"] if each["named"]), key=lambda each: names.index(most_named(each)))
    shown = [name for name in names if any(name in each["named"] for each in killed)]
    cells = [[each["named"].get(name, 0) / told["seeds"] for each in killed] for name in shown]
    figure, axes = pyplot.subplots(figsize=(14, 0.13 * len(shown) + 1.5))
    image = axes.imshow(cells or [[0.0]], aspect="auto", cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_yticks(range(len(shown)), shown, fontsize=6)
    axes.set_xlabel(f"{len(killed)} mutants, by the clause that is named most")
    axes.set_title(f"The clause that is named, by mutant, over {told['seeds']} seeds")
    figure.colorbar(image, label="share of seeds", fraction=0.02)
    figure.tight_layout()
    figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
