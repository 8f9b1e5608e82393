"""One-step regression: the chunk in one pass, trained by its absolute error.

Axes: ``b`` observations, ``m`` candidates, ``k`` steps, ``d`` action dimensions.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from policies.flow import Field, Sample
from policies.horizons import Horizons, mixture_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Actions from nothing but the scene: all candidates of one observation are equal.

    Attributes:
        spread: How much of the noise is added to every candidate but the first, in normalised
            units: a regression has no diversity of its own to steer by.
    """

    spread: float = 0.0

    def loss(
        self,
        field: Field,
        actions: Float[Tensor, "b k d"],
        valid: Bool[Tensor, "b k"],
        *,
        horizons: Horizons,
        draws: int,
    ) -> dict[str, Float[Tensor, ""]]:
        """Return the absolute error; ``draws`` changes nothing since nothing is drawn."""
        prediction = field(torch.zeros_like(actions).unsqueeze(1), actions.new_ones(1, 1))
        target = actions.unsqueeze(1)
        return mixture_loss(
            prediction,
            (prediction.branches - target.unsqueeze(-3)).abs().mean(dim=-1),
            (prediction.fused - target).abs().mean(dim=-1),
            valid=valid.unsqueeze(1),
            horizons=horizons,
        )

    def sample(self, field: Field, noise: Float[Tensor, "b m k d"]) -> Sample:
        """Return one prediction for all candidates, spread by noise from the second on."""
        prediction = field(torch.zeros_like(noise[:, :1]), noise.new_ones(1, 1))
        others = torch.cat((torch.zeros_like(noise[:, :1]), noise[:, 1:]), dim=1)
        apart = prediction.disagreement().expand(-1, noise.shape[1], -1)
        return Sample(actions=prediction.fused + self.spread * others, disagreement=apart)
