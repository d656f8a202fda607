"""Clause, reference line, check and miniature: no orphan, no phantom."""

import ast
import re
from pathlib import Path

import pytest

from logitsproc.conformance.closure import (
    CHECKS,
    an_id,
    catalogued,
    checks,
    definitions,
    miniatures,
    of,
    reference_lines,
)
from logitsproc.conformance.explanation import REMEDIES
from logitsproc.spec import clauses

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("clause", clauses())
def test_every_clause_has_reference_check_and_miniature(clause: str) -> None:
    assert of(clause, reference_lines()), "no docstring in reference/ opens with it"
    assert of(clause, checks()), f"no docstring in conformance/ {CHECKS} opens with it"
    assert of(clause, miniatures()), "no miniature names it"


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
    mentioned = set(re.findall(rf"\b{an_id()}\b", path.read_text()))
    assert mentioned <= set(clauses()) | {"UPD-NOSUCH"}


def test_remedies_are_for_clauses() -> None:
    assert set(REMEDIES) <= set(clauses())


def test_the_docstring_convention_is_read_as_it_is_written() -> None:
    found = definitions(ROOT / "reference" / "batch.py", "reference/batch.py")
    assert {"UPD-ADD", "UPD-REPLACE", "UPD-EXTEND"} <= {name for each in found for name in each.clauses}
    (swap,) = of("UPD-SWAP", found)
    assert (swap.file, swap.name) == ("reference/batch.py", "swap")
    assert (ROOT / swap.file).read_text().splitlines()[swap.line - 1] == swap.source.splitlines()[0]
    assert swap.says.startswith("the two rows exchange what they hold")


def test_every_miniature_is_found_where_it_is_written_and_breaks_one_clause() -> None:
    assert len(miniatures()) == len(catalogued())
    assert all(len(each.clauses) == 1 for each in miniatures())


def test_a_method_is_found_with_its_class_and_without_its_indentation(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "class Table:\n"
        "    if True:\n"
        "        @staticmethod\n"
        "        def swap() -> int:\n"
        '            """UPD-SWAP, UPD-MOVE: one\n'
        "            line.\n\n"
        "            More.\n"
        '            """\n'
        "            return 1\n\n"
        "    def other() -> None:\n"
        '        """Speaks of UPD-SWAP: no more."""\n'
    )
    (found,) = definitions(module, "room/module.py")
    assert (found.clauses, found.name, found.line, found.says) == (
        ("UPD-SWAP", "UPD-MOVE"),
        "Table.swap",
        3,
        "one line.",
    )
    assert found.source.splitlines()[:2] == ["@staticmethod", "def swap() -> int:"]
    assert found.source.splitlines()[-1] == "    return 1"


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
