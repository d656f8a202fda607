"""The gates of others: the steps of the action, the hook, and the blocks of the page about them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
PAGE = (ROOT / "spec" / "gate-your-ci.md").read_text()
INSTALL, JUDGE = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")
PROCESSORS = """from logitsproc.conformance.miniatures.consumers import ForgetsReplacement as Forgets
from logitsproc.conformance.miniatures.controls import MinP


class Wrong(Forgets):
    pass


class Right(MinP):
    pass
"""


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def project(folder: Path) -> Path:
    """Somebody's project, with a wrong processor and a right one."""
    folder.mkdir()
    (folder / "processors.py").write_text(PROCESSORS)
    return folder


def values(action: Path, inputs: dict[str, str]) -> dict[str, str]:
    """What GitHub would put in the place of each expression, with the action in this folder."""
    given = {name: inputs.get(name, declared.get("default", "")) for name, declared in ACTION["inputs"].items()}
    return {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(action)}


def run_step(
    step: dict[str, Any], folder: Path, commands: Path, action: Path = ROOT, **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Runs a step of the action in a folder as GitHub does, with the commands of an environment first on the path."""
    told = values(action, inputs)
    given = {name: EXPRESSION.sub(lambda found: told[found[1]], text) for name, text in step["env"].items()}
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    script = folder.parent / "step.sh"
    script.write_text(step["run"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder,
        env=os.environ | given | {"PATH": path, "GITHUB_ACTIONS": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def commands_here() -> Path:
    """The folder with the commands of this environment."""
    return Path(sys.executable).parent


def git(folder: Path, *arguments: str) -> str:
    """Runs git as nobody in particular, in a repository."""
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed(folder: Path) -> str:
    """Makes the folder a repository; gives the commit that has all of it."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-verify", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


def checkout(folder: Path) -> Path:
    """The files of this repository, as they are now."""
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder
