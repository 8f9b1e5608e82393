"""What the training loop and the things it trains know of each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

Batch = dict[str, Any]


class Learner(Protocol):
    """Something that can be trained."""

    @property
    def module(self) -> nn.Module:
        """What learns: called with a batch as keywords, it returns ``loss`` and its parts."""
        ...

    def batch(self, rng: np.random.Generator, size: int, *, held_out: bool) -> Batch:
        """Return tensors (nested in dicts) for one step; augmented unless held out."""
        ...

    def validate(self, batch: Batch) -> Mapping[str, Tensor | float]:
        """Return what is worth knowing about the module on a held-out batch."""
        ...

    def save(self, folder: Path, weights: Mapping[str, Tensor], notes: Mapping[str, Any]) -> Path:
        """Write a checkpoint of these weights."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands; ``losses`` are means since the last report."""

    step: int
    spent: float
    seconds: float
    losses: Mapping[str, float]
    validation: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a run left behind."""

    checkpoint: Path
    steps: int
    seconds: float
    validation: Mapping[str, float]
