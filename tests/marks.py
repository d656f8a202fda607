"""Blocks of README.md that programs write: between `<!-- mark: ... -->` and `<!-- /mark -->`."""


def replaced(text: str, mark: str, block: str) -> str:
    """The text with this between the marks; exits with one line when they are not there."""
    head, opening, rest = text.partition(f"<!-- {mark}: ")
    comment, closing, tail = rest.partition("-->")
    _, end, after = tail.partition(f"<!-- /{mark} -->")
    if not (opening and closing and end):
        raise SystemExit(f"there is no <!-- {mark}: --> and <!-- /{mark} -->")
    return f"{head}{opening}{comment}{closing}\n{block}\n{end}{after}"
