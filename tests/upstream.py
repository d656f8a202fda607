"""Pins the vLLM that is installed as what the spec rests on: `upstream.py spec/upstream.json README.md`.

Pins nothing, and exits with a line for each, where a clause cites another blob than the file's, or a symbol that is not
in it: those clauses are read and cited anew first.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from marks import write
from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.conformance.drift import Place, Upstream, cited, installed_root, observe


def wrong(wanted: list[Place], now: Upstream) -> Iterator[str]:
    """A line for each place that is not as the clause cites it."""
    for place in wanted:
        source = now.files[place.file]
        if place.blob != source.blob:
            yield f"{place.clause}: {place.file} is blob {source.blob}, and the clause cites {place.blob}"
        elif source.blob is not None and place.symbol is not None and source.symbols[place.symbol] is None:
            yield f"{place.clause}: {place.file} defines no {place.symbol}"


def pin(path: Path) -> None:
    """Writes the pins, in place, because an editable install links to the file."""
    wanted = cited()
    now = observe(installed_root(), wanted)
    if lines := list(wrong(wanted, now)):
        raise SystemExit("\n".join(lines))
    path.write_text(json.dumps(asdict(now), indent=1) + "\n", encoding="utf-8")


def shown() -> str:
    """The command and its output, for the README."""
    return f"```console\n$ logitsproc drift\n{CliRunner().invoke(app, ['drift']).output}```"


if __name__ == "__main__":
    pin(Path(sys.argv[1]))
    write(Path(sys.argv[2]), "drift", shown())
