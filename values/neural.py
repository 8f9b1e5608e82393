"""A trained critic as a value: one checkpoint steers, monitors and filters.

Axes: ``*b`` batch of observations, ``b`` the same flattened, ``n`` candidates, ``t`` steps, ``d``
action dimensions, ``l`` text embedding.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from robot.errors import BadAction
from robot.nn.text import embed
from robot.types import ActionChunk, Observation, Plan, Spec
from values.critic import Critic


class NeuralValue:
    """Scores candidates in the unit of the oracle it learned from, and states by their return.

    Args:
        model: The trained critic.
        spec: What it was trained on.
        instructions: The instructions whose embeddings the model keeps.
    """

    def __init__(self, model: Critic, *, spec: Spec, instructions: Sequence[str]) -> None:
        self.model = model.eval()
        self.spec = spec
        self.cameras = tuple(model.scene.cameras)
        self._texts = {text: model.table[i] for i, text in enumerate(instructions)}

    @torch.inference_mode()
    def score(
        self, observation: Observation, plan: Plan, chunk: ActionChunk
    ) -> Float[np.ndarray, "n *b"]:
        """Return one score for each candidate; the observation is looked at once.

        Args:
            observation: One moment or a batch; images of the value's cameras are needed.
            plan: Its task's instruction is followed.
            chunk: Absolute targets ``(n, *b, t, d)``. Shorter ones are taken to hold their last.

        Raises:
            BadAction: If state, image or targets have another shape than in training.
        """
        state, images, text = self._inputs(observation, plan)
        batch = np.shape(observation.state)[:-1]
        targets = np.asarray(chunk.targets, dtype=np.float32)
        wanted = (*batch, len(self.spec.action_names))
        if (*targets.shape[1:-2], targets.shape[-1]) != wanted:
            raise BadAction(
                f"targets of shape {targets.shape} do not go with a batch {batch} of observations "
                f"and {wanted[-1]} actions; give (candidates, *batch, steps, actions)"
            )
        steps = np.minimum(np.arange(self.model.steps), targets.shape[-2] - 1)
        flat = targets[..., steps, :].reshape(len(targets), -1, len(steps), wanted[-1])
        found = self.model.score(
            images=images,
            state=state,
            text=text,
            targets=torch.from_numpy(flat.swapaxes(0, 1).copy()),
        )
        return found.double().numpy().T.reshape(len(targets), *batch)

    @torch.inference_mode()
    def value(self, observation: Observation, plan: Plan) -> Float[np.ndarray, "*b"]:
        """Return the discounted chance of success from each observation on, about 0 to 1."""
        state, images, text = self._inputs(observation, plan)
        found = self.model.value(self.model.look(images=images, state=state, text=text))[:, 1]
        return found.double().numpy().reshape(np.shape(observation.state)[:-1])

    def _inputs(
        self, observation: Observation, plan: Plan
    ) -> tuple[Tensor, Mapping[str, Tensor], Float[Tensor, "b l"]]:
        state = np.asarray(observation.state, dtype=np.float32)
        if state.shape[-1] != len(self.spec.state_names):
            raise BadAction(
                f"the state has {state.shape[-1]} entries, the value was trained on "
                f"{len(self.spec.state_names)}; compare the robot's spec with the checkpoint's"
            )
        flat = state.reshape(-1, state.shape[-1])
        images = {name: self._pixels(observation, name, len(flat)) for name in self.cameras}
        text = self._text(plan.task.instruction).expand(len(flat), -1)
        return torch.from_numpy(flat.copy()), images, text

    def _text(self, instruction: str) -> Float[Tensor, " l"]:
        if instruction not in self._texts:
            self._texts[instruction] = torch.from_numpy(embed([instruction])[0].copy())
        return self._texts[instruction]

    def _pixels(self, observation: Observation, name: str, count: int) -> Tensor:
        if name not in observation.images:
            raise BadAction(
                f"the value looks at camera {name}, but only {sorted(observation.images)} came; "
                "add it to the robot's cameras"
            )
        pixels = np.asarray(observation.images[name])
        wanted = (*self.model.scene.cameras[name], 3)
        if pixels.shape[-3:] != wanted or pixels.dtype != np.uint8:
            raise BadAction(
                f"camera {name} gave {pixels.dtype} {pixels.shape}, the value was trained on "
                f"uint8 {wanted}; set the camera to that size"
            )
        return torch.from_numpy(pixels.reshape(count, *wanted).copy())
