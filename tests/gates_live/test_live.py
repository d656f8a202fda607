"""The gates as a stranger has them: the action's own installation, and the hook in pre-commit's own environment."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import yaml
from gates import INSTALL, JUDGE, ROOT, blocks, checkout, commands_here, committed, project, run_step


def test_the_action_installs_what_it_runs(tmp_path: Path) -> None:
    """In an environment that has this one's dependencies and not this package."""
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", str(clean)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = clean / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    mine = project(tmp_path / "mine")
    installed = run_step(INSTALL, mine, clean / "bin", checkout(tmp_path / "action"))
    assert installed.returncode == 0, installed.stderr
    assert (packages / "logitsproc" / "conformance" / "cli.py").exists()
    done = run_step(JUDGE, mine, clean / "bin", targets="processors:Wrong processors:Right", **{"as": "min_p"})
    assert done.returncode == 1, done.stderr
    assert "\n::error file=processors.py,line=" in done.stdout
    assert "\nprocessors:Right: conformant on " in done.stdout


def test_pre_commit_installs_the_hook_and_runs_it(tmp_path: Path) -> None:
    """With the block of the page, but for the repository, which is the one here, its commit, and the processor."""
    ours, mine = checkout(tmp_path / "ours"), project(tmp_path / "mine")
    config = yaml.safe_load(blocks("yaml")[1])
    (repository,) = config["repos"]
    repository |= {"repo": str(ours), "rev": committed(ours)}
    (hook,) = repository["hooks"]
    (mine / "params.json").write_text('[{"min_p": 0.25}]')
    told = {"PRE_COMMIT_HOME": str(tmp_path / "home"), "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    command = [commands_here() / "pre-commit", "run", "--all-files", "--hook-stage", "pre-push", "--verbose"]
    for target, status in (("processors:Wrong", 1), ("processors:Right", 0)):
        hook["args"] = [target, *hook["args"][1:]]
        (mine / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        committed(mine)
        done = subprocess.run(command, cwd=mine, env=os.environ | told, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert f"{target}: {'violation of PROC-STATE-DEPARTED' if status else 'conformant on '}" in done.stdout
