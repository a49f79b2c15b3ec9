"""What is shipped: the wheel holds our two packages with their data and nothing else, and runs outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DISTRIBUTION = "gpu-cluster-optimizer"

_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # before setuptools puts arguments of its own there
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)
"""


def _run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(one) for one in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**clean, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source distribution and wheel, built from a copy of the checkout with the required setuptools."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    hidden = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=hidden)
    venv.create(folder / "tools", with_pip=True)
    python = folder / "tools" / "bin" / "python"
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    got = _run(python, "-m", "pip", "install", "-q", *requires, cwd=folder)
    if got.returncode:
        pytest.skip(f"{requires} cannot be had, no package index: {got.stderr[-200:]}")
    result = _run(python, "-c", _BUILD, folder, cwd=source)
    assert result.returncode == 0, result.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def shipped_files(source: Path) -> set[str]:
    """Files of the two packages in the sources that belong into the wheel."""
    found: set[str] = set()
    for package in ("optimizer", "constraints"):
        for path in (source / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md":
                found.add(path.relative_to(source).as_posix())
    return found


def test_wheel_holds_our_packages_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(built[1]).namelist())
    assert {name.split("/")[0].partition("-")[0] for name in names} == {
        "optimizer",
        "constraints",
        "gpu_cluster_optimizer",
    }
    ours = {name for name in names if ".dist-info/" not in name and not name.endswith(".md")}
    assert ours == shipped_files(built[0].parent / "source")
    assert {"optimizer/py.typed", "constraints/py.typed", "optimizer/schema/instance.schema.json"} <= ours
    assert any(name.startswith("optimizer/commands/templates/") for name in ours)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_source_distribution_has_the_launcher(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"cli.py", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= names


def test_wheel_runs_outside_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Its libraries are those of this environment; its own files are those of the wheel alone."""
    target = tmp_path / "installed"
    pip = _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, built[1], cwd=tmp_path)
    assert pip.returncode == 0, pip.stderr
    command = target / "bin" / "optimize"
    version = _run(sys.executable, command, "--version", cwd=tmp_path, PYTHONPATH=str(target))
    assert version.stdout.startswith("optimize "), version.stderr
    where = _run(
        sys.executable, "-c", "import optimizer; print(optimizer.__file__)", cwd=tmp_path, PYTHONPATH=str(target)
    )
    assert where.stdout.startswith(str(target))
    template = _run(sys.executable, command, "new", "serving-8b", cwd=tmp_path, PYTHONPATH=str(target))
    (tmp_path / "my.json").write_text(template.stdout, encoding="utf-8")
    check = _run(sys.executable, command, "check", "my.json", "--json", cwd=tmp_path, PYTHONPATH=str(target))
    assert check.returncode == 0, check.stderr
    assert json.loads(check.stdout)["searched"]["accelerators"]


def test_a_module_of_the_working_folder_does_not_take_our_place(built: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "installed"
    _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, built[1], cwd=tmp_path)
    for name in ("cli.py", "constraints.py", "optimizer.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong module')\n")
    result = _run(sys.executable, target / "bin" / "optimize", "--version", cwd=tmp_path, PYTHONPATH=str(target))
    assert result.returncode == 0, result.stderr


def test_both_packages_are_ours() -> None:
    """Their names are generic: another distribution that brings one of them would replace it in silence."""
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        pytest.skip("not installed: pip install -e . --config-settings editable_mode=compat")
    owners = packages_distributions()
    for package in ("optimizer", "constraints"):
        # An editable installation lists no packages; a foreign owner would be listed all the same.
        assert set(owners.get(package, [])) <= {DISTRIBUTION}


def test_constraints_states_its_owner() -> None:
    import constraints

    assert constraints.OWNER == DISTRIBUTION


def test_launcher_is_a_few_lines_and_no_part_of_the_wheel() -> None:
    code = [line for line in (ROOT / "cli.py").read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(code) <= 5
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["py-modules"] == []
