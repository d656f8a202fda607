"""What is said of vLLM source that changed, on a small tree that has every cited file and symbol."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from upstream import pin

from logitsproc import spec
from logitsproc.conformance import cli, drift
from logitsproc.conformance.drift import AS_PINNED, MOVED_ON, NOT_COMPARED, TO_REREAD, Place, Source, cited, observe

DOCS = "docs/design/logits_processors.md"
INPUT_BATCH = "vllm/v1/worker/gpu_input_batch.py"
INTERFACE = "vllm/v1/sample/logits_processor/interface.py"
CODE, WORDS, GONE = "its code differs", "its words differ, not its code", "gone from the file"
RESTING = {place.clause for place in cited()}
Call = Callable[..., Result]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with all that is cited of the package, and nothing else."""
    symbols: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for place in cited():
        if place.symbol is not None:
            owner, _, member = place.symbol.partition(".")
            symbols[place.file][owner] |= {member} - {""}
    for file, owners in symbols.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(defined(owner, sorted(members)) for owner, members in owners.items()))
    (tmp_path / "vllm" / "__init__.py").write_text("raise AssertionError('nobody imports this')\n")
    (tmp_path / "vllm" / "_version.py").write_text("__version__ = version = '9.8.7'\n")
    return tmp_path


def defined(owner: str, members: list[str]) -> str:
    """Source of a symbol: a function, or a class with fields, as an update is, or one with methods."""
    if not members:
        return f'def {owner}():\n    """Does {owner}."""\n    return 1\n'
    if owner == "BatchUpdate":
        return "".join([f"class {owner}:\n", *(f"    {name}: int  # of {name}\n" for name in members)])
    methods = [f"    def {name}(self):\n        return 1  # of {name}\n" for name in members]
    return "\n".join([f'class {owner}:\n    """Is {owner}."""\n', *methods])


@pytest.fixture
def call(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`logitsproc drift` on the tree, which is pinned as it is now."""
    then = observe(tree, cited())
    monkeypatch.setattr(cli, "pinned", lambda: then)
    return lambda *arguments: CliRunner().invoke(cli.app, ["drift", "--root", str(tree), *arguments])


def change(path: Path, old: str, new: str) -> None:
    """One change to a file."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def citing(file: str, *symbols: str) -> set[str]:
    """The clauses that rest on one of these symbols, or on any of the file."""
    return {place.clause for place in cited() if place.file == file and (not symbols or place.symbol in symbols)}


def listed(result: Result) -> dict[str, set[str]]:
    """The clauses of the table with the reasons that it gives."""
    found: dict[str, set[str]] = defaultdict(set)
    clause = ""
    for line in result.stdout.splitlines():
        if row := re.match(r"([A-Z]+(?:-[A-Z]+)+) .*?  +(\S+(?: \S+)*) *$", line):
            clause = row[1]
            found[clause].add(row[2])
    return found


def test_nothing_is_to_be_read_again_where_all_is_as_pinned(call: Call) -> None:
    result = call()
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"not compared: {DOCS}, no wheel has it: UPD-ORDER, PROD-ELIDE",
        f"0 of {len(RESTING)} clauses to re-read: vLLM 9.8.7; the spec rests on 9.8.7",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 1  # of condense", "return 1  # of something else"),
        ("return 1  # of condense", "return (\n            1\n        )"),
        ("    def condense(self):", "    def uncited(self):\n        return 2\n\n    def condense(self):"),
        ("    def condense(self):", "    # a comment above\n    def condense(self):"),
    ],
)
def test_a_file_that_changed_elsewhere_has_moved_on(call: Call, tree: Path, old: str, new: str) -> None:
    change(tree / INPUT_BATCH, old, new)
    result = call()
    assert result.exit_code == 0, result.output
    resting = len(citing(INPUT_BATCH))
    assert f"moved on: {INPUT_BATCH}, but not in what it is cited for by {resting} clauses\n" in result.stdout
    assert listed(result) == {}


@pytest.mark.parametrize(
    ("file", "old", "new", "symbols", "why"),
    [
        (INPUT_BATCH, "return 1  # of condense", "return 2", ["InputBatch.condense"], CODE),
        (INPUT_BATCH, "def condense(self)", "@other\n    def condense(self)", ["InputBatch.condense"], CODE),
        (INPUT_BATCH, "def condense(self)", "async def condense(self)", ["InputBatch.condense"], CODE),
        (INPUT_BATCH, "def condense(self)", "def compact(self)", ["InputBatch.condense"], GONE),
        (INTERFACE, "removed: int  #", "removed: str  #", ["BatchUpdate", "BatchUpdate.removed"], CODE),
        (INTERFACE, "# of removed", "# after the moves", ["BatchUpdate", "BatchUpdate.removed"], WORDS),
        (INTERFACE, "Does AddedRequest.", "Does more.", ["AddedRequest"], WORDS),
    ],
)
def test_a_symbol_that_changed_is_to_be_read_again(
    call: Call, tree: Path, file: str, old: str, new: str, symbols: list[str], why: str
) -> None:
    change(tree / file, old, new)
    result = call()
    assert result.exit_code == 1
    assert listed(result) == {clause: {why} for clause in citing(file, *symbols)}
    assert f"\n{len(citing(file, *symbols))} of {len(RESTING)} clauses to re-read: " in result.stdout


def test_a_file_that_is_gone_is_to_be_read_again(call: Call, tree: Path) -> None:
    (tree / INTERFACE).unlink()
    result = call()
    assert result.exit_code == 1
    assert listed(result) == {clause: {"the file is gone"} for clause in citing(INTERFACE)}


def test_a_file_that_was_not_pinned_is_told_where_it_is_found(call: Call, tree: Path) -> None:
    (tree / DOCS).parent.mkdir(parents=True)
    (tree / DOCS).write_text("What it was?\n")
    result = call()
    assert result.exit_code == 0
    assert f"not compared: {DOCS}, what it was is not pinned: UPD-ORDER, PROD-ELIDE\n" in result.stdout


def test_a_file_that_is_cited_whole_has_no_symbol_to_stand_for_it() -> None:
    place, then = Place("UPD-ORDER", "", DOCS, None, "a" * 40), Source("a" * 40, {})
    assert drift.standing(place, then, then) == (AS_PINNED, "")
    assert drift.standing(place, then, replace(then, blob="b" * 40)) == (TO_REREAD, "the file differs")


def test_the_json_has_every_place(call: Call, tree: Path, tmp_path: Path) -> None:
    change(tree / INPUT_BATCH, "return 1  # of condense", "return 2")
    assert call("--json", str(tmp_path / "drift.json")).exit_code == 1
    told = json.loads((tmp_path / "drift.json").read_text())
    assert (told["vllm"], told["pinned"]) == ("9.8.7", "9.8.7")
    assert set(told["to_reread"]) == citing(INPUT_BATCH, "InputBatch.condense")
    assert len(told["places"]) == len(cited())
    standings = {(place["file"], place["symbol"]): place["standing"] for place in told["places"]}
    assert standings[INPUT_BATCH, "InputBatch.condense"] == TO_REREAD
    assert standings[INPUT_BATCH, "InputBatch.swap_states"] == MOVED_ON
    assert standings[INTERFACE, "BatchUpdate"] == AS_PINNED
    assert standings[DOCS, None] == NOT_COMPARED


def refused(*arguments: str) -> str:
    """What a call that cannot run says: one line, exit 2."""
    result = CliRunner().invoke(cli.app, ["drift", *arguments])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    return result.stderr.removeprefix("logitsproc: ").rstrip()


def test_what_cannot_be_compared_is_one_line(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = ("--root", str(tree))
    assert refused("--root", str(tmp_path / "none")) == f"{tmp_path / 'none'} has no vllm/__init__.py"
    assert refused(*root, "--json", str(tmp_path / "none" / "f")) == f"{tmp_path / 'none' / 'f'} cannot be written"
    (tree / INTERFACE).write_text("def (")
    assert f"{tree / INTERFACE} is nothing that Python " in refused(*root)
    (tree / INTERFACE).write_bytes(b"a = 1\0")
    assert f"{tree / INTERFACE} is nothing that Python " in refused(*root)
    (tree / INTERFACE).unlink()
    (tree / INTERFACE).mkdir()
    assert refused(*root) == f"{tree / INTERFACE} cannot be read: Is a directory"
    monkeypatch.setattr(drift, "PACKAGE", "no_such_package")
    assert refused() == "no vLLM is installed; --root names a folder that has one"


def test_the_installed_vllm_is_found_without_importing_it(tree: Path) -> None:
    code = "from logitsproc.conformance.drift import installed_root; print(installed_root())"
    environment = {"PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"{tree}\n"


def test_a_checkout_that_was_not_built_has_no_version(call: Call, tree: Path) -> None:
    (tree / "vllm" / "_version.py").unlink()
    assert "to re-read: vLLM of unknown version; the spec rests on 9.8.7\n" in call().stdout


@pytest.mark.parametrize(
    ("symbol", "old", "new", "same"),
    [
        ("f", "def f():\n    return 'a'\n", 'def f( ):\n    return "a"  # so\n', True),
        ("f", "def f():\n    return 1\n", "def g():\n    return 1\n\n\ndef f():\n    return 1\n", True),
        ("f", "def f():\n    return u'a'\n", "def f():\n    return 'a'\n", True),
        ("f", "def f():\n    return '\\d'\n", "def f():\n    return '\\\\d'\n", True),
        ("f", 'def f():\n    """A b."""\n', 'def f():\n    """A\n    b."""\n', True),
        ("f", 'def f():\n    """A b."""\n', 'def f():\n    """A c."""\n', False),
        ("f", "def f(a):\n    pass\n", "def f(a=None):\n    pass\n", False),
        ("f", "if x:\n    def f(): return 1\n", "if y:\n    def f(): return 1\n", True),
        ("f", "if x:\n    def f(): return 1\nelse:\n    f = 1\n", "if x:\n    def f(): return 1\n", False),
        ("f", "try:\n    from a import b\nexcept E:\n    f = 1\n", "try:\n    pass\nexcept E:\n    f = 2\n", False),
        ("X", "# Of pairs.\nX = tuple[int, int]\n", "#  Of\n#  pairs.\nX = tuple[ int, int ]\n", True),
        ("X", "# Of pairs.\nX = tuple[int, int]\n", "# Of others.\nX = tuple[int, int]\n", False),
        ("X", "# Of others.\n\nX = 1\n", "# Of something.\n\nX = 1\n", True),
        ("X", "X, Y = 1, 2\n", "X, Y = 1, 3\n", False),
        ("X", "X = [1]\n", "X = [1]\nY[X] = 2\n", True),
        ("X", "X = [1]\n", "X = [1]\nX += [2]\n", False),
        ("C.x", 'class C:\n    x: int = 0\n    """Of x."""\n', 'class C:\n    x: int = 0\n    """Of y."""\n', False),
        ("C.x", "class C:\n    x: int = 0\n    y: int\n", "class C:\n    x: int = 0\n    z: int\n", True),
        ("C.x", "class C:\n    x: int  # above 0\n", "class C:\n    x: int  # above 1\n", False),
        ("C", "class C:\n    # First a.\n    a: int\n", "class C:\n    # Last a.\n    a: int\n", False),
        ("C", "# Old.\n@d\nclass C:\n    a: int\n", "# New.\n@d\nclass C:\n    a: int\n", False),
        ("C", "class C:\n    # A.\n    def f(self): ...\n", "class C:\n    # B.\n    def f(self): ...\n", True),
        ("C", "class C(A):\n    a: int\n", "class C(B):\n    a: int\n", False),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_counts_in_a_symbol(tmp_path: Path, symbol: str, old: str, new: str, same: bool) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    place = Place("UPD-ORDER", "", "vllm/file.py", symbol, None)
    prints = []
    for text in (old, new):
        (tmp_path / place.file).write_text(text)
        prints.append(observe(tmp_path, [place]).files[place.file].symbols[symbol])
    assert None not in prints
    assert (prints[0] == prints[1]) is same


def test_a_blob_has_the_id_that_git_gives_it() -> None:
    content = b"what is up, doc?"
    assert drift.blob_id(content) == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"


def rests_on(upstream: str) -> list[Place]:
    return drift.places(replace(spec.clauses()["UPD-ORDER"], upstream=upstream))


def test_every_form_of_an_upstream_line_is_read() -> None:
    one, two = "a" * 40, "b" * 40
    text = (
        f"none; a ruling of this spec. What it follows: `vllm/a.py`, `f`, `C.g` and `C`, blob `{one}`; "
        f"the other practice, by size: `vllm/b.py`, `h`, blob `{two}` and `vllm/b.py`, `i`, blob `{two}`, "
        "which is all; `vllm/c.py`; the worked examples: `docs/d.md`"
    )
    assert rests_on(text) == [
        Place("UPD-ORDER", "What it follows", "vllm/a.py", "f", one),
        Place("UPD-ORDER", "What it follows", "vllm/a.py", "C.g", one),
        Place("UPD-ORDER", "What it follows", "vllm/a.py", "C", one),
        Place("UPD-ORDER", "the other practice, by size", "vllm/b.py", "h", two),
        Place("UPD-ORDER", "", "vllm/b.py", "i", two),
        Place("UPD-ORDER", "", "vllm/c.py", None, None),
        Place("UPD-ORDER", "the worked examples", "docs/d.md", None, None),
    ]
    assert rests_on("none; a ruling of this spec") == []


@pytest.mark.parametrize(
    "upstream",
    ["`f`, `vllm/a.py`", "`f`", f"`vllm/a.py`, blob `{'a' * 40}`, `f`", "`vllm/a.py`, `a b`", "`vllm/a.py`, `abc.`"],
)
def test_an_upstream_line_of_another_form_is_refused(upstream: str) -> None:
    with pytest.raises(spec.SpecError, match="UPD-ORDER: "):
        rests_on(upstream)


@pytest.mark.parametrize("clause", spec.clauses().values(), ids=lambda clause: clause.id)
def test_every_place_of_a_clause_is_pinned(clause: spec.Clause) -> None:
    found = drift.places(clause)
    assert found or clause.upstream == "none; a ruling of this spec"
    assert {place.blob for place in found} - {None} == set(re.findall(r"`([0-9a-f]{40})`", clause.upstream))
    assert {place.file for place in found} == set(re.findall(r"`(\S+/\S+)`", clause.upstream))
    for place in found:
        source = drift.pinned().files[place.file]
        assert source.blob == place.blob, "run `make upstream`"
        assert place.symbol is None or source.symbols[place.symbol], "run `make upstream`"


def test_every_pin_is_cited() -> None:
    pins = {(file, symbol) for file, source in drift.pinned().files.items() for symbol in source.symbols or [None]}
    assert pins == {(place.file, place.symbol) for place in cited()}


def test_pins_are_not_written_where_the_clauses_cite_something_else(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("upstream.installed_root", lambda: tree)
    with pytest.raises(SystemExit, match=rf"UPD-REMOVE: {INTERFACE} is blob [0-9a-f]{{40}}, and the clause cites "):
        pin(tmp_path / "pins.json")
    now = observe(tree, cited())
    place = Place("UPD-ORDER", "", INTERFACE, "BatchUpdate.order", now.files[INTERFACE].blob)
    monkeypatch.setattr("upstream.cited", lambda: [place])
    with pytest.raises(SystemExit, match=f"UPD-ORDER: {INTERFACE} defines no BatchUpdate.order"):
        pin(tmp_path / "pins.json")
    assert not (tmp_path / "pins.json").exists()
    monkeypatch.setattr("upstream.cited", lambda: [replace(place, symbol="BatchUpdate.removed")])
    pin(tmp_path / "pins.json")
    assert json.loads((tmp_path / "pins.json").read_text())["version"] == "9.8.7"
