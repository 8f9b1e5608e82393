"""What a critic needs to know of its labels before it learns from them.

Axes: ``g`` decisions, ``a`` of them to train on, ``b`` held out, ``n`` frames of a source.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from robot.errors import SpecMismatch
from robot.nn.chunks import FrameSource
from robot.siblings import SiblingReader
from robot.types import Spec


def common_spec(readers: Sequence[SiblingReader], spec: Spec | None) -> Spec:
    """Return the spec that all labels share, and recorded frames with them.

    Raises:
        SpecMismatch: If they differ.
    """
    first = readers[0].spec
    others = [(f"labels {r.root}", r.spec) for r in readers[1:]]
    others += [] if spec is None else [("the recorded frames", spec)]
    for name, other in others:
        if found := first.differences(other):
            raise SpecMismatch(f"labels {readers[0].root}", name, found)
    return first


def split(
    seeds: Int[np.ndarray, " g"], *, held_out: float, seed: int
) -> tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]:
    """Return decisions to train on and decisions of seeds that training never sees."""
    names = np.unique(seeds)
    count = min(round(held_out * len(names)), len(names) - 1)
    hidden = np.isin(seeds, np.random.default_rng(seed).permutation(names)[:count])
    return np.flatnonzero(~hidden), np.flatnonzero(hidden)


def returns_of(source: FrameSource, gamma: float) -> Float[np.ndarray, " n"]:
    """Return discounted success of each frame's episode; NaN where a source does not tell."""
    episode = np.asarray(source.episode)
    success: Any = getattr(source, "success", None)
    if success is None:
        return np.full(len(episode), np.nan)
    last = np.r_[np.flatnonzero(episode[1:] != episode[:-1]), len(episode) - 1]
    left = last[np.searchsorted(last, np.arange(len(episode)))] - np.arange(len(episode))
    return np.asarray(success, dtype=np.float64) * gamma**left
