"""How well a value follows a task in time, by the definitions that are published.

Axes: ``t`` frames of an episode, in the order of time; ``n`` episodes; ``i`` instructions.

``NaN`` means that a figure does not exist for these numbers (a constant has no rank correlation);
how that counts in a mean is the caller's decision. Several things are called VOC in print: here
``voc`` is Spearman's correlation with time, and ``prefix_pearson`` is the Pearson one. A value
that is not finite has no rank and raises ``ValueError``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import rankdata

from robot.episodes.episode import Setback
from values.annotation import Curve, Numbers, annotated_progress, checked, stretches
from values.ranking import auc

LOOKS_HZ = 5.0
"""Rate at which first-peak localisation looks at a curve [Hz]."""

success_auc = auc
"""How well one score an episode tells success from failure: a tie counts half, NaN without both."""


def spearman(a: Curve, b: Curve) -> float:
    """Return the rank correlation of two curves; ties share their mean rank.

    NaN if they are shorter than two or one is constant.
    """
    a, b = checked(a, b)
    return pearson(rankdata(a), rankdata(b))


def pearson(a: Curve, b: Curve) -> float:
    """Return the linear correlation of two curves; NaN if shorter than two or one is constant."""
    a, b = checked(a, b)
    if len(a) < 2 or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return float("nan")
    # Scaled, so that squares of tiny numbers do not vanish.
    x, y = ((curve - curve.mean()) / np.ptp(curve) for curve in (a, b))
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def voc(values: Curve) -> float:
    """Return the value-order correlation: Spearman's of values and time.

    Source:
        Ma et al., "Vision language models are in-context value learners", 2024, section 3.
    """
    return spearman(values, np.arange(len(values)))


def prefix_pearson(values: Curve, *, prefixes: int = 5) -> float:
    """Return Pearson's r of the last value of growing prefixes and the share of time they hold.

    Args:
        values: Of a scorer that looks back only, so that its value at a frame is the last value
            of the prefix that ends there.
        prefixes: How many, evenly spaced; fewer if the curve is shorter.

    Source:
        Robometer, arXiv 2603.02115 (called VOC there).
    """
    count = min(prefixes, len(values))
    ends = np.ceil(np.arange(1, count + 1) * len(values) / max(count, 1)).astype(int)
    return pearson(np.asarray(values)[ends - 1], ends / max(len(values), 1))


def kendall_tau_a(scores: Curve, quality: Curve) -> float:
    """Return how scores order episodes of different quality: concordant less discordant pairs.

    Pairs of equal quality have no order and are left out of the denominator, which is
    ``n (n - 1) / 2`` when all differ; a tie of the scores counts 0. NaN without a pair.

    Args:
        scores: One number an episode, such as its last value.
        quality: 0 for failure, 1 for suboptimal, 2 for success, or any order.

    Source:
        Kendall, "A new measure of rank correlation", 1938; used so by RBM-EVAL, 2603.02115.
    """
    found, wanted = (np.sign(x[:, None] - x) for x in checked(scores, quality))
    pairs = np.abs(wanted).sum()
    return float((found * wanted).sum() / pairs) if pairs else float("nan")


def hesitation_rmse(values: Curve, setbacks: Sequence[Setback]) -> float:
    """Return how far values in [0, 1] are from the annotated ones while the robot pauses.

    NaN if it never does.

    Source:
        Suboptimal-Value-Bench, arXiv 2606.24742.
    """
    (found,) = checked(values)
    pauses = stretches(setbacks, length=len(found), pauses=True)
    if not pauses:
        return float("nan")
    apart = found - annotated_progress(len(found), setbacks)
    rows = np.concatenate([apart[start:end] for start, end in pauses])
    return float(np.sqrt(np.square(rows).mean()))


def retry_voc(values: Curve, setbacks: Sequence[Setback]) -> float:
    """Return the mean over retries of how steadily values fall: 1 falls, -1 rises all the way.

    A constant stretch counts 0. NaN if nothing was retried.

    Source:
        Suboptimal-Value-Bench, arXiv 2606.24742.
    """
    (curve,) = checked(values)
    found = [
        _or_zero(-voc(curve[start:end]))
        for start, end in stretches(setbacks, length=len(curve), pauses=False)
        if end - start >= 2
    ]
    return float(np.mean(found)) if found else float("nan")


def cycle_voc(up: Curve, down: Curve) -> float:
    """Return how a value follows an episode that is played to its end and back again.

    Args:
        up: Values of frames 0 to K.
        down: Values of frames K to 0, seen after ``up`` in one go; at least 3.

    Source:
        RoboValue, 2026: the mean of both halves; a constant half counts 0.
    """
    if len(up) < 3 or len(down) < 3:
        raise ValueError(
            f"halves of {len(up)} and {len(down)} frames are too short to turn back; give 3 or more"
        )
    return (_or_zero(voc(up)) + _or_zero(-voc(down))) / 2.0


def first_peak_error(
    values: Curve, onset: int, *, rate_hz: float = 5.0, threshold: float = 0.2
) -> float:
    """Return how far from the annotated onset of a failure the value begins its largest fall.

    Falls are confirmed by a zig-zag whose threshold is a share of the largest drawdown; of equal
    falls the shortest, then the earliest is taken. At a flat peak its last frame counts. A value
    that never falls gets the largest error an episode allows.

    Args:
        values: One a frame; looked at five times a second and at the last frame.
        onset: Frame at which things begin to go wrong.
        rate_hz: Rate of the frames [Hz].
        threshold: Share of the largest drawdown.

    Returns:
        Distance as a share of the episode; lower is better.

    Source:
        RoboValue, 2026 (first peak localisation).
    """
    (curve,) = checked(values)
    last = len(curve) - 1
    if last < 1 or not 0 <= onset <= last:
        raise ValueError(f"onset {onset} does not lie in the {len(curve)} frames of the curve")
    step = max(rate_hz / LOOKS_HZ, 1.0)
    frames = np.unique(np.append(np.rint(np.arange(0.0, last, step)), last).astype(int))
    seen = curve[frames]
    falls = _falls(seen, threshold)
    if not falls:
        return max(onset, last - onset) / last
    peak, _ = min(falls, key=lambda f: (seen[f[1]] - seen[f[0]], f[1] - f[0], f[0]))
    return abs(int(frames[peak]) - onset) / last


def confusion_margin(scores: Float[np.ndarray, "i i"]) -> float:
    """Return by how much an episode scores higher under its own instruction than under others.

    Args:
        scores: Not negative; row: instruction of the episode, column: instruction it was told.
            Rows are divided by their sums (a row of zeros stays).

    Source:
        Robometer, arXiv 2603.02115: mean of the diagonal less mean off the diagonal.
    """
    size = len(scores)
    if scores.shape != (size, size) or size < 2:
        raise ValueError(f"scores of shape {scores.shape} compare no instructions; give a square")
    if not (scores >= 0.0).all():
        raise ValueError("a score is negative or NaN, so a row has no shares; shift the scores")
    sums = scores.sum(axis=1, keepdims=True)
    share = scores / np.where(sums == 0.0, 1.0, sums)
    own = np.eye(size, dtype=bool)
    return float(share[own].mean() - share[~own].mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """What is left of VOC when the frames of an episode are shown in another order.

    Attributes:
        shown: VOC along the order of showing: near 0 for a value that looks at what it sees, as
            high as ever for one that counts frames.
        restored: VOC after the frames are put back in order: high for a value that looks.
    """

    shown: float
    restored: float


def shuffled_voc(presented: Curve, order: Int[np.ndarray, " t"]) -> Shuffled:
    """Return the shuffled-frame control.

    Args:
        presented: Values in the order in which frames were shown.
        order: Which frame was shown at each place.
    """
    (found,) = checked(presented)
    if not np.array_equal(np.sort(order), np.arange(len(found))):
        raise ValueError(f"the order does not name each of the {len(found)} frames once")
    return Shuffled(shown=voc(found), restored=voc(found[np.argsort(order)]))


def _falls(values: Numbers, threshold: float) -> list[tuple[int, int]]:
    """Return peak and bottom of each fall of more than a share of the largest drawdown."""
    drawdown = float(np.max(np.maximum.accumulate(values) - values))
    if drawdown <= 0.0:
        return []
    least = threshold * drawdown
    falls: list[tuple[int, int]] = []
    peak = bottom = 0
    falling = False
    for t in range(1, len(values)):
        if not falling:
            if values[t] >= values[peak]:
                peak = t
            elif values[peak] - values[t] >= least:
                falling, bottom = True, t
        elif values[t] < values[bottom]:
            bottom = t
        elif values[t] - values[bottom] >= least:
            falls.append((peak, bottom))
            falling, peak = False, t
    return [*falls, (peak, bottom)] if falling else falls


def _or_zero(number: float) -> float:
    return 0.0 if np.isnan(number) else number
