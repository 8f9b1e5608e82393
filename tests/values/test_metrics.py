"""Metrics of values over time: golden values, known cases, properties of any curve."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr, spearmanr

from robot.episodes import Setback
from values.annotation import annotated_progress, as_progress
from values.metrics import (
    confusion_margin,
    cycle_voc,
    first_peak_error,
    hesitation_rmse,
    kendall_tau_a,
    pearson,
    prefix_pearson,
    retry_voc,
    shuffled_voc,
    success_auc,
    voc,
)

CLIPS = Path(__file__).parents[3] / "shared/data/progress_clips"
# Quarters are exact, so that ranks stay what they are under the maps below.
numbers = st.integers(-40, 40).map(lambda x: x / 4)
curves = st.integers(2, 30).flatmap(lambda n: arrays(np.float64, n, elements=numbers))
uneven = curves.filter(lambda c: np.ptp(c) > 0)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0, 25, 50, 75, 100], 1.0),
        ([100, 75, 50, 25, 0], -1.0),
        ([25, 100, 0], -0.5),
        ([0, 100, 50], 0.5),
    ],
)
def test_voc_of_known_cases(values: list[float], wanted: float) -> None:
    assert voc(values) == pytest.approx(wanted)


@pytest.mark.parametrize("values", [[], [3.0], [50, 50, 50]])
def test_voc_of_what_has_no_order_is_not_a_number(values: list[float]) -> None:
    assert np.isnan(voc(values))


@pytest.mark.skipif(not CLIPS.exists(), reason="the folder of real recordings is absent")
@pytest.mark.parametrize(
    ("clip", "ranks", "line"),
    [
        ("berkeley_rpt_stack_cup", 0.987879, 0.989549),
        ("pick_up_green_cup", 0.978022, 0.903400),
        ("soar_put_green_stick_in_brown_bowl", 0.951515, 0.951594),
    ],
)
def test_curves_of_another_model_have_their_known_figures(
    clip: str, ranks: float, line: float
) -> None:
    values = np.load(CLIPS / f"{clip}_rewards.npy")
    assert voc(values) == pytest.approx(ranks, abs=1e-6)
    assert pearson(values, np.arange(len(values))) == pytest.approx(line, abs=1e-6)


@given(uneven)
def test_correlations_are_those_of_scipy(values: np.ndarray) -> None:
    time = np.arange(len(values))
    assert voc(values) == pytest.approx(float(spearmanr(values, time).statistic), abs=1e-9)
    assert pearson(values, time) == pytest.approx(float(pearsonr(values, time).statistic), abs=1e-9)


@given(uneven)
def test_voc_sees_order_only_and_turns_with_time(values: np.ndarray) -> None:
    assert -1.0 <= voc(values) <= 1.0
    assert voc(np.exp(values) * 3.0 - 7.0) == pytest.approx(voc(values), abs=1e-9)
    assert voc(values[::-1]) == pytest.approx(-voc(values), abs=1e-9)
    assert voc(-values) == pytest.approx(-voc(values), abs=1e-9)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        voc([0.0, float("nan"), 1.0])


def test_prefixes_end_at_even_shares_of_the_episode() -> None:
    values = np.zeros(50)
    values[[9, 19, 29, 39, 49]] = [0.2, 0.4, 0.6, 0.8, 1.0]
    assert prefix_pearson(values) == pytest.approx(1.0)
    assert prefix_pearson(-values) == pytest.approx(-1.0)


@given(uneven)
def test_prefixes_of_a_short_curve_are_its_frames(values: np.ndarray) -> None:
    short = values[:5]
    wanted = pearson(short, np.arange(len(short)))
    assert prefix_pearson(short) == pytest.approx(wanted, abs=1e-9, nan_ok=True)
    assert prefix_pearson(3.0 * short + 1.0) == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def test_tau_counts_a_tie_as_nothing_and_divides_by_pairs_of_different_quality() -> None:
    # Pairs: (0, 2) right, (1, 2) tied, (0, 1) of equal quality.
    assert kendall_tau_a([0.1, 0.7, 0.7], [0, 0, 1]) == 0.5
    # All qualities differ: the denominator is n (n - 1) / 2 = 6; one pair is the wrong way.
    assert kendall_tau_a([1.0, 2.0, 4.0, 3.0], [0, 1, 2, 3]) == pytest.approx(4 / 6)
    assert np.isnan(kendall_tau_a([1.0, 2.0], [1, 1]))


@given(uneven, st.data())
def test_tau_sees_order_only(scores: np.ndarray, data: st.DataObject) -> None:
    quality = data.draw(arrays(np.int64, len(scores), elements=st.integers(0, 2)))
    found = kendall_tau_a(scores, quality)
    if np.ptp(quality) == 0:
        assert np.isnan(found)
        return
    assert -1.0 <= found <= 1.0
    assert kendall_tau_a(np.exp(scores), quality) == pytest.approx(found)
    assert kendall_tau_a(-scores, quality) == pytest.approx(-found)
    assert kendall_tau_a(quality, quality) == 1.0


def test_a_pause_is_level_between_two_equal_slopes() -> None:
    # m = 3, n = 6, T = 11: x = 3, so v_m = v_n = 3 / (11 - 1 - 3).
    truth = annotated_progress(11, [Setback(start=3, end=7, kind="sway")])
    assert truth[[3, 4, 5, 6]] == pytest.approx(3 / 7)
    assert truth[[0, 10]] == pytest.approx([0.0, 1.0])
    assert np.diff(truth)[[0, 1, 2, 6, 7, 8, 9]] == pytest.approx(1 / 7)


def test_a_retry_falls_as_fast_as_the_rest_rises_but_not_below_nothing() -> None:
    truth = annotated_progress(21, [Setback(start=6, end=11, kind="miss")])
    assert truth[[6, 10, 20]] == pytest.approx([6 / 12, 2 / 12, 1.0])
    low = annotated_progress(21, [Setback(start=2, end=11, kind="miss")])
    assert low[[4, 10]] == pytest.approx([0.0, 0.0])
    assert low.max() == low[-1] == 1.0


@st.composite
def annotated(draw: st.DrawFn) -> tuple[int, list[Setback]]:
    length = draw(st.integers(12, 60))
    setbacks: list[Setback] = []
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, length - 6))
        end = draw(st.integers(start + 1, min(start + 8, length - 4)))
        setbacks.append(
            Setback(start=start, end=end, kind=draw(st.sampled_from(["pause", "miss"])))
        )
    return length, setbacks


@given(annotated())
def test_annotated_progress_goes_from_nothing_to_all(episode: tuple[int, list[Setback]]) -> None:
    length, setbacks = episode
    truth = annotated_progress(length, setbacks)
    assert (truth[0], truth[-1]) == (0.0, 1.0)
    assert truth.min() >= 0.0
    assert truth.max() <= 1.0
    inside = np.zeros(length, dtype=bool)
    for s in setbacks:
        inside[s.start : s.end] = True
        assert (np.diff(truth)[s.start : s.end - 1] <= 0).all()
    assert (np.diff(truth)[~(inside[1:] & inside[:-1])] >= 0).all()


@given(annotated())
def test_annotated_progress_itself_has_the_best_figures(
    episode: tuple[int, list[Setback]],
) -> None:
    length, setbacks = episode
    truth = annotated_progress(length, setbacks)
    error = hesitation_rmse(truth, setbacks)
    assert error == 0.0 if any(s.kind == "pause" for s in setbacks) else np.isnan(error)
    found = retry_voc(truth, setbacks)
    assert np.isnan(found) or found >= 0.0


def test_setbacks_that_overlap_are_one() -> None:
    apart = [Setback(start=4, end=9, kind="miss"), Setback(start=7, end=12, kind="miss")]
    one = [Setback(start=4, end=12, kind="miss")]
    assert annotated_progress(40, apart) == pytest.approx(annotated_progress(40, one))
    values = np.random.default_rng(0).normal(size=40)
    assert retry_voc(values, apart) == retry_voc(values, one)


@pytest.mark.parametrize(
    ("length", "setback", "said"),
    [(10, (5, 11), "leaves the 10"), (10, (5, 5), "is empty"), (10, (0, 10), "no progress")],
)
def test_annotations_that_make_no_sense_are_refused(
    length: int, setback: tuple[int, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        annotated_progress(length, [Setback(start=setback[0], end=setback[1], kind="pause")])


def test_hesitation_is_judged_inside_the_pause_only() -> None:
    pause = [Setback(start=3, end=7, kind="pause")]
    values = annotated_progress(11, pause) + 0.1
    values[[0, 1, 2, 7, 8, 9, 10]] = 55.0
    assert hesitation_rmse(values, pause) == pytest.approx(0.1)
    assert np.isnan(hesitation_rmse(values, [Setback(start=3, end=7, kind="miss")]))


def test_retries_are_judged_by_how_steadily_values_fall() -> None:
    retry = [Setback(start=2, end=6, kind="slip")]
    assert retry_voc([9, 9, 4, 3, 2, 1, 9], retry) == 1.0
    assert retry_voc([0, 1, 2, 3, 4, 5, 6], retry) == -1.0
    assert retry_voc([0, 0, 5, 5, 5, 5, 9], retry) == 0.0
    assert np.isnan(retry_voc([0, 1, 2, 3, 4, 5, 6], []))


def test_a_cycle_is_followed_up_and_down() -> None:
    assert cycle_voc([0, 1, 2, 3], [3, 2, 1, 0]) == 1.0
    # A value that counts frames rises twice; a constant half counts nothing.
    assert cycle_voc([0, 1, 2, 3], [3, 4, 5, 6]) == 0.0
    assert cycle_voc([0, 1, 2, 3], [3, 3, 3, 3]) == 0.5
    with pytest.raises(ValueError, match="too short"):
        cycle_voc([0, 1], [1, 0])


def test_the_largest_fall_is_found_and_a_flat_peak_ends_late() -> None:
    values = [0.0, 0.5, 0.3, 0.6, 1.0, 1.0, 0.2, 0.1, 0.3]
    assert first_peak_error(values, 5) == 0.0
    assert first_peak_error(values, 1) == pytest.approx(4 / 8)


def test_of_equal_falls_the_shortest_then_the_earliest_counts() -> None:
    assert first_peak_error([0, 4, 2, 0, 4, 0, 4, 0, 9], 4) == 0.0


def test_a_wobble_below_a_fifth_of_the_drawdown_does_not_split_a_fall() -> None:
    assert first_peak_error([0.0, 1.0, 0.5, 0.6, 0.0, 0.9], 1) == 0.0


def test_without_a_fall_the_error_is_the_largest_there_is() -> None:
    assert first_peak_error([0, 1, 2, 3, 4], 1) == pytest.approx(3 / 4)
    assert first_peak_error([2, 2, 2, 2, 2], 4) == 1.0


def test_a_fast_curve_is_looked_at_five_times_a_second() -> None:
    values = np.concatenate([np.arange(41.0), np.arange(39.0, 0.0, -1.0)])
    values[62] = 90.0  # a spike between two looks
    assert first_peak_error(values, 40, rate_hz=20.0) == 0.0
    assert first_peak_error(values, 40, rate_hz=5.0) > 0.2


@given(curves, st.data())
def test_first_peak_error_is_a_share(values: np.ndarray, data: st.DataObject) -> None:
    onset = data.draw(st.integers(0, len(values) - 1))
    found = first_peak_error(values, onset)
    assert 0.0 <= found <= 1.0
    assert first_peak_error(4.0 * values + 8.0, onset) == pytest.approx(found)


def test_the_margin_between_instructions_is_of_shares() -> None:
    assert confusion_margin(np.eye(3)) == 1.0
    assert confusion_margin(np.ones((3, 3))) == pytest.approx(0.0)
    assert confusion_margin(np.array([[6.0, 2.0], [1.0, 1.0]])) == pytest.approx(0.625 - 0.375)
    with pytest.raises(ValueError, match="negative"):
        confusion_margin(np.array([[1.0, -1.0], [0.0, 1.0]]))


@given(st.integers(3, 40), st.integers(0, 99))
def test_shuffling_tells_a_value_that_looks_from_one_that_counts(length: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(length)
    looks = shuffled_voc(order / length, order)
    counts = shuffled_voc(np.arange(float(length)), order)
    assert looks.restored == pytest.approx(1.0)
    assert counts.shown == pytest.approx(1.0)
    assert looks.shown == pytest.approx(counts.restored)
    with pytest.raises(ValueError, match="once"):
        shuffled_voc(np.zeros(length), np.zeros(length, dtype=np.int64))


def test_success_auc_counts_pairs() -> None:
    assert success_auc(np.array([1.0, 2.0, 2.0]), np.array([False, True, False])) == 0.75


def test_seconds_to_go_become_the_share_that_has_gone() -> None:
    assert as_progress([-8.0, -4.0, -10.0, 0.0], "-seconds to go") == pytest.approx([0, 0.5, 0, 1])
    assert as_progress([-0.2, 0.4, 1.3], "progress") == pytest.approx([0.0, 0.4, 1.0])
    assert as_progress([3.0, 5.0, 4.0], "return") == pytest.approx([0.0, 1.0, 0.5])
    assert as_progress([3.0, 3.0], "return") == pytest.approx([0.5, 0.5])
