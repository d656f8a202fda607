"""Whether CrossHair confirms every contract, and refutes every one that is wrong on purpose.

`python -m logitsproc.proofs.confirmed` runs `crosshair check` on each contract in a process of its own. "Not confirmed"
is no failure to CrossHair, so what counts is what it writes, not how it exits.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from logitsproc.proofs import contracts

CONFIRMED, REFUTED, UNCONFIRMED, VACUOUS = "confirmed", "refuted", "not confirmed", "vacuous"
ERROR, SILENT = "error", "silent"
SAYS = {
    "info: Confirmed over all paths.": CONFIRMED,
    "info: Not confirmed.": UNCONFIRMED,
    "info: Unable to meet precondition.": VACUOUS,
}
REFUTES = re.compile(r"error: false when calling ")
MESSAGE = re.compile(r"^.+?:\d+: (.+)$", re.MULTILINE)
WRONG = "refuted_"
PROCESSES = 2
SECONDS = 90
"""Of CPU time for one contract, many times what each takes."""


class Checked(NamedTuple):
    """What CrossHair makes of a contract: the verdict, what it wrote, and how long it took."""

    name: str
    verdict: str
    said: str
    seconds: float

    @property
    def fits(self) -> bool:
        """Whether the verdict is what the contract's name asks for."""
        return self.verdict == (REFUTED if self.name.startswith(WRONG) else CONFIRMED)


def names() -> list[str]:
    """The contracts, by name, in their order."""
    functions = [value for value in vars(contracts).values() if inspect.isfunction(value)]
    return [each.__name__ for each in functions if "post:" in (inspect.getdoc(each) or "")]


def verdict_of(output: str) -> str:
    """What the lines that CrossHair writes of one contract come to; anything but one known line is an error.

    >>> verdict_of("contracts.py:7: info: Confirmed over all paths.")
    'confirmed'
    """
    messages = MESSAGE.findall(output)
    if not output.strip():
        return SILENT
    if len(messages) != 1:
        return ERROR
    return REFUTED if REFUTES.match(messages[0]) else SAYS.get(messages[0].strip(), ERROR)


def checked(name: str) -> Checked:
    """What CrossHair makes of the contract of this name."""
    started = time.perf_counter()
    options = ["--analysis_kind=PEP316", "--report_all", f"--per_condition_timeout={SECONDS}"]
    run = [sys.executable, "-m", "crosshair", "check", *options, f"{contracts.__name__}.{name}"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    return Checked(name, verdict_of(done.stdout), said, time.perf_counter() - started)


def told_of(each: Checked) -> Iterator[str]:
    """What is printed: one line, and what CrossHair wrote if the verdict is another than it should be."""
    yield f"{each.name:30}{each.verdict:15}{each.seconds:5.1f} s"
    if not each.fits:
        yield f"  expected otherwise: {each.said or 'nothing was written'}"


def main() -> int:
    """Prints a line for each contract; 0 if CrossHair confirms those that are right and refutes those that are not."""
    every = True
    with ThreadPoolExecutor(PROCESSES) as pool:
        for each in pool.map(checked, names()):
            print("\n".join(told_of(each)), flush=True)
            every &= each.fits
    return int(not every)


if __name__ == "__main__":
    sys.exit(main())
