"""From a checkpoint folder to a policy, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from policies.horizons import Consensus
from policies.neural import NeuralPolicy
from policies.vla import VLA, horizons_from, objective_from, objective_to
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

KIND = "policies.vla.VLA"


def save_policy(
    folder: str | Path,
    *,
    model: VLA,
    arguments: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    spec: Spec,
    statistics: Mapping[str, Statistics],
    instructions: Sequence[str],
    commit: int | Consensus,
    precision: Literal["float32", "float16"] = "float32",
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a policy's checkpoint; the auxiliary head is left behind.

    Args:
        folder: Where.
        model: The model, for its horizons and objective.
        arguments: ``cameras``, ``scene``, ``expert``, ``backbone`` and ``normalise`` of the model.
        weights: Its state dict, or an average of it.
        spec: What it was trained on.
        statistics: Numbers of the normalisation.
        instructions: In the order of the model's table.
        commit: How many steps are executed unless the loader says otherwise.
        precision: Of the weights on disk.
        notes: Anything to keep beside.
    """
    stored = {
        **arguments,
        "horizons": {**asdict(model.horizons), "lengths": list(model.horizons.lengths)},
        "objective": objective_to(model.objective),
        "instructions": list(instructions),
        "commit": asdict(commit) if isinstance(commit, Consensus) else commit,
    }
    return save_checkpoint(
        folder,
        kind=KIND,
        arguments=stored,
        weights=model.deployed(weights),
        spec=spec,
        statistics=statistics,
        cameras=tuple(model.scene.cameras),
        precision=precision,
        notes=notes,
    )


def load_policy(
    path: str | Path,
    *,
    num_threads: int | None = 1,
    commit: int | Consensus | None = None,
    temperature: float = 1.0,
    sampling_steps: int | None = None,
) -> NeuralPolicy:
    """Return the policy of a checkpoint folder.

    Args:
        path: The folder.
        num_threads: Threads torch may use in this process; None leaves them as they are.
        commit: Steps to execute or how the horizons decide; as stored if None.
        temperature: Size of the noise that candidates are drawn from.
        sampling_steps: Steps from noise to actions; as stored if None.

    Raises:
        UnknownName: If there is no checkpoint, but others are near.
        CheckpointError: If it is incomplete, of another class, or its weights do not fit.
    """
    folder = find_checkpoint(path)
    config = read_config(folder)
    if config["kind"] != KIND:
        raise CheckpointError(
            f"checkpoint {folder} is of class {config['kind']!r}, a policy needs {KIND!r}; give a "
            "policy's checkpoint, or load this one where its class is used"
        )
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    arguments = dict(config["arguments"])
    statistics, spec = read_statistics(folder), read_spec(folder)
    try:
        instructions = [str(text) for text in arguments.pop("instructions")]
        stored = arguments.pop("commit")
        objective = objective_from(arguments.pop("objective"))
        horizons = horizons_from(arguments.pop("horizons"))
        model = VLA(
            statistics=statistics,
            instructions=len(instructions),
            horizons=horizons,
            objective=objective,
            **arguments,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {folder} does not describe a policy of this version: {error}"
        ) from error
    load_weights(model, read_weights(folder / WEIGHTS), where=str(folder))
    if sampling_steps is not None and hasattr(objective, "steps"):
        model.objective = replace(objective, steps=sampling_steps)  # pyright: ignore
    if commit is None:
        commit = Consensus(**stored) if isinstance(stored, Mapping) else int(stored)
    return NeuralPolicy(
        model, spec=spec, instructions=instructions, commit=commit, temperature=temperature
    )
