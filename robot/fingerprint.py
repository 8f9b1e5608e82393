"""What a result depends on: versions, machine, code, weights and configuration.

A fingerprint is plain JSON. Two of them are compared entry by entry; a run is resumed only where
the entries that decide outcomes are equal.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, cast

PACKAGES = (
    "ambidex",
    "numpy",
    "torch",
    "mujoco",
    "robosuite",
    "lerobot",
    "numba",
    "scipy",
    "av",
    "opencv-python",
    "opencv-python-headless",
    "mink",
    "gymnasium",
    "diffusers",
    "transformers",
    "timm",
    "ray",
)
# How the work is spread and shown does not decide how an episode ends.
WITHOUT_EFFECT = ("executor", "seeds", "out", "report", "workers", "videos", "hydra", "resume")
DECISIVE = ("weights", "configuration")


def take_fingerprint(
    *,
    configuration: Mapping[str, Any] | None = None,
    weights: Mapping[str, Path] | None = None,
    packages: Sequence[str] = PACKAGES,
) -> dict[str, Any]:
    """Return what this run depends on, ready for JSON.

    Args:
        configuration: The resolved configuration of the run; entries that cannot change an
            outcome (executor, seeds, out, report) are left out.
        weights: Files or folders of weights by the name the user knows; those that the
            configuration names are found by themselves.
        packages: Distributions whose versions are stored.
    """
    plain = _plain({k: v for k, v in (configuration or {}).items() if k not in WITHOUT_EFFECT})
    artefacts = {**find_weights(plain), **{k: Path(v) for k, v in (weights or {}).items()}}
    return {
        "versions": {"python": platform.python_version(), **_versions(packages)},
        "machine": _machine(),
        "code": _code(Path(__file__).resolve().parent.parent),
        "weights": {name: hash_files(path) for name, path in sorted(artefacts.items())},
        "configuration": plain,
    }


def _plain(value: Any) -> Any:
    """Return ``value`` as it comes back from JSON."""
    return json.loads(json.dumps(value, default=str, sort_keys=True))


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, str]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
        "accelerator": _accelerator(),
        "gl": os.environ.get("MUJOCO_GL", "default"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _accelerator() -> str:
    command = shutil.which("nvidia-smi")
    if command is None:
        return "none"
    query = [command, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return answer.stdout.strip() or "none"


def _code(root: Path) -> dict[str, str]:
    """Return the git commit of the code and whether it was changed since, where there is git."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return answer.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return {"commit": "unknown"}
        changed = git("status", "--porcelain", "--untracked-files=no")
        return {"commit": git("rev-parse", "HEAD"), "changed": "yes" if changed else "no"}
    except (OSError, subprocess.SubprocessError):
        return {"commit": "unknown"}


def find_weights(configuration: Any, *, name: str = "") -> dict[str, Path]:
    """Return every checkpoint that a configuration names, by its place in the configuration.

    A checkpoint is an existing ``.safetensors`` file, or a folder that holds one.
    """
    if isinstance(configuration, Mapping):
        entries = [(str(k), v) for k, v in cast("Mapping[Any, Any]", configuration).items()]
    elif isinstance(configuration, list):
        entries = [(str(i), v) for i, v in enumerate(cast("list[Any]", configuration))]
    elif isinstance(configuration, str) and _is_checkpoint(configuration):
        return {name: Path(configuration)}
    else:
        return {}
    found: dict[str, Path] = {}
    for key, value in entries:
        found |= find_weights(value, name=f"{name}.{key}" if name else key)
    return found


def _is_checkpoint(text: str) -> bool:
    if not text or len(text) > 1024 or "\n" in text:
        return False
    path = Path(text)
    if path.is_dir():
        return any(path.glob("*.safetensors"))
    return path.suffix == ".safetensors" and path.is_file()


def hash_files(path: Path) -> dict[str, str]:
    """Return the sha256 of a file, or of each file of a folder, by relative name.

    Raises:
        FileNotFoundError: If there is nothing at ``path``.
    """
    if path.is_file():
        return {path.name: _sha256(path)}
    files = sorted(p for p in path.rglob("*") if p.is_file())
    if not files:
        raise FileNotFoundError(
            f"{path} holds no weights to hash; check the path of the checkpoint"
        )
    return {str(p.relative_to(path)): _sha256(p) for p in files}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def compare_fingerprints(
    mine: Mapping[str, Any], theirs: Mapping[str, Any], *, only: Sequence[str] | None = None
) -> list[str]:
    """Return one sentence for each entry that differs, by its dotted name.

    Args:
        mine: One fingerprint.
        theirs: The other.
        only: Sections to compare (``weights``, ``configuration``, ...); all if None.
    """
    sections = sorted({*mine, *theirs}) if only is None else only
    found: list[str] = []
    for section in sections:
        left, right = flatten(mine.get(section)), flatten(theirs.get(section))
        for key in sorted({*left, *right}):
            a, b = left.get(key, "absent"), right.get(key, "absent")
            if a != b:
                name = f"{section}.{key}" if key else section
                found.append(f"{name}: {_short(a)} against {_short(b)}")
    return found


def _short(value: Any) -> str:
    text = str(value)
    is_hash = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return text[:12] if is_hash else text


def flatten(value: Any, *, name: str = "") -> dict[str, Any]:
    """Return the leaves of nested mappings and lists by dotted name."""
    entries: list[tuple[str, Any]]
    if isinstance(value, Mapping) and value:
        entries = [(str(k), v) for k, v in cast("Mapping[Any, Any]", value).items()]
    elif isinstance(value, list) and value:
        entries = [(str(i), v) for i, v in enumerate(cast("list[Any]", value))]
    else:
        return {} if value is None and not name else {name: value}
    leaves: dict[str, Any] = {}
    for key, entry in entries:
        leaves |= flatten(entry, name=f"{name}.{key}" if name else key)
    return leaves
