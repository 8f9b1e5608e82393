"""An exponential moving average of weights: what is evaluated and shipped."""

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class MovingAverage:
    """Averages a module's parameters over training steps.

    The decay warms up as ``(1 + step) / (10 + step)`` up to its ceiling, so that early averages are
    not dominated by the random start.

    Args:
        module: The module to follow; its parameters are read, never written.
        decay: Ceiling of the decay, in [0, 1).

    Raises:
        ValueError: If the decay is out of range.
    """

    def __init__(self, module: nn.Module, *, decay: float = 0.999) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"a decay of {decay} is not in [0, 1); use e.g. 0.999")
        self.decay = decay
        self._followed = dict(module.named_parameters())
        self.average = {name: p.detach().clone() for name, p in self._followed.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the parameters after training step ``step`` (counted from 0)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        blend = get_ema_multi_avg_fn(decay)
        blend(list(self.average.values()), [p.data for p in self._followed.values()], step)

    def load(self, average: dict[str, Tensor]) -> None:
        """Take over an average that was stored."""
        for name, value in self.average.items():
            value.copy_(average[name])
