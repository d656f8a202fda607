"""Reports in JSON are what the published schema says, and the schema says it of every field."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.conformance.formats import VERSION

SCHEMA = json.loads(files("logitsproc.conformance").joinpath("report.schema.json").read_text())
MINIATURES = "logitsproc.conformance.miniatures"

pytestmark = pytest.mark.usefixtures("short_tier")


def reports(tmp_path: Path, *arguments: str) -> Any:
    told = tmp_path / "report.json"
    CliRunner().invoke(app, ["check", *arguments, "--json", str(told)])
    return json.loads(told.read_text())


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ((f"{MINIATURES}.consumers:KeepsDestination", "--as", "min_p"), "violation"),
        ((f"{MINIATURES}.consumers:KeepsDestination", "--as", "min_p", "--clauses", "MINP-*"), "conformant"),
        ((f"{MINIATURES}.consumers:AddsFirst", "--as", "min_p"), "conformant"),
        (("logitsproc.optimized:MinPLogitsProcessor", "--as", "min_p", "--clauses", "PROD-*"), "unproven"),
        (("--producer", f"{MINIATURES}.producers:ForgetsAMove"), "violation"),
    ],
)
def test_a_report_is_what_the_schema_says(tmp_path: Path, arguments: tuple[str, ...], verdict: str) -> None:
    told = reports(tmp_path, *arguments)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(told)] == []
    assert [report["verdict"] for report in told] == [verdict]


def test_a_report_without_a_field_or_with_another_is_refused(tmp_path: Path) -> None:
    (told,) = reports(tmp_path, f"{MINIATURES}.consumers:KeepsDestination", "--as", "min_p")
    valid = Draft202012Validator(SCHEMA).is_valid
    assert valid([told])
    assert not any(valid([{name: value for name, value in told.items() if name != gone}]) for gone in told)
    assert not valid([told | {"other": 1}])
    assert not valid([told | {"failure": told["failure"] | {"row": "zero"}}])


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of the schema that describes an object with named fields."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_the_schema_is_a_schema_closed_and_of_this_version() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["items"]["properties"]["version"]["const"] == VERSION
    assert [part["description"] for part in objects(SCHEMA) if part.get("additionalProperties") is not False] == []
