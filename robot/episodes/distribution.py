"""How the numbers of each column are distributed, exactly, however many episodes there are.

Axes: ``n`` rows, ``c`` entries of a column, ``t h w 3`` frames. LeRobot averages the quantiles of
episodes, which is wrong; here they are taken over all rows. Of more than ``KEPT`` rows every
second, fourth, ... one counts for quantiles; the rest stays exact. Pixels are counted by value.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
KEPT = 400_000

Stats = dict[str, Any]


def of_rows(rows: Shaped[np.ndarray, "n c"]) -> Stats:
    """Return LeRobot's statistics of one column, one entry for each of ``c``."""
    exact = rows.astype(np.float64)
    quantiles = np.quantile(exact, list(QUANTILES.values()), axis=0)
    return {
        "min": exact.min(axis=0).tolist(),
        "max": exact.max(axis=0).tolist(),
        "mean": exact.mean(axis=0).tolist(),
        "std": exact.std(axis=0).tolist(),
        "count": [len(rows)],
        **{name: row.tolist() for name, row in zip(QUANTILES, quantiles, strict=True)},
    }


def count_pixels(frames: UInt8[np.ndarray, "t h w 3"]) -> Int[np.ndarray, "3 256"]:
    """Return how often each value occurs in each colour."""
    flat = frames.reshape(-1, 3)
    return np.stack([np.bincount(flat[:, colour], minlength=256) for colour in range(3)])


def of_pixels(counts: Int[np.ndarray, "3 256"], *, frames: int) -> Stats:
    """Return LeRobot's statistics of one camera: each colour in [0, 1], shape (3, 1, 1)."""
    values = np.arange(256) / 255.0
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    mean = share @ values
    std = np.sqrt(np.maximum(share @ values**2 - mean**2, 0.0))
    present = counts > 0
    low, high = values[present.argmax(axis=1)], values[255 - present[:, ::-1].argmax(axis=1)]
    cumulated = np.cumsum(share, axis=1)
    found = {"min": low, "max": high, "mean": mean, "std": std}
    for name, level in QUANTILES.items():
        found[name] = values[(cumulated >= level - 1e-12).argmax(axis=1)]
    shaped: Stats = {name: row.reshape(3, 1, 1).tolist() for name, row in found.items()}
    return shaped | {"count": [frames]}


class Rows:
    """The rows of one column so far."""

    def __init__(self) -> None:
        self._parts: list[Float[np.ndarray, "n c"]] = []
        self._count = 0
        self._kept = 0
        self._stride = 1
        self._mean: Float[np.ndarray, " c"] | float = 0.0
        self._squares: Float[np.ndarray, " c"] | float = 0.0
        self._low: Float[np.ndarray, " c"] | float = np.inf
        self._high: Float[np.ndarray, " c"] | float = -np.inf

    def add(self, rows: Shaped[np.ndarray, "n c"]) -> None:
        """Count ``rows`` in.

        Source:
            Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
            sample variances", COMPSTAT 1982.
        """
        exact = rows.astype(np.float64)
        total = self._count + len(exact)
        mean = exact.mean(axis=0)
        shift = mean - self._mean
        self._squares = (
            self._squares
            + ((exact - mean) ** 2).sum(axis=0)
            + shift**2 * self._count * len(exact) / total
        )
        self._mean = self._mean + shift * len(exact) / total
        self._low = np.minimum(self._low, exact.min(axis=0))
        self._high = np.maximum(self._high, exact.max(axis=0))
        first = -self._count % self._stride
        self._count = total
        kept = rows[first :: self._stride]
        self._parts.append(kept)
        self._kept += len(kept)
        if self._kept > KEPT:
            joined = np.concatenate(self._parts)[::2]
            self._parts, self._kept, self._stride = [joined], len(joined), 2 * self._stride

    def quantiles(self) -> Stats:
        """Return the quantiles of the rows so far; this sorts them."""
        joined = np.concatenate(self._parts)
        self._parts = [joined]
        levels = np.quantile(joined.astype(np.float64), list(QUANTILES.values()), axis=0)
        return {name: row.tolist() for name, row in zip(QUANTILES, levels, strict=True)}

    def moments(self) -> Stats:
        """Return count, mean, standard deviation, least and greatest so far."""
        return {
            "min": np.asarray(self._low).tolist(),
            "max": np.asarray(self._high).tolist(),
            "mean": np.asarray(self._mean).tolist(),
            "std": np.sqrt(np.asarray(self._squares) / self._count).tolist(),
            "count": [self._count],
        }


class Distribution:
    """All columns and cameras of a store.

    Quantiles cost a sort, so they are taken again when the rows have grown by a tenth, or when
    asked for: a store that was cut off may lag by that much, a closed one is exact.
    """

    def __init__(self) -> None:
        self.pixels: dict[str, Int[np.ndarray, "3 256"]] = {}
        self._columns: dict[str, Rows] = {}
        self._quantiles: dict[str, Stats] = {}
        self._frames = 0
        self._sorted_at = 0

    def add(
        self,
        columns: dict[str, Shaped[np.ndarray, "n c"]],
        pixels: dict[str, Int[np.ndarray, "3 256"]],
    ) -> None:
        """Count one episode in."""
        for name, rows in columns.items():
            self._columns.setdefault(name, Rows()).add(rows)
        for camera, counts in pixels.items():
            self.pixels[camera] = self.pixels.get(camera, np.zeros((3, 256), np.int64)) + counts
        self._frames += len(next(iter(columns.values())))

    def stats(self, *, exact: bool = False) -> dict[str, Stats]:
        """Return LeRobot's statistics by column; ``exact`` brings all quantiles up to date."""
        if exact or self._frames >= 1.1 * self._sorted_at:
            self._quantiles = {name: rows.quantiles() for name, rows in self._columns.items()}
            self._sorted_at = self._frames
        found = {n: rows.moments() | self._quantiles[n] for n, rows in self._columns.items()}
        cameras = {c: of_pixels(n, frames=self._frames) for c, n in self.pixels.items()}
        return found | cameras
