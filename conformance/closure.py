"""Where a clause is in the code: the lines of the reference that are it, the checks, the miniatures that break it.

A docstring that opens with the ids of clauses, `UPD-ADD, UPD-REPLACE: ...`, says that its function or class is theirs.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logitsproc import conformance, reference
from logitsproc.conformance.miniatures.catalogue import CONSUMERS, HOSTS, PIPELINES, PRODUCERS, ROWS
from logitsproc.conformance.track_record import MINIATURES
from logitsproc.spec import clauses

CHECKS = ("checks", "player", "faults", "kinds/*", "producers/*", "validation", "loading", "suite")
"""The modules of `conformance` whose docstrings name what they check."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class that is some clauses'.

    `file`: from the root of a checkout, as "reference/batch.py"; `name`: with the class that it stands in; `line`: the
    first, with its decorators; `source`: its lines, without the indentation that all of them have; `says`: the first
    paragraph of its docstring, after the ids.
    """

    clauses: tuple[str, ...]
    file: str
    name: str
    line: int
    source: str
    says: str


@functools.cache
def an_id() -> str:
    """A pattern for ids of clauses, also of one that is not there, under the prefixes that there are."""
    prefixes = sorted({name.partition("-")[0] for name in clauses()})
    return rf"(?:{'|'.join(prefixes)})(?:-[A-Z]+)+"


def opening_ids(docstring: str | None) -> tuple[str, ...]:
    """The ids that a docstring opens with, before a colon."""
    found = re.match(rf"\s*({an_id()}(?:,\s+{an_id()})*):", docstring or "")
    return tuple(re.findall(an_id(), found[1])) if found else ()


def definitions(path: Path, file: str) -> list[Definition]:
    """The functions and classes of a module whose docstrings open with ids."""
    text = path.read_text(encoding="utf-8")
    return [
        definition(text, file, name, node, ids)
        for name, node in defined(ast.parse(text))
        if (ids := opening_ids(ast.get_docstring(node)))
    ]


def defined(scope: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Every function and class below, by name, at any depth."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield f"{within}{node.name}", node
            yield from defined(node, f"{within}{node.name}.")
        else:
            yield from defined(node, within)


def definition(
    text: str, file: str, name: str, node: ast.FunctionDef | ast.ClassDef, ids: tuple[str, ...]
) -> Definition:
    """A definition as it stands in the text."""
    first = min(part.lineno for part in [node, *node.decorator_list])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    source = textwrap.dedent("\n".join(lines))
    docstring = ast.get_docstring(node) or ""
    says = " ".join(docstring.partition(":")[2].partition("\n\n")[0].split())
    return Definition(ids, file, name, first, source, says)


def below(package: str, room: str, pattern: str) -> list[Definition]:
    """The definitions of the modules of a room that a glob finds; package: its `__init__.py`."""
    folder = Path(package).parent
    paths = sorted(folder.glob(pattern))
    return [found for path in paths for found in definitions(path, f"{room}/{path.relative_to(folder).as_posix()}")]


@functools.cache
def reference_lines() -> list[Definition]:
    """The definitions of the reference that are clauses."""
    return below(reference.__file__, "reference", "**/*.py")


@functools.cache
def checks() -> list[Definition]:
    """The definitions that check clauses."""
    return [each for name in CHECKS for each in below(conformance.__file__, "conformance", f"{name}.py")]


@functools.cache
def miniatures() -> list[Definition]:
    """The wrong subjects, each under the one clause that it breaks."""
    wanted = {(subject.__module__, subject.__qualname__) for subject in catalogued()}
    found = below(conformance.__file__, "conformance", "miniatures/*.py")
    return [each for each in found if (f"{MINIATURES}.{Path(each.file).stem}", each.name) in wanted]


def catalogued() -> list[Callable[..., Any]]:
    """Every wrong subject there is, the classes and the functions that play a host."""
    return [*CONSUMERS, *ROWS, *PIPELINES, *PRODUCERS, *HOSTS]


def of(clause: str, among: list[Definition]) -> list[Definition]:
    """Those that are a clause's."""
    return [each for each in among if clause in each.clauses]
