"""The mutants of a source file: every change that cosmic-ray's operators make to the program that it is."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

Place = tuple[int, int]
"""(line from 1 on, column in characters from 0 on)."""
ANNOTATION, ALIAS, PROTOCOL, NO_PROGRAM = "annotation", "type alias", "protocol", "no program"


class Span(NamedTuple):
    """Source that only a type checker reads, and why."""

    start: Place
    end: Place
    why: str


@dataclass(frozen=True)
class Mutant:
    """One change to a file: the whole text that it gives, and the lines that differ."""

    file: str
    line: int
    within: str
    operator: str
    occurrence: int
    before: str
    after: str
    text: str


def mutants_of(file: str, source: str) -> tuple[list[Mutant], Counter[str]]:
    """Every mutant of the file, in the order of operators and places, and how many changes were left out, by reason."""
    spans, left_out = list(spans_for_types(source)), Counter[str]()
    found = []
    for name, occurrence, place, within in changes(source):
        reason = next((span.why for span in spans if span.start <= place < span.end), None)
        text = None if reason else mutate_code(source, operator(name), occurrence)
        if text is None or not is_program(text):
            left_out[reason or NO_PROGRAM] += 1
            continue
        before, after = differing_lines(source, text)
        short = name.removeprefix("core/")
        found.append(Mutant(file, place[0], within, short, occurrence, before, after, text))
    return found, left_out


def changes(source: str) -> Iterator[tuple[str, int, Place, str]]:
    """(operator, occurrence, place, name of the function or class) of every change that cosmic-ray would make."""
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if get_operator(name).arguments():
            continue
        places = ((node, start) for node in nodes for start, _ in operator(name).mutation_positions(node))
        for occurrence, (node, start) in enumerate(places):
            yield name, occurrence, start, ASTQuery(node).get_definition_name() or ""


def operator(name: str) -> Any:
    """A new operator."""
    return get_operator(name)()


def is_program(source: str) -> bool:
    """Whether it is Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def differing_lines(before: str, after: str) -> tuple[str, str]:
    """What the lines were that differ, and what they are; stripped, and joined with a blank where they are several."""
    old, new = before.splitlines(), after.splitlines()
    head = common(old, new)
    tail = min(common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    kept = [lines[head : len(lines) - tail] for lines in (old, new)]
    was, now = (" ".join(line.strip() for line in lines if line.strip()) for lines in kept)
    return was, now


def common(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def spans_for_types(source: str) -> Iterator[Span]:
    """Annotations, aliases of types at the top level, and protocols."""
    tree, lines = ast.parse(source), source.splitlines()
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                yield span(annotation, lines, ANNOTATION)
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith("Protocol") for base in node.bases):
            yield span(node, lines, PROTOCOL)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            yield span(node, lines, ALIAS)


def span(node: ast.expr | ast.stmt, lines: list[str], why: str) -> Span:
    """Where the node stands; ast counts columns in bytes."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    start, end = ((line, len(lines[line - 1].encode()[:offset].decode())) for line, offset in ends)
    return Span(start, end, why)
