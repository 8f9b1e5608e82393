"""How sibling chunks are ranked: golden values, and properties that hold for any scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from values.ranking import auc, informative, pairwise, sibling_report, spearman, top1_gain

numbers = st.integers(-20, 20).map(lambda x: x / 4)
groups = st.tuples(st.integers(1, 6), st.integers(2, 8))


def pair(shape: tuple[int, int]) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    each = arrays(np.float64, shape, elements=numbers)
    return st.tuples(each, each)


two = groups.flatmap(pair)


def test_known_order_gives_known_figures() -> None:
    truth = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
    scores = np.array([[0.0, 2.0, 1.0, 3.0], [4.0, 3.0, 2.0, 1.0]])
    report = sibling_report(scores, truth, success=truth >= 2)
    assert report.spearman == pytest.approx(0.8)
    assert report.top1_gain == pytest.approx(1.0)
    assert report.pairwise == pytest.approx(5 / 6)
    assert (report.groups, report.of) == (1, 2)


@given(two)
def test_rank_correlation_is_that_of_scipy(both: tuple[np.ndarray, np.ndarray]) -> None:
    scores, truth = both
    rows = [
        0.0 if np.ptp(a) == 0 else float(spearmanr(a, b).statistic)
        for a, b in zip(scores, truth, strict=True)
        if np.ptp(b) > 0
    ]
    found = spearman(scores, truth)
    assert np.isnan(found) if not rows else found == pytest.approx(np.mean(rows), abs=1e-9)


@given(two)
def test_truth_ranks_itself_best_and_its_opposite_worst(
    both: tuple[np.ndarray, np.ndarray],
) -> None:
    scores, truth = both
    if not informative(truth).any():
        return
    assert spearman(truth, truth) == pytest.approx(1.0)
    assert top1_gain(truth, truth) == pytest.approx(1.0)
    assert pairwise(truth, truth) == 1.0
    assert spearman(-scores, truth) == pytest.approx(-spearman(scores, truth))
    assert pairwise(-scores, truth) == pytest.approx(1.0 - pairwise(scores, truth))
    assert top1_gain(scores, truth) <= 1.0 + 1e-12


@given(two, st.integers(0, 50))
def test_what_the_state_adds_to_a_score_does_not_count(
    both: tuple[np.ndarray, np.ndarray], seed: int
) -> None:
    scores, truth = both
    rng = np.random.default_rng(seed)
    moved = 3.0 * scores + rng.integers(-9, 9, size=(len(scores), 1))
    for metric in (spearman, top1_gain, pairwise):
        assert metric(moved, truth) == pytest.approx(metric(scores, truth), nan_ok=True, abs=1e-9)


def test_constant_scores_gain_nothing() -> None:
    truth = np.arange(12.0).reshape(3, 4)
    same = np.zeros((3, 4))
    assert spearman(same, truth) == 0.0
    assert top1_gain(same, truth) == pytest.approx(0.0)
    assert pairwise(same, truth) == 0.5


def test_auc_counts_pairs_of_success_and_failure() -> None:
    assert auc(np.array([1.0, 2.0, 3.0, 3.0]), np.array([0, 1, 0, 1], dtype=bool)) == 0.625
    assert np.isnan(auc(np.array([1.0, 2.0]), np.array([True, True])))


def test_nothing_to_rank_is_not_a_number() -> None:
    same = np.ones((2, 3))
    report = sibling_report(np.random.default_rng(0).random((2, 3)), same)
    assert all(np.isnan(x) for x in (report.spearman, report.top1_gain, report.pairwise))
    assert report.to_dict()["spearman"] is None


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        spearman(np.array([[1.0, np.nan]]), np.array([[1.0, 2.0]]))
