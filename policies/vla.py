"""The model: images, instruction and state in; noisy actions to predictions of all horizons.

Axes: ``b`` observations, ``m`` candidates or noise draws, ``k`` steps, ``d`` actions, ``s`` state,
``l`` text embedding, ``e`` privileged quantities, ``p`` scene tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from policies.diffusion import Diffusion
from policies.expert import ActionExpert, Memory
from policies.flow import FlowMatching, Objective
from policies.horizons import Horizons
from policies.regression import Regression
from robot.errors import CheckpointError
from robot.nn.backbones import Backbone
from robot.nn.encoders import SceneEncoder, StatePredictor
from robot.nn.normalise import Mode, Normaliser
from robot.nn.statistics import Statistics

OBJECTIVES = {"flow": FlowMatching, "regression": Regression, "diffusion": Diffusion}


def objective_from(plain: Mapping[str, Any]) -> Objective:
    """Return the objective that ``objective_to`` described.

    Raises:
        CheckpointError: If its name is unknown.
    """
    arguments = dict(plain)
    name = arguments.pop("name", None)
    if name not in OBJECTIVES:
        raise CheckpointError(f"no objective is called {name!r}; known are {sorted(OBJECTIVES)}")
    return OBJECTIVES[name](**arguments)


def objective_to(objective: Objective) -> dict[str, Any]:
    """Return an objective as name and numbers, ready for JSON."""
    for name, kind in OBJECTIVES.items():
        if isinstance(objective, kind):
            return {"name": name, **asdict(objective)}
    raise ValueError(
        f"{type(objective).__name__} cannot be stored; use one of {sorted(OBJECTIVES)}"
    )


class VLA(nn.Module):
    """A scene encoder, an action expert, and how the two are trained and sampled.

    Args:
        cameras: Height and width of each camera's image [px].
        statistics: Of ``state``, ``actions`` (as the frame tells them) and, to be trained with
            the auxiliary head, ``environment``.
        instructions: Embeddings for so many instructions are kept among the weights.
        horizons: Chunk lengths.
        objective: Flow matching, regression or diffusion.
        scene, expert: Sizes, passed to ``SceneEncoder`` and ``ActionExpert``.
        backbone: A frozen image model whose features join the scene; none if None.
        auxiliary: Weight of the head that reads privileged quantities; 0 leaves it out.
        draws: Draws of noise for each observation in training; they share the scene.
        normalise: Mode of the actions' normalisation.
        text: Size of an instruction's embedding.
    """

    table: Tensor

    def __init__(
        self,
        *,
        cameras: Mapping[str, tuple[int, int]],
        statistics: Mapping[str, Statistics],
        instructions: int,
        horizons: Horizons,
        objective: Objective,
        scene: Mapping[str, Any] | None = None,
        expert: Mapping[str, Any] | None = None,
        backbone: Mapping[str, Any] | None = None,
        auxiliary: float = 0.0,
        draws: int = 2,
        normalise: Mode = "mean_std",
        text: int = 384,
    ) -> None:
        super().__init__()
        self.horizons, self.objective = horizons, objective
        self.auxiliary, self.draws = auxiliary, draws
        self.actions = int(statistics["actions"].mean.shape[-1])
        self.normalise_state = Normaliser(statistics["state"], floor=1e-2)
        self.normalise_actions = Normaliser(statistics["actions"], mode=normalise)
        self.backbone = Backbone(**backbone) if backbone else None
        self.scene = SceneEncoder(
            cameras=cameras,
            state=int(statistics["state"].mean.shape[-1]),
            text=text,
            extra=self.backbone.size if self.backbone else 0,
            **(scene or {}),
        )
        self.expert = ActionExpert(
            actions=self.actions,
            horizons=horizons,
            scene_width=self.scene.width,
            text=text,
            **(expert or {}),
        )
        self.register_buffer("table", torch.zeros(instructions, text))
        self.privileged: StatePredictor | None = None
        if auxiliary > 0 and "environment" in statistics:
            self.normalise_environment = Normaliser(statistics["environment"])
            self.privileged = StatePredictor(
                width=self.scene.width,
                image_tokens=self.scene.image_tokens,
                out=int(statistics["environment"].mean.shape[-1]),
            )

    def look(
        self,
        *,
        images: Mapping[str, UInt8[Tensor, "b h w 3"]],
        state: Float[Tensor, "b s"],
        text: Float[Tensor, "b l"],
    ) -> Float[Tensor, "b p w"]:
        """Return the scene's tokens; ``state`` is in the robot's units."""
        features = self.backbone(images) if self.backbone else None
        return self.scene(
            images=images, state=self.normalise_state(state), text=text, features=features
        )

    def remember(
        self,
        *,
        images: Mapping[str, UInt8[Tensor, "b h w 3"]],
        state: Float[Tensor, "b s"],
        text: Float[Tensor, "b l"],
    ) -> Memory:
        """Return what all candidates and horizons of these observations share."""
        return self.expert.remember(self.look(images=images, state=state, text=text), text)

    def forward(
        self,
        *,
        images: Mapping[str, UInt8[Tensor, "b h w 3"]],
        state: Float[Tensor, "b s"],
        instruction: Int[Tensor, " b"],
        actions: Float[Tensor, "b k d"],
        valid: Bool[Tensor, "b k"],
        environment: Float[Tensor, "b e"] | None = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Return ``loss`` and its parts for recorded moments; ``actions`` are told by the frame."""
        text = self.table[instruction]
        scene = self.look(images=images, state=state, text=text)
        memory = self.expert.remember(scene, text)
        parts = self.objective.loss(
            lambda noisy, time: self.expert(noisy, time, memory),
            self.normalise_actions(actions),
            valid,
            horizons=self.horizons,
            draws=self.draws,
        )
        if self.privileged is not None and environment is not None:
            error = self.privileged.error(scene, self.normalise_environment(environment))
            parts["loss"] = parts["loss"] + self.auxiliary * error
            parts["privileged"] = error.detach()
        return parts

    def deployed(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the part of a state dict that a policy needs: all but the auxiliary head."""
        return {k: v for k, v in weights.items() if not k.startswith("privileged.")}


def horizons_from(plain: Mapping[str, Any] | Sequence[int]) -> Horizons:
    """Return horizons from JSON."""
    if isinstance(plain, Mapping):
        rest: dict[str, Any] = {**plain, "lengths": tuple(plain["lengths"])}
        return Horizons(**rest)
    return Horizons(lengths=tuple(plain))
