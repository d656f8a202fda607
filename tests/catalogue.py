"""The miniatures by clause, and what to judge each one with."""

import inspect
from types import ModuleType

from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.kinds import KINDS, Kind
from logitsproc.conformance.miniatures import consumers, controls, producers, rows

BASES = {controls.MinP: "min_p", controls.LogitBias: "logit_bias", controls.MinTokens: "min_tokens"}
NO_REPEAT = [{"extra_args": {"no_repeat": True}}]


def classes(module: ModuleType) -> list[type]:
    """The miniatures that a module defines."""
    return [cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__]


def functions(module: ModuleType) -> list:
    """The producers that a module defines and that name a clause."""
    found = [item for item in vars(module).values() if inspect.isfunction(item) and item.__module__ == module.__name__]
    return [function for function in found if clause_of(function).startswith("PROD-")]


def kind_of(miniature: type) -> Kind | None:
    """The kind whose reference judges the miniature; None for those that only the solo law can judge."""
    return next((KINDS[kind] for base, kind in BASES.items() if issubclass(miniature, base)), None)


CONSUMERS = classes(consumers)
ROWS = classes(rows)
PRODUCERS = functions(producers)
CONTROLS = [controls.MinP, controls.LogitBias, controls.MinTokens, controls.NoRepeat]
