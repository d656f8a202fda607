"""What a check finds that needs no history."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One occasion of a clause. `trouble` says what is wrong, or is None when nothing is; `lines` are a script."""

    clause: str
    trouble: str | None = None
    lines: tuple[str, ...] = ()
