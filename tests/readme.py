"""Writes what the README's wrong processor makes the suite say into the README: `readme.py README.md`."""

import re
import sys
import tempfile
from pathlib import Path

from marks import write
from typer.testing import CliRunner

from logitsproc.conformance.cli import app

PARAMS = '[{"extra_args": {"target_token": 3}}, {"extra_args": {"target_token": 5}}]'
MODULE = "my_processors"


def failure(readme: str) -> str:
    """The command and its output for the class in the README's first block of Python."""
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert code
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{MODULE}.py").write_text(code[1])
        params = Path(folder) / "params.json"
        params.write_text(PARAMS)
        sys.path.insert(0, folder)
        result = CliRunner().invoke(app, ["check", f"{MODULE}:OnlyToken", "--params", str(params)])
        sys.path.remove(folder)
    output = re.sub(r"; [\d.]+ s\n", "\n", result.output).rstrip()
    return f"```console\n$ logitsproc check {MODULE}:OnlyToken --params params.json\n{output}\n```"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write(path, "failure", failure(path.read_text()))
