"""What training data looks like, and the gate that refuses data that cannot be normalised.

Axes: ``n`` samples, ``...`` the shape of one sample. No torch here: the numbers travel as JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from robot.errors import DatasetError

_LARGEST = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Mean, spread, range and quantiles of one quantity, one number for each entry.

    Attributes:
        mean, std: Mean and standard deviation.
        low, high: 1 % and 99 % quantiles.
        least, most: The range seen.
        count: How many samples were seen.
    """

    mean: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    high: Float[np.ndarray, "..."]
    least: Float[np.ndarray, "..."]
    most: Float[np.ndarray, "..."]
    count: int

    @classmethod
    def of(cls, samples: Float[np.ndarray, "n ..."], *, names: Sequence[str], what: str) -> Self:
        """Return the statistics of ``samples``.

        Args:
            samples: One row a sample; NaN marks entries to be left out.
            names: Names of the last axis, for messages.
            what: What the samples are, for messages.

        Raises:
            DatasetError: If there is no sample, or an entry is infinite or beyond any
                unit a robot uses.
        """
        samples = np.asarray(samples, dtype=np.float64)
        if len(samples) == 0:
            raise DatasetError(f"{what}: no sample to take statistics of; collect episodes first")
        with np.errstate(invalid="ignore"):
            bad = np.isinf(samples) | (np.abs(samples) > _LARGEST)
        empty = np.isnan(samples).all(axis=0)
        for mask, reason in ((bad.any(axis=0), f"infinite or beyond {_LARGEST:g}"), (empty, "NaN")):
            if mask.any():
                entry = np.unravel_index(int(np.argmax(mask)), mask.shape)
                name = names[int(entry[-1])] if entry else what
                raise DatasetError(
                    f"{what}: entry {name} is {reason} in the data; check unit and recording"
                )
        low, high = np.nanquantile(samples, [0.01, 0.99], axis=0)
        return cls(
            mean=np.nanmean(samples, axis=0),
            std=np.nanstd(samples, axis=0),
            low=low,
            high=high,
            least=np.nanmin(samples, axis=0),
            most=np.nanmax(samples, axis=0),
            count=len(samples),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return lists and numbers, ready for JSON."""
        fields = ("mean", "std", "low", "high", "least", "most")
        return {name: getattr(self, name).tolist() for name in fields} | {"count": self.count}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the statistics that ``to_dict`` wrote.

        Raises:
            DatasetError: If a number is missing or not finite.
        """
        numbers: dict[str, Any] = {}
        for name in ("mean", "std", "low", "high", "least", "most"):
            if name not in plain:
                raise DatasetError(f"statistics lack {name!r}; found {sorted(plain)}")
            numbers[name] = np.asarray(plain[name], dtype=np.float64)
            if not np.isfinite(numbers[name]).all():
                raise DatasetError(f"statistics hold a {name} that is not finite; recompute them")
        return cls(count=int(plain.get("count", 0)), **numbers)
