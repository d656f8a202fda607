"""A built wheel, installed in a clean environment away from the checkout."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `logitsproc` command of an environment that has the wheel, and this environment's dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    clean = folder / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
    python = clean / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet", str(wheel)]
    subprocess.run(install, check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (clean / "lib" / version / "site-packages" / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return clean / "bin" / "logitsproc"


def output(command: Path, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], cwd="/", capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def test_the_package_comes_from_the_wheel(command: Path) -> None:
    code = "import logitsproc.spec, logitsproc.reference.row.min_p as m; print(logitsproc.spec.__file__, m.__file__)"
    done = subprocess.run([command.parent / "python", "-c", code], cwd="/", capture_output=True, text=True, check=True)
    assert all(str(command.parent.parent) in path for path in done.stdout.split())


def test_spec_and_cite_find_the_chapters(command: Path) -> None:
    assert "UPD-ORDER" in output(command, "spec")
    assert output(command, "cite", "UPD-ORDER").startswith("> **[UPD-ORDER](https://")


def test_the_pins_of_upstream_are_there(command: Path, tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    done = subprocess.run([command, "drift", "--root", tmp_path], cwd="/", capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "the file is gone" in done.stdout


def test_check_runs(command: Path) -> None:
    said = output(command, "check", "logitsproc.optimized:LogitBiasLogitsProcessor", "--as", "logit_bias")
    assert "conformant on every well-formed update" in said


def test_mutants_are_made_of_the_reference_in_the_wheel(command: Path) -> None:
    said = output(command, "mutants", "--only", "batch.swap*")
    assert "right" in said
    assert "UPD-SWAP 1" in said
