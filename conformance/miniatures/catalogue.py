"""The miniatures by what they are, and what to judge each one with."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.kinds import KINDS, Kind
from logitsproc.conformance.miniatures import (
    adapters,
    consumers,
    controls,
    edits,
    masks,
    penalties,
    pipelines,
    producers,
    thresholds,
    validators,
)
from logitsproc.spec import clauses

BASES: dict[type, str] = {
    **{control: field for field, control in controls.CONTROLS.items()},
    pipelines.Pipeline: "pipeline",
    adapters.Adapter: "adapter",
}
NO_REPEAT: list[dict[str, Any]] = [{"extra_args": {"no_repeat": True}}]
"""The params of those that no reference judges."""


def classes(module: ModuleType) -> list[type]:
    """The classes that a module defines."""
    return [cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__]


def wrong(module: ModuleType) -> list[type]:
    """The miniatures of a module that has right classes too."""
    return [cls for cls in classes(module) if clause_of(cls) in clauses()]


def kind_of(miniature: type) -> Kind | None:
    """The kind whose reference judges the miniature; None for those that only the solo law can judge."""
    return next((KINDS[kind] for base, kind in BASES.items() if issubclass(miniature, base)), None)


CONSUMERS = wrong(consumers)
ROWS = [miniature for module in (masks, edits, penalties, thresholds) for miniature in wrong(module)]
VALIDATORS = wrong(validators)
PIPELINES = [*wrong(pipelines), *wrong(adapters), *VALIDATORS]
HOSTS = [validators.lets_everyone_in]
PRODUCERS = wrong(producers)
CONTROLS = [
    *controls.CONTROLS.values(),
    controls.MaskTable,
    controls.NoRepeat,
    pipelines.Pipeline,
    adapters.Adapter,
    validators.ValidatedMinP,
    validators.ValidatedBias,
]
SOLO_CONTROLS = [
    controls.MinP,
    controls.LogitBias,
    controls.MinTokens,
    controls.RepetitionPenalty,
    controls.TopP,
    controls.MaskTable,
    controls.NoRepeat,
]
