"""Diffusion policy, the baseline: predict the noise, remove it with diffusers' schedulers.

Axes: ``b`` observations, ``m`` candidates, ``k`` steps, ``d`` action dimensions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from policies.flow import Field, Sample
from policies.horizons import Horizons, mixture_loss


@dataclass(frozen=True, kw_only=True)
class Diffusion:
    """Noise prediction on a squared-cosine schedule; sampled deterministically (DDIM).

    Attributes:
        train_steps: Steps of the forward process.
        steps: Steps of sampling.
        clip: Bound of the predicted clean action, in normalised units.

    Source:
        Chi et al., "Diffusion policy", RSS 2023; Song, Meng and Ermon, "DDIM", ICLR 2021.
    """

    train_steps: int = 100
    steps: int = 10
    clip: float = 5.0

    @cached_property
    def scheduler(self) -> Any:
        """The scheduler of diffusers, made on first use."""
        from diffusers.schedulers.scheduling_ddim import DDIMScheduler

        return DDIMScheduler(
            num_train_timesteps=self.train_steps,
            beta_schedule="squaredcos_cap_v2",
            clip_sample=True,
            clip_sample_range=self.clip,
            prediction_type="epsilon",
        )

    def loss(
        self,
        field: Field,
        actions: Float[Tensor, "b k d"],
        valid: Bool[Tensor, "b k"],
        *,
        horizons: Horizons,
        draws: int,
    ) -> dict[str, Float[Tensor, ""]]:
        """Return the squared error of the predicted noise."""
        b, k, d = actions.shape
        noise = torch.randn(b, draws, k, d, device=actions.device)
        when = torch.randint(self.train_steps, (b, draws), device=actions.device)
        clean = actions.unsqueeze(1).expand(-1, draws, -1, -1)
        noisy = self.scheduler.add_noise(
            clean.flatten(0, 1), noise.flatten(0, 1), when.flatten()
        ).view_as(noise)
        prediction = field(noisy, (when + 1) / self.train_steps)
        return mixture_loss(
            prediction,
            (prediction.branches - noise.unsqueeze(-3)).square().mean(dim=-1),
            (prediction.fused - noise).square().mean(dim=-1),
            valid=valid.unsqueeze(1).expand(-1, draws, -1),
            horizons=horizons,
        )

    def sample(self, field: Field, noise: Float[Tensor, "b m k d"]) -> Sample:
        """Remove the noise step by step; disagreement is that of the predicted noise."""
        scheduler = self.scheduler
        scheduler.set_timesteps(self.steps)
        actions = noise
        apart = noise.new_zeros(noise.shape[:-1])
        for when in scheduler.timesteps:
            time = noise.new_full((1, 1), (float(when) + 1) / self.train_steps)
            prediction = field(actions, time)
            actions = scheduler.step(prediction.fused, when, actions, eta=0.0).prev_sample
            apart = apart + prediction.disagreement() / self.steps
        return Sample(actions=actions, disagreement=apart)
