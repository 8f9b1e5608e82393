"""A trained model as a policy: observations in, candidates of absolute targets out.

Axes: ``*b`` batch of observations, ``b`` the same flattened, ``c`` candidates, ``k`` steps, ``d``
action dimensions, ``l`` text embedding.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from policies.frame import ActionFrame
from policies.horizons import Consensus
from policies.vla import VLA
from robot.errors import BadAction
from robot.nn.text import embed
from robot.types import ActionChunk, Observation, Plan, Spec


class NeuralPolicy:
    """Draws candidates from a model; image and instruction are encoded once for all of them.

    Args:
        model: The trained model.
        spec: What it was trained on.
        instructions: The instructions whose embeddings the model keeps.
        commit: Steps to execute, or how the horizons decide on them.
        temperature: Size of the noise that candidates are drawn from; 0 makes them equal.

    Attributes:
        clipped: How many target entries were moved to the spec's limits so far.
        asked: How many target entries were proposed so far.

    Raises:
        ValueError: If the commit is longer than the chunk, or asks horizons where there is one.
    """

    def __init__(
        self,
        model: VLA,
        *,
        spec: Spec,
        instructions: Sequence[str],
        commit: int | Consensus = 8,
        temperature: float = 1.0,
    ) -> None:
        steps = model.horizons.longest
        if isinstance(commit, int) and not 1 <= commit <= steps:
            raise ValueError(f"cannot commit to {commit} of {steps} steps; choose 1 to {steps}")
        if isinstance(commit, Consensus) and len(model.horizons.lengths) < 2:
            raise ValueError("one horizon has nobody to agree with; commit to a number of steps")
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ValueError(f"temperature {temperature} must be finite and not negative")
        self.model = model.eval()
        self.spec = spec
        self.cameras = tuple(model.scene.cameras)
        self.period = spec.period
        self.steps = steps
        self.commit, self.temperature = commit, temperature
        self.clipped = self.asked = 0
        self._frame = ActionFrame.of(spec)
        self._limits = np.asarray(spec.action_low), np.asarray(spec.action_high)
        self._texts = {text: model.table[i] for i, text in enumerate(instructions)}
        self._seed, self._calls = 0, 0

    def reset(self, seed: int) -> None:
        """Forget the last episode; all noise from here on follows from ``seed``."""
        self._seed, self._calls = seed, 0

    @torch.inference_mode()
    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        """Return ``count`` candidates; the noise of each depends on its number only.

        Args:
            observation: One moment or a batch; images of the policy's cameras are needed.
            plan: Its task's instruction is followed.
            count: How many candidates.

        Returns:
            Absolute targets ``(count, *b, k, d)``. Its start is the time of the first moment.

        Raises:
            BadAction: If the state or an image has another shape than in training, or the model
                gives targets that are not finite.
        """
        if count < 1:
            raise ValueError(f"{count} candidates were asked for; ask for 1 or more")
        state = np.asarray(observation.state, dtype=np.float64)
        batch = state.shape[:-1]
        flat = state.reshape(-1, state.shape[-1])
        self._check_state(flat)
        memory = self.model.remember(
            images={name: self._pixels(observation, name, len(flat)) for name in self.cameras},
            state=torch.from_numpy(flat.astype(np.float32)),
            text=self._text(plan.task.instruction).expand(len(flat), -1),
        )
        noise = self._noise(len(flat), count)
        drawn = self.model.objective.sample(
            lambda noisy, time: self.model.expert(noisy, time, memory), noise
        )
        told = self.model.normalise_actions.invert(drawn.actions).transpose(0, 1).numpy()
        targets = self._limited(self._frame.resolve(told.astype(np.float64), flat))
        shape = (count, *batch, self.steps, targets.shape[-1])
        if isinstance(self.commit, Consensus):
            commit = self.commit.commit(drawn.disagreement, self.model.expert.active)
            committed = commit.transpose(0, 1).numpy().reshape(shape[:-2])
        else:
            committed = np.full(shape[:-2], self.commit, dtype=np.int64)
        return ActionChunk(
            start=float(np.asarray(observation.time).reshape(-1)[0]),
            period=self.period,
            targets=targets.reshape(shape),
            commit=committed,
        )

    def _noise(self, observations: int, count: int) -> Float[Tensor, "b c k d"]:
        """Return noise seeded by episode, call and candidate."""
        size = (observations, self.steps, self.model.actions)
        drawn = [
            np.random.default_rng((self._seed, self._calls, i)).standard_normal(
                size, dtype=np.float32
            )
            for i in range(count)
        ]
        self._calls += 1
        return torch.from_numpy(np.stack(drawn, axis=1)) * self.temperature

    def _text(self, instruction: str) -> Float[Tensor, " l"]:
        if instruction not in self._texts:
            self._texts[instruction] = torch.from_numpy(embed([instruction])[0].copy())
        return self._texts[instruction]

    def _check_state(self, state: Float[np.ndarray, "b s"]) -> None:
        needed = len(self.spec.state_names)
        if state.shape[-1] != needed:
            raise BadAction(
                f"the state has {state.shape[-1]} entries, the policy was trained on {needed}; "
                "compare the robot's spec with the checkpoint's"
            )
        if not np.isfinite(state).all():
            entry = self.spec.state_names[int(np.argmin(np.isfinite(state).all(axis=0)))]
            raise BadAction(f"state entry {entry} is not finite; check the robot before moving it")

    def _pixels(self, observation: Observation, name: str, count: int) -> Tensor:
        if name not in observation.images:
            raise BadAction(
                f"the policy looks at camera {name}, but only {sorted(observation.images)} came; "
                "add it to the robot's cameras"
            )
        pixels = np.ascontiguousarray(observation.images[name])
        wanted = (*self.model.scene.cameras[name], 3)
        if pixels.shape[-3:] != wanted or pixels.dtype != np.uint8:
            raise BadAction(
                f"camera {name} gave {pixels.dtype} {pixels.shape}, the policy was trained on "
                f"uint8 {wanted}; set the camera to that size"
            )
        if not pixels.flags.writeable:
            pixels = pixels.copy()
        return torch.from_numpy(pixels.reshape(count, *wanted))

    def _limited(self, targets: Float[np.ndarray, "c b k d"]) -> Float[np.ndarray, "c b k d"]:
        if not np.isfinite(targets).all():
            raise BadAction("the model gave targets that are not finite; its weights are damaged")
        low, high = self._limits
        self.asked += targets.size
        self.clipped += int(((targets < low) | (targets > high)).sum())
        return np.clip(targets, low, high)
