"""What is known about the machine that this runs on. Sizes in bytes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

OPENCV = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
WATCHED = (
    *OPENCV,
    "numpy",
    "torch",
    "lerobot",
    "mujoco",
    "robosuite",
    "mink",
    "av",
    "ray",
    "robotframework",
)
# The renderer may take its process with it, and belongs to a package that this one must not import.
RENDER = "from sim.render import probe; print(probe())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a machine.

    Attributes:
        python: Version of the interpreter.
        versions: Installed distributions by name.
        package: Folder from which ``robot`` is imported.
        free: Bytes free where results go.
        writable: Whether results can be written there.
        folder: Where results go.
        rendering: What a trial rendering said.
        encoders: Video encoders that are there.
        environment: Environment variables.
        cores: Processor cores.
    """

    python: tuple[int, int]
    versions: Mapping[str, str]
    package: str
    free: float
    writable: bool
    folder: str
    rendering: str
    encoders: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    cores: int = 1


def gather(out: Path) -> Facts:
    """Return the facts about this machine; rendering is tried in a process of its own."""
    import robot

    folder = out.resolve()
    while not folder.exists():
        folder = folder.parent
    return Facts(
        python=sys.version_info[:2],
        versions={name: v for name in WATCHED if (v := _version(name)) is not None},
        package=str(Path(robot.__file__ or "").parent),
        free=float(shutil.disk_usage(folder).free),
        writable=os.access(folder, os.W_OK),
        folder=str(folder),
        rendering=_try_rendering(),
        encoders=_encoders(),
        environment=dict(os.environ),
        cores=os.cpu_count() or 1,
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _try_rendering() -> str:
    command = [sys.executable, "-W", "ignore", "-c", RENDER]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return "rendering hangs for 180 s"
    lines = [line for line in (tried.stdout or tried.stderr).splitlines() if line.strip()]
    return lines[-1] if lines else f"the trial ended without a word (exit {tried.returncode})"


def _encoders() -> frozenset[str]:
    try:
        from av.codec import Codec

        Codec("libx264", "w")
    except (ImportError, ValueError):
        return frozenset()
    return frozenset({"libx264"})
