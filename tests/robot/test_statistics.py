"""Intervals and tests against published figures, and against what must hold for any counts."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot.statistics import (
    PairedCounts,
    count_pairs,
    mcnemar,
    paired_interval,
    percentile,
    wilson,
)

COUNT = st.integers(0, 60)


@st.composite
def tables(draw: st.DrawFn) -> PairedCounts:
    cells = draw(st.tuples(COUNT, COUNT, COUNT, COUNT).filter(lambda c: sum(c) > 0))
    return PairedCounts(both=cells[0], first=cells[1], second=cells[2], neither=cells[3])


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_newcombes_published_intervals(
    k: int, n: int, low: float, high: float
) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


def test_tango_and_mcnemar_give_the_published_figures_of_a_small_trial() -> None:
    # Airway hyper-responsiveness before and after transplantation (Bentur 2009), as worked out by
    # Fagerland, Lydersen and Laake, Statistics in Medicine 33, 2014 and BMC 13:91, 2013.
    counts = PairedCounts(both=1, first=1, second=7, neither=12)
    assert paired_interval(counts) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert mcnemar(counts) == pytest.approx(0.070, abs=5e-4)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors_failures(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = wilson(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0
    assert high > low
    mirrored = wilson(n - k, n)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


@given(tables())
def test_paired_interval_holds_the_difference_and_turns_with_the_arms(counts: PairedCounts) -> None:
    low, high = paired_interval(counts)
    assert -1.0 <= low <= counts.difference <= high <= 1.0
    assert high > low
    turned = PairedCounts(
        both=counts.both, first=counts.second, second=counts.first, neither=counts.neither
    )
    assert paired_interval(turned) == pytest.approx((-high, -low), abs=1e-9)


@given(tables())
def test_paired_interval_excludes_zero_exactly_where_the_plain_test_rejects(
    counts: PairedCounts,
) -> None:
    b, c = counts.first, counts.second
    statistic = abs(b - c) / (b + c) ** 0.5 if b + c else 0.0
    low, high = paired_interval(counts)
    if abs(statistic - 1.959964) > 1e-5:
        assert (low > 0 or high < 0) == (statistic > 1.959964)


@given(tables(), st.floats(0.5, 0.94))
def test_less_confidence_gives_a_narrower_interval(counts: PairedCounts, level: float) -> None:
    wide, narrow = paired_interval(counts), paired_interval(counts, level=level)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_a_paired_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    # Exact coverage: every table of 30 pairs, weighted by its probability.
    n, only_first, only_second = 30, 0.25, 0.10
    covered = 0.0
    for b in range(n + 1):
        for c in range(n - b + 1):
            rest = n - b - c
            weight = comb(n, b) * comb(n - b, c) * only_first**b * only_second**c * 0.65**rest
            if weight > 1e-9:
                low, high = paired_interval(PairedCounts(both=rest, first=b, second=c, neither=0))
                covered += weight * (low <= only_first - only_second <= high)
    assert 0.94 < covered < 0.965


@given(tables())
def test_mcnemar_is_the_binomial_tail_counted_twice(counts: PairedCounts) -> None:
    b, c = counts.first, counts.second
    tail = sum(comb(b + c, i) for i in range(max(b, c), b + c + 1)) / 2 ** (b + c)
    assert mcnemar(counts) == pytest.approx(min(1.0, 2 * tail))


def test_no_trial_and_no_pair_have_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(0, 0)
    with pytest.raises(ValueError, match="at least one"):
        paired_interval(PairedCounts(both=0, first=0, second=0, neither=0))


def test_pairs_are_counted_cell_by_cell() -> None:
    pairs = [(True, True), (True, False), (True, False), (False, True), (False, False)]
    assert count_pairs(pairs) == PairedCounts(both=1, first=2, second=1, neither=1)


@given(st.lists(st.floats(-10, 10), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_leaves_its_share_at_or_below(values: list[float], q: float) -> None:
    found = percentile(values, q)
    assert found in values
    assert sum(v <= found for v in values) >= q * len(values) - 1e-3
