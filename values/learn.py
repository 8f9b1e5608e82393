"""Learning a value from sibling labels, with recorded frames beside them.

Axes: ``g`` decisions, ``n`` candidates, ``t`` steps, ``d`` action dimensions, ``s`` state, ``e``
privileged entries, ``b`` moments of a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from robot.errors import CheckpointError, DatasetError
from robot.nn.augment import random_shift
from robot.nn.checkpoint import (
    find_checkpoint,
    load_weights,
    read_config,
    read_statistics,
    read_weights,
)
from robot.nn.chunks import ChunkSampler, FrameSource
from robot.nn.statistics import Statistics
from robot.nn.text import embed
from robot.nn.trainer import Batch
from robot.siblings import SiblingReader, joined, outcomes_of
from robot.types import Spec
from values.chunks import ChunkFeatures, can_tell_tools
from values.critic import Critic
from values.labels import common_spec, returns_of, split
from values.load import save_value
from values.ranking import sibling_report


class CriticLearner:
    """A critic on its way: batches, loss, validation and checkpoints for the trainer.

    Args:
        sources: Frames of demonstrations or rollouts; they teach where objects are and how good
            states are. May be empty.
        spec: What they were recorded with.
        siblings: Stores of sibling labels.
        policy: Checkpoint of a policy whose look at the scene is the start; None starts anew.
        freeze: Whether that look stays as it is.
        cameras: Cameras to look at; those of the policy, or all, if None.
        steps, per_token, tools, scene, width, depth, heads, located: As in ``Critic``; ``tools``
            is whether they can be told, and ``scene`` that of the policy, if None.
        shift: Random shift of the images [px].
        gamma: Discount of success a control step, for returns of frames.
        weights: Of the parts of the loss.
        held_out: Share of the seeds kept for validation.
        precision: Of the weights on disk.
        seed: Start weights and the choice of held-out seeds.
        encode: Instructions to vectors.

    Raises:
        SpecMismatch: If labels, frames and policy do not speak of the same entries.
        DatasetError: If there are no labels.
    """

    def __init__(
        self,
        sources: Sequence[FrameSource] = (),
        spec: Spec | None = None,
        *,
        siblings: Sequence[str | Path],
        policy: str | Path | None = None,
        freeze: bool = False,
        cameras: Sequence[str] | None = None,
        steps: int = 8,
        per_token: int = 2,
        tools: bool | None = None,
        scene: Mapping[str, Any] | None = None,
        width: int = 128,
        depth: int = 2,
        heads: int = 4,
        located: bool = True,
        shift: int = 2,
        gamma: float = 0.985,
        weights: Mapping[str, float] | None = None,
        held_out: float = 0.15,
        precision: Literal["float32", "float16"] = "float16",
        seed: int = 0,
        encode: Callable[[Sequence[str]], np.ndarray] = embed,
    ) -> None:
        readers = [SiblingReader(Path(root)) for root in siblings]
        if not readers:
            raise DatasetError("a critic learns from sibling labels; give a store of them")
        self.spec = common_spec(readers, spec)
        start = None if policy is None else find_checkpoint(policy)
        like = {} if start is None else read_config(start)["arguments"]
        if cameras is None:
            cameras = list(like.get("cameras", self.spec.cameras))
        self.cameras = tuple(cameras)
        self.shift = shift
        self.precision: Literal["float32", "float16"] = precision
        self.labels = joined([reader.load(cameras=self.cameras) for reader in readers])
        self.training, self.validation = split(self.labels.seed, held_out=held_out, seed=seed)
        self.frames = (
            ChunkSampler(
                sources, steps=1, cameras=self.cameras, held_out=held_out, seed=seed, keep=None
            )
            if sources
            else None
        )
        self._returns = [returns_of(source, gamma) for source in sources]
        self.instructions = tuple(
            dict.fromkeys(
                [*self.labels.instructions, *(self.frames.instructions if self.frames else ())]
            )
        )
        self.arguments: dict[str, Any] = {
            "cameras": {
                n: [self.spec.cameras[n].height, self.spec.cameras[n].width] for n in self.cameras
            },
            "steps": steps,
            "per_token": per_token,
            "tools": can_tell_tools(self.spec) if tools is None else tools,
            "scene": dict(like.get("scene", {}) if scene is None else scene),
            "width": width,
            "depth": depth,
            "heads": heads,
            "located": located,
        }
        self.statistics = self._measure()
        if start is not None:
            # The look was trained on states normalised in this way.
            self.statistics["state"] = read_statistics(start)["state"]
        torch.manual_seed(seed)
        self._model = Critic(
            spec=self.spec,
            statistics=self.statistics,
            instructions=len(self.instructions),
            **self.arguments,
        )
        self._model.weights |= weights or {}
        self._model.table.copy_(torch.from_numpy(np.array(encode(self.instructions))))
        if start is not None:
            self._begin_as(start, like, freeze=freeze)

    @property
    def module(self) -> Critic:
        """The model."""
        return self._model

    def batch(self, rng: np.random.Generator, size: int, *, held_out: bool) -> Batch:
        """Return ``size`` groups of siblings and as many recorded moments, if there are any."""
        pool = self.validation if held_out and len(self.validation) else self.training
        rows = rng.choice(pool, size=min(size, len(pool)), replace=False)
        chosen = self.labels[np.sort(rows)]
        batch: Batch = {
            "siblings": {
                "images": self._images(chosen.images, rng, held_out=held_out),
                "state": torch.from_numpy(chosen.state),
                "instruction": torch.from_numpy(self._numbers(self.labels.instructions))[
                    chosen.instruction
                ],
                "targets": torch.from_numpy(chosen.targets),
                "scores": torch.from_numpy(chosen.scores),
                "success": torch.from_numpy(outcomes_of(chosen)),
                "environment": torch.from_numpy(chosen.environment),
            }
        }
        if self.frames is not None:
            batch["frames"] = self._moments(self.frames, rng, size, held_out=held_out)
        return batch

    def validate(self, batch: Batch) -> Mapping[str, Tensor | float]:
        """Return the losses, and how held-out siblings are ranked."""
        labels = batch["siblings"]
        found = self._model.score(
            images=labels["images"],
            state=labels["state"],
            text=self._model.table[labels["instruction"]],
            targets=labels["targets"],
        )
        report = sibling_report(
            found.double().cpu().numpy(),
            labels["scores"].double().cpu().numpy(),
            success=labels["success"].cpu().numpy(),
        )
        ranked = {k: v for k, v in report.to_dict().items() if k not in ("groups", "of")}
        losses = {k: v for k, v in self._model(**batch).items() if k != "loss"}
        return {**losses, **{k: v for k, v in ranked.items() if v is not None}}

    def save(self, folder: Path, weights: Mapping[str, Tensor], notes: Mapping[str, Any]) -> Path:
        """Write the value's checkpoint; its held-out seeds are noted."""
        held = sorted({int(seed) for seed in self.labels.seed[self.validation]})
        return save_value(
            folder,
            arguments=self.arguments,
            weights=weights,
            spec=self.spec,
            statistics=self.statistics,
            instructions=self.instructions,
            precision=self.precision,
            notes={**notes, "held_out_seeds": held},
        )

    def _images(
        self, images: Mapping[str, np.ndarray], rng: np.random.Generator, *, held_out: bool
    ) -> dict[str, Tensor]:
        return {
            name: torch.from_numpy(
                pixels if held_out else random_shift(pixels, most=self.shift, rng=rng)
            )
            for name, pixels in images.items()
        }

    def _numbers(self, texts: Sequence[str]) -> Int[np.ndarray, " i"]:
        return np.array([self.instructions.index(text) for text in texts], dtype=np.int64)

    def _moments(
        self, frames: ChunkSampler, rng: np.random.Generator, size: int, *, held_out: bool
    ) -> dict[str, Any]:
        pool = frames.validation if held_out and len(frames.validation) else frames.training
        rows = pool[rng.integers(len(pool), size=size)]
        moments = frames.at(rows)
        numbers = self._numbers(frames.instructions)[moments.instruction]
        returns = [self._returns[source][frame] for source, frame in rows]
        return {
            "images": self._images(moments.images, rng, held_out=held_out),
            "state": torch.from_numpy(moments.state),
            "instruction": torch.from_numpy(numbers),
            "environment": torch.from_numpy(moments.environment),
            "returns": torch.tensor(returns, dtype=torch.float32),
        }

    def _measure(self) -> dict[str, Statistics]:
        """Return statistics of the labels that training sees."""
        seen, names = self.labels[self.training], self.spec.state_names
        features = ChunkFeatures(self.spec, tools=self.arguments["tools"])
        targets = torch.from_numpy(seen.targets[:, :, : self.arguments["steps"]])
        here = torch.from_numpy(seen.state).unsqueeze(1).expand(-1, targets.shape[1], -1)
        chunk = features(here, targets).flatten(0, -2).numpy()
        apart = seen.scores - seen.scores.mean(axis=1, keepdims=True)
        found = {
            "state": Statistics.of(seen.state, names=names, what="state"),
            "chunk": Statistics.of(
                chunk, names=[f"feature[{i}]" for i in range(features.size)], what="chunk"
            ),
            "score": Statistics.of(
                seen.scores.mean(axis=1, keepdims=True), names=("score",), what="score"
            ),
            "spread": Statistics.of(
                apart.reshape(-1, 1), names=("spread",), what="spread of scores"
            ),
        }
        if seen.environment.shape[1]:
            entries = [f"environment[{i}]" for i in range(seen.environment.shape[1])]
            found["environment"] = Statistics.of(
                np.concatenate([seen.environment, *self._recorded_environments()]),
                names=entries,
                what="environment",
            )
        return found

    def _recorded_environments(self) -> list[Float[np.ndarray, "n e"]]:
        """Return where objects were in recorded frames: farther about than in the labels."""
        found = [source.environment for source in (self.frames.sources if self.frames else ())]
        return [np.asarray(e[::10], dtype=np.float32) for e in found if e is not None]

    def _begin_as(self, start: Path, like: Mapping[str, Any], *, freeze: bool) -> None:
        """Take over a policy's look at the scene."""
        if like.get("backbone"):
            raise CheckpointError(
                f"policy {start} looks through a frozen backbone, which a critic has not; "
                "train the critic without `policy`"
            )
        weights = read_weights(start / "model.safetensors")
        scene = {k.removeprefix("scene."): v for k, v in weights.items() if k.startswith("scene.")}
        load_weights(self._model.scene, scene, where=f"the scene of policy {start}")
        for parameter in self._model.scene.parameters():
            parameter.requires_grad_(not freeze)
