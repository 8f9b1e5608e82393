"""Learning a policy from demonstrations.

Axes: ``n`` frames, ``b`` moments, ``k`` steps, ``d`` action dimensions, ``s`` state.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from policies.flow import FlowMatching, Objective
from policies.frame import ActionFrame
from policies.horizons import Consensus, Horizons
from policies.load import save_policy
from policies.vla import VLA
from robot.errors import DatasetError
from robot.nn.augment import random_shift
from robot.nn.chunks import ChunkSampler, FrameSource, Moments
from robot.nn.learner import Batch
from robot.nn.normalise import Mode
from robot.nn.statistics import Statistics
from robot.nn.text import embed
from robot.types import Spec

_LOOKED_AT = 20_000
"""So many moments are enough for statistics; more would only cost time."""


class PolicyLearner:
    """A policy on its way: batches, loss, validation and checkpoints for the trainer.

    Args:
        sources: Frames of the demonstrations.
        spec: What they were recorded with.
        cameras: Cameras to look at; all of the spec if None.
        horizons: Chunk lengths; a single one makes a plain policy.
        objective: Flow matching unless given.
        scene, expert, backbone: Sizes, passed to the model.
        auxiliary: Weight of the head that reads object poses where the data have them; 0 is off.
        draws: Draws of noise for each moment.
        shift: Random shift of the images [px].
        normalise: Mode of the actions' normalisation.
        per_step: Whether each step of the chunk has its own statistics.
        commit: Steps to execute, or how the horizons decide; stored with the policy.
        precision: Of the weights on disk.
        held_out: Share of episodes kept for validation.
        episodes: Whether failed episodes are left out, where a dataset says which failed.
        seed: Start weights and the choice of held-out episodes.
        encode: Instructions to vectors.
    """

    def __init__(
        self,
        sources: Sequence[FrameSource],
        spec: Spec,
        *,
        cameras: Sequence[str] | None = None,
        horizons: Horizons | None = None,
        objective: Objective | None = None,
        scene: Mapping[str, Any] | None = None,
        expert: Mapping[str, Any] | None = None,
        backbone: Mapping[str, Any] | None = None,
        auxiliary: float = 1.0,
        draws: int = 2,
        shift: int = 3,
        normalise: Mode = "mean_std",
        per_step: bool = True,
        commit: int | Consensus = 8,
        precision: Literal["float32", "float16"] = "float16",
        held_out: float = 0.05,
        episodes: Literal["successful", "all"] = "successful",
        seed: int = 0,
        encode: Callable[[Sequence[str]], np.ndarray] = embed,
    ) -> None:
        horizons = horizons or Horizons(lengths=(16,))
        chosen = tuple(spec.cameras) if cameras is None else tuple(cameras)
        unknown = [name for name in chosen if name not in spec.cameras]
        if unknown:
            raise DatasetError(
                f"the dataset has no camera {unknown[0]}; it has {', '.join(spec.cameras)}"
            )
        self.spec, self.shift, self.commit = spec, shift, commit
        self.precision: Literal["float32", "float16"] = precision
        self.frame = ActionFrame.of(spec)
        self.sampler = ChunkSampler(
            sources,
            steps=horizons.longest,
            cameras=chosen,
            held_out=held_out,
            seed=seed,
            keep=[_successful(s) if episodes == "successful" else None for s in sources],
        )
        self.statistics = self._measure(per_step=per_step, seed=seed)
        self.arguments: dict[str, Any] = {
            "cameras": {n: [spec.cameras[n].height, spec.cameras[n].width] for n in chosen},
            "scene": dict(scene or {}),
            "expert": dict(expert or {}),
            "backbone": dict(backbone) if backbone else None,
            "normalise": normalise,
        }
        torch.manual_seed(seed)
        self._model = VLA(
            statistics=self.statistics,
            instructions=len(self.sampler.instructions),
            horizons=horizons,
            objective=objective or FlowMatching(),
            auxiliary=auxiliary,
            draws=draws,
            **self.arguments,
        )
        self._model.table.copy_(torch.from_numpy(encode(self.sampler.instructions).copy()))

    @property
    def module(self) -> VLA:
        """The model."""
        return self._model

    def batch(self, rng: np.random.Generator, size: int, *, held_out: bool) -> Batch:
        """Return a batch of moments; their images are shifted unless held out."""
        moments = self.sampler.draw(rng, size, held_out=held_out)
        images = {
            name: torch.from_numpy(
                pixels if held_out else random_shift(pixels, most=self.shift, rng=rng)
            )
            for name, pixels in moments.images.items()
        }
        return {"images": images, **self._numbers(moments)}

    def validate(self, batch: Batch) -> Mapping[str, Tensor | float]:
        """Return the losses, and how far drawn actions are from recorded ones.

        ``action_error`` is the mean absolute error over valid steps and dimensions in the units of
        the robot [rad for joints], ``first_error`` that of the first step.
        """
        parts = dict(self._model(**batch))
        memory = self._model.remember(
            images=batch["images"],
            state=batch["state"],
            text=self._model.table[batch["instruction"]],
        )
        actions, valid = batch["actions"], batch["valid"]
        drawn = self._model.objective.sample(
            lambda noisy, time: self._model.expert(noisy, time, memory),
            torch.randn_like(actions).unsqueeze(1),
        )
        apart = (self._model.normalise_actions.invert(drawn.actions[:, 0]) - actions).abs()
        error = apart.mean(dim=-1)
        parts["action_error"] = (error * valid).sum() / valid.sum()
        parts["first_error"] = error[:, 0].mean()
        return parts

    def save(self, folder: Path, weights: Mapping[str, Tensor], notes: Mapping[str, Any]) -> Path:
        """Write the policy's checkpoint."""
        needed = {k: v for k, v in self.statistics.items() if k != "environment"}
        return save_policy(
            folder,
            model=self._model,
            arguments=self.arguments,
            weights=weights,
            spec=self.spec,
            statistics=needed,
            instructions=self.sampler.instructions,
            commit=self.commit,
            precision=self.precision,
            notes=notes,
        )

    def _numbers(self, moments: Moments) -> dict[str, Tensor]:
        told = self.frame.tell(moments.actions, moments.state)
        return {
            "state": torch.from_numpy(moments.state),
            "instruction": torch.from_numpy(moments.instruction),
            "actions": torch.from_numpy(told.astype(np.float32)),
            "valid": torch.from_numpy(moments.valid),
            "environment": torch.from_numpy(moments.environment),
        }

    def _measure(self, *, per_step: bool, seed: int) -> dict[str, Statistics]:
        """Return statistics of training moments; steps past an episode's end do not count."""
        rows = self.sampler.training
        rng = np.random.default_rng(seed)
        if len(rows) > _LOOKED_AT:
            rows = rows[rng.choice(len(rows), _LOOKED_AT, replace=False)]
        moments = self.sampler.without_images(rows)
        told = self.frame.tell(moments.actions.astype(np.float64), moments.state.astype(np.float64))
        told[~moments.valid] = np.nan
        if not per_step:
            told = told[moments.valid]
        found = {
            "state": Statistics.of(moments.state, names=self.spec.state_names, what="state"),
            "actions": Statistics.of(told, names=self.spec.action_names, what="actions"),
        }
        if self.sampler.environment:
            names = [f"environment[{i}]" for i in range(self.sampler.environment)]
            found["environment"] = Statistics.of(
                moments.environment, names=names, what="environment"
            )
        return found


def _successful(source: FrameSource) -> Bool[np.ndarray, " n"] | None:
    """Return which frames belong to successful episodes; None if the dataset does not say."""
    success = getattr(source, "success", None)
    return None if success is None else np.asarray(success, dtype=bool)
