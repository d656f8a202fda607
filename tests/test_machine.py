"""The machine: the same seed gives the same histories, whatever else is loaded, and every rule is drawn."""

from collections import Counter
from typing import Any

import pytest
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import Rule

from logitsproc.conformance.machine import BEYOND, CHANCES, LITERAL, REACHABLE, SCHEDULES, STEPS, Swarm, World, some_of
from logitsproc.conformance.usage import generated

HISTORIES = 5
MANY = 60
RULES = {
    "reachable": {"arrive", "churn", "decode", "preempt", "quiet", "reorder", "reset", "resume", "turn_over"},
    "literal": {"arrive", "decode", "literal", "quiet"},
}
WORLDS = (REACHABLE, *BEYOND, SCHEDULES)


def test_no_number_is_drawn_from_the_constants_of_loaded_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a number came from the constants of a module")

    monkeypatch.setattr(HypothesisProvider, "_maybe_draw_constant", refuse)
    assert len(generated(WORLDS, HISTORIES)) == HISTORIES * len(WORLDS)


def test_the_same_seed_gives_the_same_histories() -> None:
    assert generated(WORLDS, HISTORIES) == generated(WORLDS, HISTORIES)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[Swarm, Counter[str]]:
    """How often each rule is chosen, by the choice of each history."""
    counts: dict[Swarm, Counter[str]] = {}
    draw = Swarm.do_draw

    def counted(self: Swarm, data: ConjectureData) -> tuple[Rule, dict[str, Any]]:
        chosen, arguments = draw(self, data)
        counts.setdefault(self, Counter())[chosen.function.__name__] += 1
        return chosen, arguments

    monkeypatch.setattr(Swarm, "do_draw", counted)
    return counts


@pytest.mark.parametrize("world", [REACHABLE, LITERAL], ids=lambda world: world.name)
def test_every_rule_is_drawn_and_many_histories_lack_some(world: World, drawn: dict[Swarm, Counter[str]]) -> None:
    generated((world,), MANY)
    histories = [set(counts) for counts in drawn.values()]
    assert set.union(*histories) == RULES[world.name]
    assert {len(names) for names in histories} == set(range(1, len(RULES[world.name]) + 1))


def test_a_step_costs_two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step, which is not chosen, costs one, and the choice of the rules that are kept another."""
    numbers: list[object] = []
    draw = ConjectureData.draw_integer
    monkeypatch.setattr(
        ConjectureData, "draw_integer", lambda *given, **named: numbers.append(None) or draw(*given, **named)
    )
    generated((REACHABLE,), HISTORIES)
    assert len(numbers) == HISTORIES * 2 * STEPS


def test_a_history_has_the_rules_whose_digit_reaches_the_first_and_never_none() -> None:
    items = ("one", "two")
    assert some_of(items, 0) == ["one", "two"]
    assert some_of(items, 1 + CHANCES * 1 + CHANCES**2 * 0) == ["one"]
    assert some_of(items, (CHANCES - 1) + CHANCES * 3 + CHANCES**2 * 2) == ["one"]
    assert some_of(items, (CHANCES - 1) + CHANCES * 2 + CHANCES**2 * 2) == ["one", "two"]
