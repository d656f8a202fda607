"""The tutorial's files and commands, run: every output is what is printed, and each step leads to the next."""

import ast
import re
from pathlib import Path

import pytest
import tutorial

from logitsproc.conformance import check_processor

TEXT = tutorial.PAGE.read_text(encoding="utf-8")
VERDICTS = re.findall(r"^only_token:OnlyToken: (.+)$", TEXT, re.MULTILINE)


def test_every_output_is_what_its_command_prints() -> None:
    assert tutorial.played(TEXT) == TEXT, "run `make tutorial`"


def test_each_step_breaks_another_clause_and_the_last_breaks_none() -> None:
    assert VERDICTS == [
        "violation of PROC-EXCEPTION",
        "violation of UPD-MOVE",
        "violation of UPD-SWAP",
        "violation of PROC-STATE-DEPARTED",
        "conformant on every well-formed update",
        "violation of PROC-FUNCTION",
        "conformant on every well-formed update",
    ]


def test_a_method_takes_the_place_of_the_one_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    tutorial.save(
        path, "class Two:\n    def first(self):\n        return 1\n\n    def second(self):\n        return 2\n"
    )
    tutorial.save(path, "    def first(self):\n        return 3\n")
    assert path.read_text() == (
        "class Two:\n    def first(self):\n        return 3\n\n    def second(self):\n        return 2\n"
    )


def test_the_test_to_paste_calls_the_function_as_it_is() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (call,) = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    assert ast.unparse(call.func) == check_processor.__name__
    assert {keyword.arg for keyword in call.keywords} <= set(check_processor.__kwdefaults__ or {})


def test_a_command_that_is_not_the_projects_is_refused() -> None:
    with pytest.raises(AssertionError):
        tutorial.played("```console\n$ rm params.json\n```\n")
