"""Everything that wants a GPU, in one go of a few minutes: `run.py`, or `run.py --dry-run` where there is none.

In order: holds the kernels to the CPU backend, judges every class with the suite on the device, looks for whatever
makes the host wait and for races, and measures. `--dry-run` interprets the kernels on the CPU, on small shapes; it
prints no times, and names what needs a GPU and was left out. The package need not be installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def reach(folder: Path) -> None:
    """Makes the package importable where it is not installed, here and in processes that are started from here."""
    package = folder / "logitsproc"
    package.mkdir()
    for room in ("spec", "reference", "conformance", "optimized"):
        (package / room).symlink_to(ROOT / room)
    paths = [str(folder), str(HERE), str(ROOT / "tests" / "benchmarks")]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])


def main(
    dry_run: bool = False, out: Annotated[Path | None, typer.Option(help="Also writes the table here.")] = None
) -> None:
    """Exit status 0 when everything is as it has to be."""
    if dry_run:
        os.environ["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        reach(Path(folder))
        from session import DEVICE, DRY, Session

        session = Session("cpu", DRY) if dry_run else Session("cuda", DEVICE)
        failures = [name for name, part in session.parts().items() if not done(name, part)]
        table = session.table()
    print(table)
    if out is not None:
        out.write_text(table + "\n", encoding="utf-8")
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


def done(name: str, part: Callable[[], str]) -> bool:
    """Runs a part and prints a line; whether it was all right."""
    start = perf_counter()
    try:
        said, is_fine = part(), True
    except Exception as error:
        said, is_fine = f"FAILED: {type(error).__name__}: {error}", False
    print(f"{name} ({perf_counter() - start:.0f} s): {said}", flush=True)
    return is_fine


if __name__ == "__main__":
    typer.run(main)
