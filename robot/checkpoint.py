"""A checkpoint on disk: a folder of weights, configuration, spec and statistics.

No torch here, so that a spec can be compared with a robot's before anything is built.
``model.safetensors`` holds the weights, ``config.json`` which class with which arguments,
``spec.json`` the robot's entries and ``statistics.json`` the numbers of the normalisation.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot.errors import CheckpointError, UnknownName
from robot.types import Spec

WEIGHTS, CONFIG, SPEC, STATISTICS = (
    "model.safetensors",
    "config.json",
    "spec.json",
    "statistics.json",
)
FILES = (WEIGHTS, CONFIG, SPEC, STATISTICS)


def is_checkpoint(path: Path) -> bool:
    """Return whether the folder looks like a checkpoint."""
    return (path / CONFIG).is_file() and (path / WEIGHTS).is_file()


def checkpoints_near(path: Path) -> list[Path]:
    """Return checkpoints below ``path``, or else below its nearest parent that exists."""
    root = path
    while not root.is_dir() and root != root.parent:
        root = root.parent
    depths = ("*/", "*/*/", "*/*/*/")
    found = {c.parent for depth in depths for c in root.glob(depth + CONFIG)}
    return sorted(folder for folder in found if is_checkpoint(folder))


def find_checkpoint(path: str | Path) -> Path:
    """Return the checkpoint folder at ``path``.

    Raises:
        UnknownName: If the path holds no checkpoint, but others are near.
        CheckpointError: If none is near, or one lies there with a file missing.
    """
    folder = Path(path)
    if (folder / CONFIG).is_file() or (folder / WEIGHTS).is_file():
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise CheckpointError(
                f"checkpoint {folder} lacks {', '.join(missing)}; copy the whole folder again"
            )
        return folder
    near = checkpoints_near(folder)
    if near:
        raise UnknownName("checkpoint", str(folder), [str(n) for n in near])
    raise CheckpointError(
        f"no checkpoint at {folder} and none near it; train one with `ambidex train`, or give the "
        f"folder that holds {WEIGHTS}"
    )


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Return one JSON file of a checkpoint.

    Raises:
        CheckpointError: If it is missing or not an object.
    """
    try:
        plain = json.loads((folder / name).read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"cannot read {name} of checkpoint {folder}: {error}; copy the whole folder again"
        ) from error
    if not isinstance(plain, dict):
        raise CheckpointError(f"{name} of checkpoint {folder} is not an object; copy it again")
    return plain


def read_spec(path: str | Path) -> Spec:
    """Return the spec of a checkpoint without building anything.

    Raises:
        CheckpointError: If the spec cannot be read.
        UnknownName: If there is no checkpoint, but others are near.
    """
    folder = find_checkpoint(path)
    plain = read_json(folder, SPEC)
    try:
        return Spec.from_dict(plain)
    except (KeyError, TypeError) as error:
        raise CheckpointError(
            f"{SPEC} of checkpoint {folder} is not a spec ({error}); copy the whole folder again"
        ) from error


def read_cameras(path: str | Path) -> tuple[str, ...]:
    """Return the names of the cameras that a checkpoint looks at."""
    config = read_json(find_checkpoint(path), CONFIG)
    return tuple(config.get("cameras", ()))


def write_json(folder: Path, name: str, plain: Mapping[str, Any]) -> None:
    """Write one JSON file of a checkpoint; numbers must be finite."""
    (folder / name).write_text(json.dumps(plain, indent=1, allow_nan=False) + "\n")
