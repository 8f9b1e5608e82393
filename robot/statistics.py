"""What counts of successes say: rates and paired differences with honest intervals.

Closed formulas and bisection on the standard library only, so that a summary can be checked
anywhere. Probabilities lie in [0, 1], differences in [-1, 1].
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """Outcomes of two arms on the same seeds.

    Attributes:
        both: Seeds on which both succeed.
        first: Seeds on which only the first arm succeeds.
        second: Seeds on which only the second arm succeeds.
        neither: Seeds on which both fail.
    """

    both: int
    first: int
    second: int
    neither: int

    def __post_init__(self) -> None:
        if min(self.both, self.first, self.second, self.neither) < 0:
            raise ValueError(f"counts must not be negative, found {self}")

    @property
    def n(self) -> int:
        """Number of pairs."""
        return self.both + self.first + self.second + self.neither

    @property
    def difference(self) -> float:
        """Success rate of the first arm minus that of the second."""
        return (self.first - self.second) / self.n


def count_pairs(pairs: list[tuple[bool, bool]]) -> PairedCounts:
    """Return the fourfold table of ``(first succeeds, second succeeds)``, one entry a seed."""
    return PairedCounts(
        both=sum(a and b for a, b in pairs),
        first=sum(a and not b for a, b in pairs),
        second=sum(b and not a for a, b in pairs),
        neither=sum(not a and not b for a, b in pairs),
    )


def _quantile(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level of {level} is not between 0 and 1; 0.95 is usual")
    return NormalDist().inv_cdf(0.5 + level / 2.0)


def wilson(k: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the score interval of a success rate.

    It never leaves [0, 1] and never has width zero, also at 0 or all successes.

    Args:
        k: Successes.
        n: Trials.
        level: Confidence.

    Raises:
        ValueError: If there is no trial, or more successes than trials.

    Source:
        Wilson, "Probable inference, the law of succession, and statistical inference", JASA
        22(158), 1927; method 3 of Newcombe, Statistics in Medicine 17, 857-872, 1998.
    """
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"{k} successes of {n} trials have no rate; at least one trial is needed")
    z = _quantile(level)
    centre = (k + z * z / 2.0) / (n + z * z)
    half = z * sqrt(k * (n - k) / n + z * z / 4.0) / (n + z * z)
    # Rounding must not push the bound past the rate itself at k = 0 and k = n.
    low = 0.0 if k == 0 else max(0.0, centre - half)
    high = 1.0 if k == n else min(1.0, centre + half)
    return low, high


def _tango_score(counts: PairedCounts, delta: float) -> float:
    """Return the score statistic of the hypothesis that the difference is ``delta``."""
    n, b, c = counts.n, counts.first, counts.second
    linear = -b - c + (2 * n - b + c) * delta
    constant = -c * delta * (1.0 - delta)
    root = sqrt(max(0.0, linear * linear - 8.0 * n * constant))
    second_only = (root - linear) / (4.0 * n)
    variance = n * (2.0 * second_only + delta * (1.0 - delta))
    numerator = b - c - n * delta
    if variance <= 1e-12 * n:
        return 0.0 if abs(numerator) < 1e-9 * n else float("inf") * (1 if numerator > 0 else -1)
    return numerator / sqrt(variance)


def _bisect(inside: Callable[[float], bool], *, within: float, beyond: float) -> float:
    """Return where ``inside`` turns false between ``within`` (true) and ``beyond``."""
    if inside(beyond):
        return beyond
    for _ in range(60):
        middle = 0.5 * (within + beyond)
        within, beyond = (middle, beyond) if inside(middle) else (within, middle)
    return 0.5 * (within + beyond)


def paired_interval(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Return the score interval of the difference of two success rates on the same seeds.

    It holds the nominal confidence also where few seeds differ, where the usual normal
    approximation has width zero. It excludes 0 exactly where McNemar's test without continuity
    correction rejects at ``1 - level``.

    Args:
        counts: The fourfold table; the difference is first minus second.
        level: Confidence.

    Raises:
        ValueError: If there is no pair.

    Source:
        Tango, "Equivalence test and confidence interval for the difference in proportions for
        the paired-sample design", Statistics in Medicine 17, 891-908, 1998.
    """
    if counts.n < 1:
        raise ValueError("no seed was run by both arms; a paired difference needs at least one")
    z = _quantile(level)

    def inside(delta: float) -> bool:
        return abs(_tango_score(counts, delta)) <= z

    estimate = counts.difference
    low = _bisect(inside, within=estimate, beyond=-1.0)
    high = _bisect(inside, within=estimate, beyond=1.0)
    return low, high


def mcnemar(counts: PairedCounts) -> float:
    """Return the exact two-sided probability of so uneven a split of the differing seeds.

    Source:
        McNemar, Psychometrika 12, 1947; exact conditional form: Binomial(b + c, 1/2).
    """
    differing = counts.first + counts.second
    smaller = min(counts.first, counts.second)
    tail = sum(comb(differing, i) for i in range(smaller + 1))
    return min(1.0, 2 * tail / 2**differing)


def percentile(values: list[float], q: float) -> float | None:
    """Return the ``q``-quantile (0 .. 1) by the nearest rank, or None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, int(q * len(ordered) + 0.999999) - 1))]
