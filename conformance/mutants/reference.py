"""The reference as a subject: the list model and the row functions behind a processor's interface, one module changed.

Every copy of the reference is loaded beside the real one, from its source, and nothing is written anywhere.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import logitsproc.reference.batch

PACKAGE = "logitsproc.reference"
LIST = "batch"
ROOM = Path(logitsproc.reference.batch.__file__).parent
MODULES = (
    "request",
    "numerics",
    "expectation",
    "batch",
    "processor",
    "producer",
    "row.allowed_token_ids",
    "row.bad_words",
    "row.min_tokens",
    "row.logit_bias",
    "row.repetition_penalty",
    "row.frequency_penalty",
    "row.presence_penalty",
    "row.temperature",
    "row.min_p",
    "row.top_k",
    "row.top_p",
    "pipeline",
    "validation",
    "loading",
)
"""In an order in which each finds those that it imports."""


@functools.cache
def source(module: str) -> str:
    """The source of a module of the reference."""
    return (ROOM / f"{module.replace('.', '/')}.py").read_text()


@functools.cache
def tree(module: str) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(source(module))


@functools.cache
def code(module: str) -> CodeType:
    """The module, compiled."""
    return compile(tree(module), f"{PACKAGE}.{module}", "exec")


@functools.cache
def dependents(changed: str) -> frozenset[str]:
    """The module and all that import it, directly or not."""
    found = {changed}
    for name in MODULES:
        if any(f"from {PACKAGE}.{each} import" in source(name) for each in found):
            found.add(name)
    return frozenset(found)


class Reference:
    """A copy of the reference, one of its modules with another tree; it does not look for ill-formed updates.

    Of modules that know nothing of what is changed there is no copy.
    """

    def __init__(self, changed: str = LIST, other: ast.Module | None = None) -> None:
        self.modules: dict[str, ModuleType] = {}
        copied = dependents(changed) | dependents(LIST)
        for name in MODULES:
            self.modules[name] = importlib.import_module(f"{PACKAGE}.{name}")
            if name in copied:
                self.modules[name] = self.copy(name, other if name == changed else None)
            if name == LIST:
                self.modules[name].require = lambda *stated: None  # type: ignore[attr-defined]

    def copy(self, name: str, other: ast.Module | None) -> ModuleType:
        """A copy of one module, with another tree if there is one."""
        module = ModuleType(f"{PACKAGE}.{name}")
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.import_module}
        exec(code(name) if other is None else compile(other, module.__name__, "exec"), module.__dict__)
        return module

    def import_module(
        self, name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0
    ) -> ModuleType:
        """The copy's own module for one of the reference, any other as it is."""
        own = self.modules.get(name.removeprefix(f"{PACKAGE}."))
        return own if own is not None else builtins.__import__(name, globals_, locals_, names or (), level)

    def __getitem__(self, name: str) -> Any:
        """A module of the copy."""
        return self.modules[name]


@functools.cache
def parsed(module: ModuleType) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(Path(str(module.__file__)).read_text())


def executed(changed: ast.Module, module: ModuleType) -> dict[str, Any]:
    """What a module defines when its tree is another."""
    copy = ModuleType(module.__name__)
    exec(compile(changed, module.__name__, "exec"), copy.__dict__)
    return copy.__dict__
