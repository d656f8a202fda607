"""Plays the tutorial: writes its files, runs its commands, and their outputs into it: `tutorial.py PAGE.md`."""

import ast
import contextlib
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from typer.testing import CliRunner

from logitsproc.conformance.cli import app
from logitsproc.conformance.suite import ENOUGH_BEYOND, TIERS, Tier

PAGE = Path(__file__).parent.parent / "spec" / "writing-a-processor.md"
FENCE = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\$ logitsproc (.+?) \| head -(\d+)")
SECONDS = re.compile(r"; [\d.]+ s$", re.MULTILINE)
SHORT = {"quick": Tier(60, ENOUGH_BEYOND, 90)}
"""The quick tier's first histories, and time for them on a machine that is busy: nothing that is shown differs."""


def played(text: str) -> str:
    """The text with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), patch.dict(TIERS, SHORT):
        sys.path.insert(0, folder)
        try:
            return FENCE.sub(block, text)
        finally:
            sys.path.remove(folder)


def block(fence: re.Match[str]) -> str:
    """The block as it is to be: of one with a title the file is written, of a command the output."""
    language, title, body = fence.groups()
    if title:
        save(Path(title), body)
    if language != "console":
        return fence[0]
    command = body.splitlines()[0]
    return f"```console\n{command}\n{output(command)}\n```"


def save(path: Path, body: str) -> None:
    """Writes a file; what is indented is a method, and takes the place of the one with its name."""
    if body.startswith(" "):
        text = path.read_text()
        name = body.split("def ")[1].split("(")[0]
        (method,) = [
            node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        lines = text.splitlines(keepends=True)
        body = "".join([*lines[: method.lineno - 1], body, *lines[method.end_lineno :]])
    path.write_text(body)


def output(command: str) -> str:
    """The first lines of what a command prints, without the seconds that it took."""
    found = COMMAND.fullmatch(command)
    assert found, command
    for module in [name for name in sys.modules if Path(f"{name}.py").exists()]:
        del sys.modules[module]
    result = CliRunner().invoke(app, shlex.split(found[1]))
    return "\n".join(SECONDS.sub("", result.output).splitlines()[: int(found[2])]).rstrip()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(played(path.read_text(encoding="utf-8")), encoding="utf-8")
