"""Blocks of Markdown that programs write: between `<!-- mark: ... -->` and `<!-- /mark -->`."""

import sys
from pathlib import Path


def replaced(text: str, mark: str, block: str) -> str:
    """The text with this between the marks; exits with one line when they are not there."""
    head, opening, rest = text.partition(f"<!-- {mark}: ")
    comment, closing, tail = rest.partition("-->")
    _, end, after = tail.partition(f"<!-- /{mark} -->")
    if not (opening and closing and end):
        raise SystemExit(f"there is no <!-- {mark}: --> and <!-- /{mark} -->")
    return f"{head}{opening}{comment}{closing}\n{block}\n{end}{after}"


def write(path: Path, mark: str, block: str) -> None:
    """Writes the block into the file."""
    path.write_text(replaced(path.read_text(encoding="utf-8"), mark, block), encoding="utf-8")


def write_or_compare(arguments: list[str], mark: str, block: str, target: str) -> int:
    """Of `README.md [--write]`: writes the block, or gives 1, with a line, where the file has another."""
    path = Path(arguments[0])
    print(block)
    if "--write" in arguments[1:]:
        write(path, mark, block)
    elif replaced(path.read_text(encoding="utf-8"), mark, block) != path.read_text(encoding="utf-8"):
        print(f"{path} has another table; `make {target}` writes it", file=sys.stderr)
        return 1
    return 0
