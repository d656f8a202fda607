"""Clocks around the parts of a run."""

from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import Any


def clocked(spent: Counter[str], part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its time added to a part."""

    def timed(*arguments: Any) -> Any:
        start = perf_counter()
        try:
            return function(*arguments)
        finally:
            spent[part] += perf_counter() - start

    return timed
