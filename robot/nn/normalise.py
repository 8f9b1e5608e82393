"""Between the units of the robot and the range a network likes.

Axes: ``...`` any batch, then the shape of one sample.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from robot.nn.statistics import Statistics

Mode = Literal["mean_std", "quantile"]


class Normaliser(nn.Module):
    """An affine map and its inverse, fixed by statistics of the training data.

    Args:
        statistics: Numbers of the quantity.
        mode: ``mean_std`` maps to zero mean and unit spread; ``quantile`` maps the 1 % and 99 %
            quantiles to -1 and 1.
        floor: Least spread [unit of the quantity]; an entry that hardly moves is not blown up.

    The numbers belong to ``statistics.json`` of a checkpoint, so they are not part of its weights.
    """

    offset: Tensor
    scale: Tensor

    def __init__(
        self, statistics: Statistics, *, mode: Mode = "mean_std", floor: float = 1e-3
    ) -> None:
        super().__init__()
        if mode == "mean_std":
            offset, scale = statistics.mean, statistics.std
        elif mode == "quantile":
            offset = (statistics.low + statistics.high) / 2
            scale = (statistics.high - statistics.low) / 2
        else:
            raise ValueError(f"no normalisation is called {mode!r}; use 'mean_std' or 'quantile'")
        scale = np.maximum(scale, floor)
        for name, value in (("offset", offset), ("scale", scale)):
            tensor = torch.as_tensor(value, dtype=torch.float32)
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return normalised values."""
        return (values - self.offset) / self.scale

    def invert(self, normalised: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return values in their own unit."""
        return normalised * self.scale + self.offset
