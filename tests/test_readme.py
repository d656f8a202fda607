"""What the README says is what happens."""

import re
from pathlib import Path

from readme import failure

from logitsproc.conformance import check_processor

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_output_in_the_readme_is_the_output() -> None:
    shown = re.search(r"<!-- failure: .*? -->\n(.*?)\n<!-- /failure -->", README, re.DOTALL)
    assert shown
    assert shown[1] == failure(README), "run `make readme`"
    assert "breaks PROC-STATE-DEPARTED" in shown[1]


def test_the_readme_shows_how_to_call_the_function() -> None:
    call = re.search(r"check_processor\(\"([\w.:]+)\", params=", README)
    assert call
    assert "params" in (check_processor.__kwdefaults__ or {})
