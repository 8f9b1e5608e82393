"""Flow matching: learn the velocity from actions to noise, sample by following it back.

Axes: ``b`` observations, ``m`` candidates or noise draws, ``k`` steps, ``d`` action dimensions.
``x = time * noise + (1 - time) * action``, velocity ``noise - action``; sampling goes from 1 to 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from policies.horizons import Horizons, Prediction, mixture_loss

Field = Callable[[Float[Tensor, "b m k d"], Float[Tensor, "#b #m"]], Prediction]
"""What a network says about noisy actions at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Actions that were drawn, and how much the horizons disagreed on the way."""

    actions: Float[Tensor, "b m k d"]
    disagreement: Float[Tensor, "b m k"]


class Objective(Protocol):
    """How a field is trained, and how actions are drawn from it."""

    def loss(
        self,
        field: Field,
        actions: Float[Tensor, "b k d"],
        valid: Bool[Tensor, "b k"],
        *,
        horizons: Horizons,
        draws: int,
    ) -> dict[str, Float[Tensor, ""]]:
        """Return ``loss`` and its parts, over ``draws`` draws of noise for each observation."""
        ...

    def sample(self, field: Field, noise: Float[Tensor, "b m k d"]) -> Sample:
        """Return actions drawn from standard normal noise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMatching:
    """Straight paths between noise and actions.

    Attributes:
        steps: Euler steps of sampling.
        lean: Time is drawn as ``0.999 * Beta(lean, 1) + 0.001``; above 1 leans towards noise.

    Source:
        Black et al., "pi0: A vision-language-action flow model", arXiv 2410.24164.
    """

    steps: int = 8
    lean: float = 1.5

    def draw_time(self, b: int, m: int, device: torch.device) -> Float[Tensor, "b m"]:
        """Return times of the flow; the quantile function of Beta(a, 1) is ``u ** (1 / a)``."""
        return 0.999 * torch.rand(b, m, device=device) ** (1.0 / self.lean) + 0.001

    def loss(
        self,
        field: Field,
        actions: Float[Tensor, "b k d"],
        valid: Bool[Tensor, "b k"],
        *,
        horizons: Horizons,
        draws: int,
    ) -> dict[str, Float[Tensor, ""]]:
        """Return the squared error of the velocity."""
        b, k, d = actions.shape
        noise = torch.randn(b, draws, k, d, device=actions.device)
        time = self.draw_time(b, draws, actions.device)
        at = time[..., None, None]
        prediction = field(at * noise + (1 - at) * actions.unsqueeze(1), time)
        velocity = noise - actions.unsqueeze(1)
        return mixture_loss(
            prediction,
            (prediction.branches - velocity.unsqueeze(-3)).square().mean(dim=-1),
            (prediction.fused - velocity).square().mean(dim=-1),
            valid=valid.unsqueeze(1).expand(-1, draws, -1),
            horizons=horizons,
        )

    def sample(self, field: Field, noise: Float[Tensor, "b m k d"]) -> Sample:
        """Follow the velocity from noise to actions in equal Euler steps."""
        actions = noise
        apart = noise.new_zeros(noise.shape[:-1])
        for i in range(self.steps):
            time = noise.new_full((1, 1), 1.0 - i / self.steps)
            prediction = field(actions, time)
            actions = actions - prediction.fused / self.steps
            if len(prediction.active) > 1:
                apart = apart + prediction.disagreement() / self.steps
        return Sample(actions=actions, disagreement=apart)
