"""The pins beside the vLLM that is installed, and changes to its own files."""

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from upstream import shown

from logitsproc.conformance.drift import (
    MOVED_ON,
    NOT_COMPARED,
    TO_REREAD,
    Finding,
    cited,
    compare,
    installed_root,
    observe,
    pinned,
    to_reread,
)

ROOT = Path(__file__).parent.parent.parent
INTERFACE = "vllm/v1/sample/logits_processor/interface.py"
ORDER = "#   - removed, added, moved\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The cited files of the installed vLLM."""
    for file in ["vllm/__init__.py", *pinned().files]:
        if (installed_root() / file).exists():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_bytes((installed_root() / file).read_bytes())
    return tmp_path


def compared(root: Path) -> list[Finding]:
    return compare(cited(), pinned(), observe(root, cited()))


def test_the_pins_and_the_blobs_of_the_clauses_are_of_the_vllm_that_is_installed() -> None:
    assert observe(installed_root(), cited()) == pinned(), "run `make upstream`"
    files = pinned().files
    assert [place.name for place in cited() if files[place.file].blob != place.blob] == []
    assert {file for file, source in files.items() if source.blob is None} == {"docs/design/logits_processors.md"}


def test_the_version_that_is_pinned_is_the_one_that_is_installed() -> None:
    (distribution,) = set(metadata.packages_distributions()["vllm"])
    assert pinned().version == metadata.version(distribution)


def test_the_readme_shows_what_the_command_says() -> None:
    block = re.search(r"<!-- drift: .*? -->\n(.*?)\n<!-- /drift -->", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block
    assert block[1] == shown(), "run `make upstream`"
    assert "\n0 of " in block[1]


def test_vllm_is_not_imported() -> None:
    code = "import sys; from logitsproc.conformance.cli import app; app(['drift'], standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('vllm' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.endswith("\nFalse\n")


def test_layout_and_comments_beside_code_are_nothing_to_read_again(copy: Path) -> None:
    """Every file is written anew from its syntax tree; what then differs is the comments of declarations."""
    for file in copy.rglob("*.py"):
        file.write_text(ast.unparse(ast.parse(file.read_bytes())))
    found = compared(copy)
    assert {each.standing for each in found} == {MOVED_ON, NOT_COMPARED, TO_REREAD}
    again = [each for each in found if each.standing == TO_REREAD]
    assert {each.why for each in again} == {"its words differ, not its code"}
    assert {each.place.symbol for each in again} == {
        "AddedRequest",
        "BatchUpdate",
        "BatchUpdate.batch_size",
        "BatchUpdate.removed",
        "MoveDirectionality",
        "SamplingMetadata.allowed_token_ids_mask",
    }


def test_another_order_in_the_comment_of_an_update_is_to_be_read_again(copy: Path) -> None:
    text = (copy / INTERFACE).read_text()
    assert text.count(ORDER) == 1
    (copy / INTERFACE).write_text(text.replace(ORDER, "#   - added, removed, moved\n"))
    assert "UPD-ORDER" in to_reread(compared(copy))
    resting = {place.clause for place in cited() if place.symbol in ("BatchUpdate", "BatchUpdate.removed")}
    assert set(to_reread(compared(copy))) == resting
