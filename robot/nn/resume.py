"""The state of a training run on disk: enough to go on after a kill as if nothing had happened.

Each state is a folder ``step-<number>`` with tensors in safetensors and numbers in JSON. It is
written beside and renamed when whole, so a folder of that name is always complete.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from robot.errors import CheckpointError
from robot.nn.checkpoint import load_weights
from robot.nn.ema import MovingAverage


def save_state(
    root: Path,
    *,
    step: int,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: MovingAverage,
    numbers: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Write the state after ``step`` steps and drop all but the latest ``keep``."""
    folder = root / f"step-{step:09d}"
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file(_whole(module.state_dict()), partial / "weights.safetensors")
    save_file(_whole(average.average), partial / "average.safetensors")
    moments: dict[str, Tensor] = {}
    for index, state in optimizer.state_dict()["state"].items():
        moments |= {f"{index}.{name}": value for name, value in state.items()}
    save_file(_whole(moments), partial / "optimizer.safetensors")
    (partial / "state.json").write_text(json.dumps({"step": step, **numbers}))
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    for old in sorted(root.glob("step-*[0-9]"))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def latest_state(root: Path) -> Path | None:
    """Return the latest complete state, or None."""
    states = sorted(root.glob("step-*[0-9]"))
    return states[-1] if states else None


def load_state(
    folder: Path,
    *,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: MovingAverage,
) -> dict[str, Any]:
    """Put a state back and return its numbers.

    Raises:
        CheckpointError: If it belongs to another model.
    """
    load_weights(module, load_file(folder / "weights.safetensors"), where=str(folder))
    averages = load_file(folder / "average.safetensors")
    if averages.keys() != average.average.keys():
        raise CheckpointError(f"the averages in {folder} are those of another model; start anew")
    average.load(averages)
    plain = optimizer.state_dict()
    plain["state"] = {}
    for key, value in load_file(folder / "optimizer.safetensors").items():
        index, name = key.split(".", 1)
        plain["state"].setdefault(int(index), {})[name] = value
    optimizer.load_state_dict(plain)
    return json.loads((folder / "state.json").read_text())


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
