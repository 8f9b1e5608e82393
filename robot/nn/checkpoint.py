"""Weights to and from a checkpoint folder; nothing is loaded that does not fit exactly.

The folder itself is described in ``robot.checkpoint``. No pickle is read or written.
"""

import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from robot.checkpoint import (
    CONFIG,
    SPEC,
    STATISTICS,
    WEIGHTS,
    find_checkpoint,
    read_cameras,
    read_json,
    read_spec,
    write_json,
)
from robot.errors import CheckpointError
from robot.nn.statistics import Statistics
from robot.types import Spec

__all__ = [
    "find_checkpoint",
    "load_weights",
    "read_cameras",
    "read_config",
    "read_spec",
    "read_statistics",
    "read_weights",
    "save_checkpoint",
]

FORMAT = 1


def save_checkpoint(
    folder: str | Path,
    *,
    kind: str,
    arguments: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    spec: Spec,
    statistics: Mapping[str, Statistics],
    cameras: tuple[str, ...] = (),
    precision: Literal["float32", "float16"] = "float32",
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a checkpoint so that a reader sees the old one or the new one, never half of one.

    Args:
        folder: Where; an older checkpoint there is replaced.
        kind: Dotted name of the class to build.
        arguments: What it is built with, ready for JSON.
        weights: Its state dict.
        spec: What the robot showed and took.
        statistics: Numbers of the normalisation, by quantity.
        cameras: The cameras it looks at.
        precision: Of the weights on disk; they are float32 again when loaded.
        notes: Anything to keep beside (how it was trained), ready for JSON.

    Raises:
        CheckpointError: If a weight is not finite in this precision.
    """
    folder = Path(folder)
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    dtype = getattr(torch, precision)
    kept: dict[str, Tensor] = {}
    for name, value in weights.items():
        kept[name] = (value.to(dtype) if value.is_floating_point() else value).cpu().contiguous()
        if value.is_floating_point() and not bool(kept[name].isfinite().all()):
            raise CheckpointError(f"weight {name} is not finite in {precision}; nothing was saved")
    save_file(kept, partial / WEIGHTS)
    config = {
        "format": FORMAT,
        "kind": kind,
        "arguments": dict(arguments),
        "cameras": list(cameras),
        "precision": precision,
        "versions": {name: version(name) for name in ("torch", "safetensors")},
        "notes": dict(notes or {}),
    }
    write_json(partial, CONFIG, config)
    write_json(partial, SPEC, spec.to_dict())
    write_json(partial, STATISTICS, {k: v.to_dict() for k, v in statistics.items()})
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Return which class a checkpoint is of, and its arguments.

    Raises:
        CheckpointError: If it was written by a later format, or lacks an entry.
    """
    config = read_json(folder, CONFIG)
    for name in ("kind", "arguments"):
        if name not in config:
            raise CheckpointError(f"{CONFIG} of checkpoint {folder} lacks {name!r}; copy it again")
    if config.get("format") != FORMAT:
        raise CheckpointError(
            f"checkpoint {folder} has format {config.get('format')!r}, but {FORMAT} is read here; "
            "use the version of ambidex that wrote it"
        )
    return config


def read_statistics(folder: Path) -> dict[str, Statistics]:
    """Return the numbers of the normalisation, by quantity."""
    return {k: Statistics.from_dict(v) for k, v in read_json(folder, STATISTICS).items()}


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return tensors of a safetensors file, floats as float32.

    Raises:
        CheckpointError: If the file cannot be read.
    """
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; copy the file again") from error
    return {k: v.float() if v.is_floating_point() else v for k, v in weights.items()}


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Put weights into a module that must match them exactly.

    Args:
        module: What receives them.
        weights: Its whole state dict.
        where: Name of the source, for messages.

    Raises:
        CheckpointError: If a weight is missing, unexpected, of another shape or not finite; the
            module is untouched then.
    """
    wanted = module.state_dict()
    faults = [f"{name} is missing" for name in wanted if name not in weights]
    faults += [f"{name} is unexpected" for name in weights if name not in wanted]
    for name in wanted.keys() & weights.keys():
        mine, theirs = tuple(wanted[name].shape), tuple(weights[name].shape)
        if mine != theirs:
            faults.append(f"{name} has shape {theirs}, needed {mine}")
        elif weights[name].is_floating_point() and not bool(weights[name].isfinite().all()):
            faults.append(f"{name} is not finite")
    if faults:
        shown = "\n  ".join(sorted(faults)[:12])
        rest = f"\n  and {len(faults) - 12} more" if len(faults) > 12 else ""
        raise CheckpointError(
            f"the weights of {where} do not fit the model it names; nothing was loaded. "
            f"Retrain, or give the checkpoint that belongs to this configuration:\n  {shown}{rest}"
        )
    module.load_state_dict(dict(weights), strict=True)
