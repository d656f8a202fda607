"""The machine: the same seed gives the same histories, whatever else is loaded."""

import pytest
from hypothesis.internal.conjecture.providers import HypothesisProvider

from logitsproc.conformance.machine import BEYOND, REACHABLE, SCHEDULES
from logitsproc.conformance.usage import generated

HISTORIES = 5


def test_no_number_is_drawn_from_the_constants_of_loaded_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a number came from the constants of a module")

    monkeypatch.setattr(HypothesisProvider, "_maybe_draw_constant", refuse)
    worlds = (REACHABLE, *BEYOND, SCHEDULES)
    assert len(generated(worlds, HISTORIES)) == HISTORIES * len(worlds)
