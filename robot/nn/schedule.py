"""How fast to learn, over a budget of steps, of wall time, or of both."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When training is over: after so many steps or seconds, whichever comes first.

    Attributes:
        steps: Steps; None for no bound.
        seconds: Wall time [s], over all resumed parts; None for no bound.
    """

    steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse a budget without an end.

        Raises:
            ValueError: If neither bound is given, or one is not positive.
        """
        bounds = [b for b in (self.steps, self.seconds) if b is not None]
        if not bounds or min(bounds) <= 0:
            raise ValueError(
                f"a budget of {self.steps} steps and {self.seconds} s has no end; "
                "give a positive number of steps or seconds"
            )

    def spent(self, step: int, seconds: float) -> float:
        """Return the share of the budget that is spent; training is over at 1."""
        shares = [0.0]
        if self.steps is not None:
            shares.append(step / self.steps)
        if self.seconds is not None:
            shares.append(seconds / self.seconds)
        return max(shares)


def rate_scale(step: int, spent: float, *, warmup: int, final: float) -> float:
    """Return the factor of the peak learning rate: a linear rise, then half a cosine.

    Args:
        step: Steps done.
        spent: Share of the budget that is spent.
        warmup: Steps of the rise.
        final: Factor at the end of the budget.
    """
    rise = min(1.0, (step + 1) / max(1, warmup))
    cosine = 0.5 * (1.0 + math.cos(math.pi * min(1.0, max(0.0, spent))))
    return rise * (final + (1.0 - final) * cosine)
