"""From a checkpoint folder to a value, and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from robot.checkpoint import WEIGHTS
from robot.errors import CheckpointError
from robot.nn.checkpoint import (
    find_checkpoint,
    load_weights,
    read_config,
    read_spec,
    read_statistics,
    read_weights,
    save_checkpoint,
)
from robot.nn.statistics import Statistics
from robot.types import Spec
from values.critic import Critic
from values.neural import NeuralValue

KIND = "values.critic.Critic"


def save_value(
    folder: str | Path,
    *,
    arguments: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    spec: Spec,
    statistics: Mapping[str, Statistics],
    instructions: Sequence[str],
    precision: Literal["float32", "float16"] = "float32",
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a value's checkpoint.

    Args:
        folder: Where.
        arguments: ``cameras``, ``steps`` and sizes of the critic, ready for JSON.
        weights: Its state dict, or an average of it.
        spec: What it was trained on.
        statistics: Numbers of the normalisation.
        instructions: In the order of the critic's table.
        precision: Of the weights on disk.
        notes: Anything to keep beside.
    """
    return save_checkpoint(
        folder,
        kind=KIND,
        arguments={**arguments, "instructions": list(instructions)},
        weights=weights,
        spec=spec,
        statistics=statistics,
        cameras=tuple(arguments["cameras"]),
        precision=precision,
        notes=notes,
    )


def load_value(path: str | Path, *, num_threads: int | None = 1) -> NeuralValue:
    """Return the value of a checkpoint folder.

    Args:
        path: The folder.
        num_threads: Threads torch may use in this process; None leaves them as they are.

    Raises:
        UnknownName: If there is no checkpoint, but others are near.
        CheckpointError: If it is incomplete, of another class, or its weights do not fit.
    """
    folder = find_checkpoint(path)
    config = read_config(folder)
    if config["kind"] != KIND:
        raise CheckpointError(
            f"checkpoint {folder} is of class {config['kind']!r}, a value needs {KIND!r}; give a "
            "value's checkpoint, or load this one where its class is used"
        )
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    arguments = dict(config["arguments"])
    spec, statistics = read_spec(folder), read_statistics(folder)
    try:
        instructions = [str(text) for text in arguments.pop("instructions")]
        model = Critic(
            spec=spec, statistics=statistics, instructions=len(instructions), **arguments
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {folder} does not describe a value of this version: {error}"
        ) from error
    load_weights(model, read_weights(folder / WEIGHTS), where=str(folder))
    return NeuralValue(model, spec=spec, instructions=instructions)
