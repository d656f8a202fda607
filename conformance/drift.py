"""Which clauses to read again, because the vLLM source they rest on is not what it was when they were written.

A clause names its upstream places: a file of vLLM's, a symbol in it, and the id of the file as a git blob.
`spec/upstream.json` pins the blob of each file and a fingerprint of each symbol. A file that changed while the symbol
did not is no reason to read the clause again.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import io
import itertools
import json
import platform
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from logitsproc import spec
from logitsproc.conformance.bindings import CannotRun

PACKAGE = "vllm"
AS_PINNED, MOVED_ON, TO_REREAD, NOT_COMPARED = "as pinned", "moved on", "to re-read", "not compared"

QUOTED = re.compile(r"`([^`]+)`")
BLOB = re.compile(r"[0-9a-f]{40}")
FILE = re.compile(r"`([\w./-]+\.(?:py|md))`")
SYMBOL = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")
ROLE = re.compile(r"(?:^|[;.] )([^;.]+): $")
VERSION = re.compile(r"^__version__ = .*?['\"]([^'\"]+)['\"]", re.MULTILINE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SPELLING = "kind"
"""The field of a constant that says how it is written and not what it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a clause rests on: a symbol of a file, or, where `symbol` is None, the whole file.

    `role` is what the spec calls the place, as "practice", and empty where it calls it nothing; `blob` is None for a
    file that the spec gives no blob of.
    """

    clause: str
    role: str
    file: str
    symbol: str | None
    blob: str | None

    @property
    def name(self) -> str:
        """File and symbol."""
        return f"{self.file}, {self.symbol}" if self.symbol else self.file


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A hash of what a symbol's source does, and one of what it says."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file and its cited symbols: a blob of None says that there is no such file, a symbol's None the same."""

    blob: str | None
    symbols: dict[str, Fingerprint | None]


@dataclass(frozen=True, slots=True)
class Upstream:
    """The cited files of one vLLM; `version` is None where it does not say."""

    version: str | None
    files: dict[str, Source]


@dataclass(frozen=True, slots=True)
class Finding:
    """A place, its standing, and why it is not as pinned; no reason where it is."""

    place: Place
    standing: str
    why: str


def cited() -> list[Place]:
    """Every upstream place of every clause, in the order of the spec; raises SpecError."""
    return [place for clause in spec.clauses().values() for place in places(clause)]


def places(clause: spec.Clause) -> list[Place]:
    """The places of a clause's upstream line: file, symbols, blob, in this order; raises SpecError for another."""
    text, files = clause.upstream, list(FILE.finditer(clause.upstream))
    ends = [file.start() for file in files[1:]] + [len(text)]
    if "`" in text[: files[0].start() if files else None]:
        raise spec.SpecError(f"{clause.id}: its upstream line names something before it names a file")
    found = []
    for file, end in zip(files, ends, strict=False):
        role, names = ROLE.search(text[: file.start()]), QUOTED.findall(text[file.end() : end])
        blob = names.pop() if names and BLOB.fullmatch(names[-1]) else None
        if wrong := [name for name in names if not SYMBOL.fullmatch(name) or BLOB.fullmatch(name)]:
            raise spec.SpecError(f"{clause.id}: `{wrong[0]}` is no symbol of {file[1]}")
        found += [Place(clause.id, role[1] if role else "", file[1], symbol, blob) for symbol in names or [None]]
    return found


@functools.cache
def pinned() -> Upstream:
    """What `make upstream` wrote: the files and symbols when the clauses were written."""
    told = json.loads(resources.files(spec).joinpath("upstream.json").read_text(encoding="utf-8"))
    return Upstream(told["version"], {file: read_source(**source) for file, source in told["files"].items()})


def read_source(blob: str | None, symbols: dict[str, dict[str, str]]) -> Source:
    """A file as it is pinned."""
    return Source(blob, {name: Fingerprint(**told) for name, told in symbols.items()})


def installed_root() -> Path:
    """The folder that holds the installed package `vllm`, which is not imported; raises CannotRun."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise CannotRun("no vLLM is installed; --root names a folder that has one")
    return Path(found.origin).parent.parent


def observe(root: Path, wanted: Iterable[Place]) -> Upstream:
    """The files of the places as they are in a folder that holds the package `vllm`; raises CannotRun."""
    if not (root / PACKAGE / "__init__.py").is_file():
        raise CannotRun(f"{root} has no {PACKAGE}/__init__.py")
    symbols: dict[str, list[str]] = {}
    for place in wanted:
        symbols.setdefault(place.file, []).extend([place.symbol] if place.symbol else [])
    return Upstream(version_of(root), {file: source(root, file, symbols[file]) for file in sorted(symbols)})


def version_of(root: Path) -> str | None:
    """What the package calls itself; a checkout that was not built says nothing."""
    data = read(root, f"{PACKAGE}/_version.py")
    found = VERSION.search(data.decode(errors="replace")) if data is not None else None
    return found[1] if found else None


def source(root: Path, file: str, symbols: Sequence[str]) -> Source:
    """A file with the fingerprints of these symbols; raises CannotRun."""
    if (data := read(root, file)) is None:
        return Source(None, {})
    body = statements(root / file, data) if symbols else []
    return Source(blob_id(data), {name: fingerprint(data, definitions(body, name)) for name in sorted(set(symbols))})


def statements(path: Path, data: bytes) -> list[ast.stmt]:
    """What a file of Python says; raises CannotRun where this Python does not understand it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(data).body
    except (SyntaxError, ValueError) as error:
        raise CannotRun(f"{path} is nothing that Python {platform.python_version()} reads: {error}") from None


def read(root: Path, file: str) -> bytes | None:
    """The content, None where there is no such file; raises CannotRun where it cannot be read."""
    try:
        return (root / file).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotRun(f"{root / file} cannot be read: {error.strerror}") from None


def blob_id(data: bytes) -> str:
    """The id that git gives this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def definitions(body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """Every statement that defines the name, as `f`, `Class` or `Class.f`, with the docstring of an assignment."""
    head, _, rest = name.partition(".")
    if rest:
        owners = [owner for owner in definitions(body, head) if isinstance(owner, ast.ClassDef)]
        return [found for owner in owners for found in definitions(owner.body, rest)]
    found: list[ast.stmt] = []
    for statement, following in itertools.zip_longest(body, body[1:]):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            found += [statement] if statement.name == head else []
        elif head in assigned(statement):
            found += [statement, following] if following and text_of(following) is not None else [statement]
        else:
            found += [each for block in blocks(statement) for each in definitions(block, head)]
    return found


def assigned(statement: ast.stmt) -> set[str]:
    """The names that an assignment, or an alias of a type, gives a meaning."""
    targets = [*getattr(statement, "targets", []), getattr(statement, "target", None), getattr(statement, "name", None)]
    nodes = [node for target in targets if isinstance(target, ast.expr) for node in ast.walk(target)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statements within a compound one, as both branches of an `if`."""
    for field in ("body", "orelse", "finalbody"):
        yield getattr(statement, field, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def fingerprint(data: bytes, defined: Sequence[ast.stmt]) -> Fingerprint | None:
    """The fingerprint of the statements that define a symbol, None where there are none.

    Layout counts for nothing. Docstrings are words. Comments are words in a declaration (a field, an alias, a class
    without methods), where nothing else says what it means: vLLM gives the order of an update's parts in a comment of
    `BatchUpdate`. Elsewhere they count for nothing.
    """
    if not defined:
        return None
    nodes = [node for statement in defined for node in ast.walk(statement)]
    words = [text for node in nodes if (text := text_of(node)) is not None]
    if not any(isinstance(node, FUNCTIONS) for node in nodes):
        words += [text for statement in defined for text in comments(data, statement)]
    return Fingerprint(digest(canonical(list(defined))), digest(" ".join(" ".join(words).split())))


def digest(text: str) -> str:
    """A short hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def canonical(node: object) -> str:
    """Code as text. What is empty is left out, because Pythons differ in which empty fields there are."""
    if isinstance(node, list):
        return f"[{', '.join(canonical(each) for each in node if text_of(each) is None)}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if name != SPELLING]
    told = ", ".join(f"{name}={canonical(value)}" for name, value in fields if value is not None and value != [])
    return f"{type(node).__name__}({told})"


def text_of(node: object) -> str | None:
    """The text of a statement that is nothing else, as a docstring; None for another."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def comments(data: bytes, statement: ast.stmt) -> list[str]:
    """The comments on the statement's lines and directly above it."""
    lines = data.splitlines()
    first = min(node.lineno for node in [statement, *getattr(statement, "decorator_list", [])])
    while first > 1 and lines[first - 2].lstrip().startswith(b"#"):
        first -= 1
    return [text for line, text in all_comments(data) if first <= line <= (statement.end_lineno or first)]


@functools.lru_cache(maxsize=1)
def all_comments(data: bytes) -> list[tuple[int, str]]:
    """The comments of a file by line, without their marks."""
    tokens = tokenize.tokenize(io.BytesIO(data).readline)
    return [(token.start[0], token.string.lstrip("#")) for token in tokens if token.type == tokenize.COMMENT]


def compare(wanted: Iterable[Place], then: Upstream, now: Upstream) -> list[Finding]:
    """How each place stands now beside what was pinned then; both have all files of the places."""
    return [Finding(place, *standing(place, then.files[place.file], now.files[place.file])) for place in wanted]


def standing(place: Place, then: Source, now: Source) -> tuple[str, str]:
    """The standing of a place, and why."""
    if then.blob is None:
        return NOT_COMPARED, "no wheel has it" if now.blob is None else "what it was is not pinned"
    if now.blob == then.blob:
        return AS_PINNED, ""
    if now.blob is None:
        return TO_REREAD, "the file is gone"
    if place.symbol is None:
        return TO_REREAD, "the file differs"
    was, seen = then.symbols[place.symbol], now.symbols[place.symbol]
    if was is None or seen is None:
        return TO_REREAD, "gone from the file"
    if was == seen:
        return MOVED_ON, "the file differs elsewhere"
    return TO_REREAD, "its code differs" if was.code != seen.code else "its words differ, not its code"


def to_reread(findings: Iterable[Finding]) -> list[str]:
    """The ids of the clauses to read again, each once."""
    return list(dict.fromkeys(finding.place.clause for finding in findings if finding.standing == TO_REREAD))


def drift_json(findings: Sequence[Finding], then: Upstream, now: Upstream) -> dict[str, Any]:
    """Both versions of vLLM, the clauses to read again, and every place with its standing, as JSON data."""
    told = [{**asdict(found.place), "standing": found.standing, "why": found.why} for found in findings]
    return {"vllm": now.version, "pinned": then.version, "to_reread": to_reread(findings), "places": told}
