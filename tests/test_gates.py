"""The gates themselves: import contracts fail when broken, and the wheel holds what it must."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import robot

ROOT = Path(__file__).parents[1]
PACKAGES = ("robot", "policies", "values", "sim", "hardware")

# contract, file, what is written into it
OFFENCES = {
    "a policy that imports the simulator": ("packages", "policies/bad.py", "import sim.mujoco"),
    "a kernel that imports a policy": ("packages", "robot/types.py", "import policies.steer"),
    "a simulator that imports a value": ("packages", "sim/bad.py", "import values.ranking"),
    "hardware that imports the simulator": ("packages", "hardware/bad.py", "import sim.mujoco"),
    "a type that imports the runner": ("layers", "robot/types.py", "import robot.runner"),
    "a module that no layer names": ("layers", "robot/extra.py", ""),
    "a runner that imports torch": ("numpy-only", "robot/runner.py", "import torch"),
    "a recorder that imports mujoco": ("numpy-only", "robot/watch.py", "import mujoco"),
    "a job that imports robosuite": ("numpy-only", "robot/jobs/evaluate.py", "import robosuite"),
    "a policy that reads Hydra": ("plain-arguments", "policies/bad.py", "import hydra"),
    "a runner that reads OmegaConf": ("plain-arguments", "robot/runner.py", "import omegaconf"),
    "a driver that imports torch": ("servo", "hardware/bad.py", "import torch"),
}


@pytest.fixture(scope="module")
def contracts() -> dict[str, str]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {c["id"]: c["name"] for c in pyproject["tool"]["importlinter"]["contracts"]}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=lambda _, names: _not_python(names)
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def _not_python(names: list[str]) -> list[str]:
    return [name for name in names if "." in name and not name.endswith(".py")] + ["__pycache__"]


def lint(folder: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    chosen = [word for contract in contracts for word in ("--contract", contract)]
    code = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", *chosen],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_contract_has_an_offence_that_breaks_it(contracts: dict[str, str]) -> None:
    assert {contract for contract, _, _ in OFFENCES.values()} == set(contracts)


def test_the_tree_keeps_all_contracts(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_contract_fails_when_broken(offence: str, copy: Path, contracts: dict[str, str]) -> None:
    contract, name, line = OFFENCES[offence]
    with (copy / name).open("a") as module:
        module.write(f"\n{line}\n")
    done = lint(copy, contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contracts[contract]} BROKEN" in done.stdout


def test_robot_is_ours_and_no_other_distribution_ships_it() -> None:
    assert Path(robot.__file__).parent == ROOT / "robot"
    owners = packages_distributions()
    assert set(owners.get("robot", ["ambidex"])) == {"ambidex"}


def test_robotframework_is_shut_out_by_a_constraint_and_not_locked() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "robotframework<0" in pyproject["tool"]["uv"]["constraint-dependencies"]
    locked = (ROOT / "requirements.lock").read_text()
    assert "\nrobotframework==" not in locked


def test_the_lock_holds_one_opencv_hashes_and_no_place() -> None:
    locked = (ROOT / "requirements.lock").read_text()
    names = {line.split("==")[0] for line in locked.splitlines() if line[:1].isalpha()}
    assert {name for name in names if name.startswith("opencv")} == {"opencv-python"}
    assert "mink" in names
    assert "--index-url" not in locked
    assert "://" not in locked
    entries = [line for line in locked.splitlines() if line[:1].isalpha()]
    assert all(line.endswith("\\") for line in entries), "an entry without a hash"


def test_the_wheel_works_where_nothing_else_of_ours_is(tmp_path: Path) -> None:
    source = tmp_path / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", *PACKAGES, "configs", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, tracked):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, source],
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("ambidex-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "configs/eval.yaml" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); import robot, policies, values, sim, "
        "hardware, configs; from robot.cli import main; print(robot.__file__); "
        "sys.exit(main(['eval', '--show', 'checkpoint=x', 'out=y']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert "sim.robosuite.TwoArmEnv" in done.stdout
