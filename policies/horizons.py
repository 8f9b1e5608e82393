"""Mixture of horizons: several chunk lengths at once, gated, fused, and asked how far they agree.

Axes: ``*b`` batch (observations, candidates), ``n`` horizons, ``k`` steps of the longest chunk,
``d`` action dimensions. There is one layout, ``[*b, n, k]``, in training and in use.

Source:
    Mixture of horizons in action chunking, arXiv 2511.19433 (ICML 2026). The published method
    trains one action expert on every prefix ``A[:h]`` of a chunk, fuses the predictions by a gate,
    and executes as many steps as its horizons agree on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Packing = Literal["auto", "packed", "padded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizons:
    """Which chunk lengths are trained together, and how.

    Attributes:
        lengths: Horizons [steps], any order; equal ones are allowed (an ablation).
        fusion: ``gate`` (learned) or ``mean`` over the active horizons.
        individual: Weight of the loss of each horizon by itself; they are summed.
        balance: Weight of the loss that keeps the gate from ignoring a horizon.
        gate_noise: Whether training adds learned noise to the gate.
        packing: How branches reach the expert: ``packed`` in one sequence behind a
            block-diagonal mask, ``padded`` to the longest, or ``auto``, whichever costs less.
    """

    lengths: tuple[int, ...]
    fusion: Literal["gate", "mean"] = "gate"
    individual: float = 1.0
    balance: float = 1e-3
    gate_noise: bool = True
    packing: Packing = "auto"

    def __post_init__(self) -> None:
        """Refuse horizons that cannot be used.

        Raises:
            ValueError: If there is none or one is shorter than a step, or a name is unknown.
        """
        object.__setattr__(self, "lengths", tuple(sorted(int(h) for h in self.lengths)))
        if not self.lengths or self.lengths[0] < 1:
            raise ValueError(f"horizons {self.lengths} need one length or more, each at least 1")
        if self.fusion not in ("gate", "mean"):
            raise ValueError(f"no fusion is called {self.fusion!r}; use 'gate' or 'mean'")
        if self.packing not in ("auto", "packed", "padded"):
            raise ValueError(
                f"no packing is called {self.packing!r}; use 'auto', 'packed' or 'padded'"
            )

    @property
    def longest(self) -> int:
        """Steps of the whole chunk."""
        return self.lengths[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What all horizons say, and what is made of it.

    Attributes:
        branches: Prediction of each horizon; meaningless where it is not active.
        weights: Gate weights; 0 where inactive, 1 in sum over the horizons of each step.
        active: Whether horizon ``n`` covers step ``k``.
        fused: Weighted sum of the branches.
    """

    branches: Float[Tensor, "*b n k d"]
    weights: Float[Tensor, "*b n k"]
    active: Bool[Tensor, "n k"]
    fused: Float[Tensor, "*b k d"]

    def disagreement(self) -> Float[Tensor, "*b k"]:
        """Return the weighted L1 distance between the horizons and their fusion, per step."""
        apart = (self.branches - self.fused.unsqueeze(-3)).abs().sum(dim=-1)
        return (self.weights * apart).sum(dim=-2)


def active_mask(lengths: Sequence[int]) -> Bool[Tensor, "n k"]:
    """Return which horizon covers which step."""
    return torch.arange(max(lengths)) < torch.as_tensor(list(lengths)).unsqueeze(1)


def gate_weights(
    logits: Float[Tensor, "*b n k"], active: Bool[Tensor, "n k"]
) -> Float[Tensor, "*b n k"]:
    """Return the softmax over the active horizons of each step."""
    return logits.masked_fill(~active, float("-inf")).softmax(dim=-2)


def fuse(
    branches: Float[Tensor, "*b n k d"],
    logits: Float[Tensor, "*b n k"],
    active: Bool[Tensor, "n k"],
) -> Prediction:
    """Return the horizons' predictions fused by their gate."""
    weights = gate_weights(logits, active)
    fused = (weights.unsqueeze(-1) * branches).sum(dim=-3)
    return Prediction(branches=branches, weights=weights, active=active, fused=fused)


class Gate(nn.Module):
    """One number for each step of each branch: how much this horizon is to be trusted there."""

    def __init__(self, *, width: int, per_token: int, noisy: bool) -> None:
        super().__init__()
        self.trust = nn.Linear(width, per_token)
        self.spread = nn.Linear(width, per_token) if noisy else None

    def forward(self, tokens: Float[Tensor, "... t w"]) -> Float[Tensor, "... t a"]:
        """Return logits; noise of a learned size is added in training only."""
        logits = self.trust(tokens)
        if self.training and self.spread is not None:
            size = nn.functional.softplus(self.spread(tokens)) + 1e-2
            logits = logits + torch.randn_like(logits) * size
        return logits


def balance_loss(weights: Float[Tensor, "*b n k"], lengths: Sequence[int]) -> Float[Tensor, ""]:
    """Return how unevenly the gate spreads its trust: the mean squared coefficient of variation.

    Steps fall into intervals between successive horizons; in each interval with more than one
    active horizon the mean weight of each active horizon is taken over batch and steps.
    """
    flat = rearrange(weights, "... n k -> (...) n k")
    edges = [0, *sorted(set(lengths))]
    terms: list[Tensor] = []
    for left, right in pairwise(edges):
        active = [n for n, length in enumerate(lengths) if length >= right]
        if len(active) > 1:
            means = flat[:, active, left:right].mean(dim=(0, 2))
            terms.append(means.var() / (means.mean() ** 2 + 1e-10))
    return torch.stack(terms).mean() if terms else flat.new_zeros(())


def mixture_loss(
    prediction: Prediction,
    errors: Float[Tensor, "*b n k"],
    fused_errors: Float[Tensor, "*b k"],
    *,
    valid: Bool[Tensor, "*b k"],
    horizons: Horizons,
) -> dict[str, Float[Tensor, ""]]:
    """Return ``loss`` and its parts: fused, the sum over horizons, and balance.

    Args:
        prediction: What was predicted.
        errors: Error of each horizon at each step, averaged over action dimensions.
        fused_errors: Error of the fusion likewise.
        valid: Steps that the episode still had.
        horizons: The weights of the parts.
    """
    count = valid.sum().clamp(min=1)
    fused = (fused_errors * valid).sum() / count
    if len(horizons.lengths) == 1:
        return {"loss": fused, "fused": fused.detach()}
    counted = prediction.active & valid.unsqueeze(-2)
    kept = rearrange(errors.masked_fill(~counted, 0.0), "... n k -> (...) n k")
    sizes = rearrange(counted, "... n k -> (...) n k").sum(dim=(0, 2)).clamp(min=1)
    single = (kept.sum(dim=(0, 2)) / sizes).sum()
    # Divided by the number of terms, so that a mixture's loss has the size of a single horizon's
    # beside whatever else is trained; the published sum differs by this factor only.
    terms = 1.0 + horizons.individual * len(horizons.lengths)
    loss = fused + horizons.individual * single
    parts = {"fused": fused.detach(), "single": single.detach()}
    if horizons.fusion == "gate" and horizons.balance > 0:
        uneven = balance_loss(prediction.weights, horizons.lengths)
        loss = loss + horizons.balance * uneven
        parts["balance"] = uneven.detach()
    return {"loss": loss / terms} | parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """Dynamic commitment: execute as long as the horizons agree.

    Attributes:
        least: Steps that are always executed (``n``).
        active: Stop at the step where this many horizons or fewer are left (``m``).
        ratio: Agreement means less than this times the mean disagreement of the first steps
            (``r``).
    """

    least: int = 5
    active: int = 5
    ratio: float = 1.1

    def commit(
        self, disagreement: Float[Tensor, "*b k"], active: Bool[Tensor, "n k"]
    ) -> Int[Tensor, "*b"]:
        """Return how many leading steps to execute, for every member of the batch by itself.

        Args:
            disagreement: Summed over the sampling steps.
            active: Which horizon covers which step.
        """
        steps = disagreement.shape[-1]
        least = min(self.least, steps)
        limit = disagreement[..., :least].mean(dim=-1, keepdim=True) * self.ratio
        agreed = (disagreement < limit) & (active.sum(dim=0) > self.active)
        return least + agreed[..., least:].long().cumprod(dim=-1).sum(dim=-1)
