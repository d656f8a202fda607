"""Plots, whose bytes depend on nothing but the figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

STYLE: Any = {"svg.hashsalt": "logitsproc", "figure.facecolor": "white", "axes.grid": True, "grid.alpha": 0.3}


@contextmanager
def picture(path: Path, panels: int) -> Iterator[Any]:
    """The axes of so many panels side by side, which become an SVG file."""
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(1, panels, figsize=(4.5 * panels, 4), squeeze=False)
        yield axes[0]
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def curves(axes: Any, title: str, label: str, lines: dict[str, dict[int, float]]) -> None:
    """Lines of x -> y on logarithmic scales, each with its name."""
    for name, points in lines.items():
        places = sorted(points)
        axes.loglog(places, [points[place] for place in places], marker="o", markersize=3, label=name)
    axes.set(title=title, ylabel=label)
    axes.legend(fontsize=8)
