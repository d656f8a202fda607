"""What a client asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Params = Mapping[str, Any]
"""SamplingParams fields by name; a field that is not there has its default value."""


@dataclass(slots=True, eq=False)
class Request:
    """A request: its sampling params, its prompt token ids and its live list of output token ids.

    Two requests are equal only if they are the same object: the same id resubmitted is another request.

    >>> Request("A", {"min_p": 0.5}, [1, 2])
    A
    """

    name: str
    params: Params = field(default_factory=dict)
    prompt: list[int] | None = field(default_factory=list)
    output: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.name
