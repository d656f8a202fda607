"""Clause, reference line, check and miniature: no orphan, no phantom."""

import ast
import re
from pathlib import Path

import pytest

from logitsproc.conformance.explanation import REMEDIES
from logitsproc.conformance.faults import clause_of
from logitsproc.conformance.miniatures.catalogue import CONSUMERS, HOSTS, PIPELINES, PRODUCERS, ROWS
from logitsproc.spec import clauses

ROOT = Path(__file__).parent.parent
PREFIXES = "UPD|PROD|PROC|PIPE|EMPTY|ALLOW|BAD|MINTOK|BIAS|REP|FREQ|PRES|TEMP|MINP|TOPK|TOPP|VAL|LOAD|NUM"
ID = rf"(?:{PREFIXES})(?:-[A-Z]+)+"
OPENING = re.compile(rf"\s*({ID}(?:,\s+{ID})*):")
CHECKS = ("checks", "player", "faults", "kinds/*", "producers/*", "validation", "loading", "suite")


def opening_ids(path: Path) -> set[str]:
    """The clause ids that the docstrings of a module's functions and classes open with."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (match := OPENING.match(ast.get_docstring(node) or "")):
            found |= set(re.findall(ID, match[1]))
    return found


REFERENCE = set().union(*(opening_ids(path) for path in (ROOT / "reference").rglob("*.py")))
CHECKED = set().union(*(opening_ids(path) for name in CHECKS for path in (ROOT / "conformance").glob(f"{name}.py")))
MINIATURES = {clause_of(miniature) for miniature in [*CONSUMERS, *ROWS, *PIPELINES, *PRODUCERS, *HOSTS]}


@pytest.mark.parametrize("clause", clauses())
def test_every_clause_has_reference_check_and_miniature(clause: str) -> None:
    assert clause in REFERENCE, "no docstring in reference/ opens with it"
    assert clause in CHECKED, f"no docstring in conformance/ {CHECKS} opens with it"
    assert clause in MINIATURES, "no miniature names it"


@pytest.mark.parametrize(
    "path",
    [
        path
        for room in ("spec", "reference", "conformance", "optimized", "tests", "README.md")
        for path in sorted([ROOT / room] if (ROOT / room).is_file() else (ROOT / room).rglob("*"))
        if path.suffix in (".py", ".md")
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_file_names_a_clause_that_is_not_there(path: Path) -> None:
    mentioned = set(re.findall(rf"\b{ID}\b", path.read_text()))
    assert mentioned <= set(clauses()) | {"UPD-NOSUCH"}


def test_every_prefix_is_read() -> None:
    assert {clause.partition("-")[0] for clause in clauses()} == set(PREFIXES.split("|"))


def test_remedies_are_for_clauses() -> None:
    assert set(REMEDIES) <= set(clauses())


def test_the_docstring_convention_is_read_as_it_is_written() -> None:
    assert {"UPD-ADD", "UPD-REPLACE", "UPD-EXTEND"} <= opening_ids(ROOT / "reference" / "batch.py")


def imports(path: Path) -> set[str]:
    """The packages that a module imports, rooms of ours by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            found.add(parts[1] if parts[0] == "logitsproc" else parts[0])
    return found


@pytest.mark.parametrize(
    ("room", "never"),
    [
        ("reference", {"spec", "conformance", "optimized", "proofs", "torch", "numpy"}),
        ("optimized", {"spec", "conformance", "reference", "proofs"}),
        ("conformance", {"optimized", "proofs"}),
        ("spec", {"conformance", "optimized", "reference", "proofs", "torch"}),
    ],
)
def test_rooms_import_only_what_the_house_allows(room: str, never: set[str]) -> None:
    for path in (ROOT / room).rglob("*.py"):
        assert not imports(path) & never, path
