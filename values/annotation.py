"""The truth that a benchmark knows about an episode, and values brought to its scale.

Axes: ``t`` frames of an episode, in the order of time.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Shaped

from robot.episodes.episode import Setback

Curve = Shaped[np.ndarray, " t"] | Sequence[float] | Sequence[int]
"""One number a frame."""
Numbers = Float[np.ndarray, " t"]

PAUSES = frozenset({"pause", "sway", "hesitation"})
"""Kinds of setbacks in which nothing is undone; all others count as retries."""


def stretches(setbacks: Sequence[Setback], *, length: int, pauses: bool) -> list[tuple[int, int]]:
    """Return first frame and end of each pause, or of each retry; those that overlap are one.

    Raises:
        ValueError: If one is empty or leaves the episode.
    """
    found: list[tuple[int, int]] = []
    for setback in sorted(setbacks, key=lambda s: s.start):
        start, end = setback.start, setback.end
        if not 0 <= start < end <= length:
            raise ValueError(
                f"the setback from frame {start} to {end} is empty or leaves the {length} frames; "
                "end is the first frame after it"
            )
        if (setback.kind in PAUSES) != pauses:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def annotated_progress(length: int, setbacks: Sequence[Setback] = ()) -> Numbers:
    """Return the ground truth of a successful episode: straight lines from 0 to 1.

    Progress rises by the same amount each frame, stays where the robot pauses and falls as fast
    as it rose in retries; no setback reaches below 0, and nothing lies above 1. Where a pause and
    a retry overlap, it falls.

    Args:
        length: Frames.
        setbacks: Stretches without progress; ``end`` is the first frame after one.

    Raises:
        ValueError: If a setback lies outside, or they leave no frame of progress.

    Source:
        Suboptimal-Value-Bench, arXiv 2606.24742. For one pause it is the published line; for a
        retry the published slope has ``T - 2x`` where a continuous line needs ``T - 1 - 2x``,
        which changes no published figure, since retries are judged by rank.
    """
    slope = np.ones(max(length - 1, 0))
    for pauses, step in ((True, 0.0), (False, -1.0)):
        for start, end in stretches(setbacks, length=length, pauses=pauses):
            slope[start : end - 1] = step
    line = np.zeros(length)
    for t, step in enumerate(slope):
        line[t + 1] = max(0.0, line[t] + step)
    if length < 2 or line[-1] <= 0.0:
        raise ValueError(f"{length} frames with these setbacks leave no progress to draw")
    return np.minimum(line / line[-1], 1.0)


def as_progress(values: Curve, unit: str) -> Numbers:
    """Return values as progress in [0, 1], for figures that compare with annotated progress.

    ``progress`` is taken as it is. Seconds to go (``-seconds to go``) become the share of those at
    the first frame that have gone. Anything else is stretched between the lowest and the highest
    value of the episode, which looks ahead and hides offsets; a constant becomes one half.
    """
    (found,) = checked(values)
    if unit == "progress":
        return np.clip(found, 0.0, 1.0)
    if unit == "-seconds to go":
        return np.clip(1.0 - found / min(float(found[0]), -1e-6), 0.0, 1.0)
    span = np.ptp(found)
    return (found - found.min()) / span if span > 0.0 else np.full(len(found), 0.5)


def checked(*curves: Curve) -> tuple[Numbers, ...]:
    """Return curves as floats, all of one length.

    Raises:
        ValueError: If lengths differ or a number is not finite.
    """
    found = tuple(np.asarray(curve, dtype=np.float64) for curve in curves)
    if len({len(curve) for curve in found}) > 1:
        raise ValueError(f"curves of lengths {[len(c) for c in found]} do not go together")
    if not all(np.isfinite(curve).all() for curve in found):
        raise ValueError("a value is not finite, so it has no rank; leave that frame out")
    return found
