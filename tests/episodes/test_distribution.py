import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot.episodes import distribution
from robot.episodes.distribution import Distribution, Rows, count_pixels, of_pixels, of_rows

numbers = st.floats(-1e3, 1e3, width=32)
parts = st.lists(st.integers(1, 7), min_size=1, max_size=6)


@given(parts, st.integers(0, 2**32 - 1))
def test_rows_added_in_parts_give_the_statistics_of_all_rows(counts: list[int], seed: int) -> None:
    draw = np.random.default_rng(seed)
    pieces = [(draw.normal(size=(n, 3)) * 100).astype(np.float32) for n in counts]
    rows = Rows()
    for piece in pieces:
        rows.add(piece)
    found = rows.moments() | rows.quantiles()
    for name, wanted in of_rows(np.concatenate(pieces)).items():
        assert np.allclose(found[name], wanted, rtol=1e-9, atol=1e-9), name


@given(arrays(np.uint8, st.tuples(st.integers(1, 4), st.just(4), st.just(6), st.just(3))))
def test_counted_pixels_give_the_statistics_of_the_pixels(frames: np.ndarray) -> None:
    found = of_pixels(count_pixels(frames), frames=len(frames))
    flat = frames.reshape(-1, 3) / 255.0
    for name, wanted in (("mean", flat.mean(0)), ("std", flat.std(0)), ("max", flat.max(0))):
        assert np.allclose(np.ravel(found[name]), wanted, atol=1e-7), name
    wanted = np.quantile(flat, 0.9, axis=0, method="inverted_cdf")
    assert np.allclose(np.ravel(found["q90"]), wanted)


@given(st.integers(1, 60), st.integers(1, 9))
def test_thinned_rows_keep_evenly_spaced_ones(count: int, step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "KEPT", 10)
        rows = Rows()
        for start in range(0, count, step):
            rows.add(np.arange(start, min(start + step, count), dtype=np.float64)[:, None])
        kept = np.concatenate(rows._parts)[:, 0]
    assert len(kept) <= 10 + step
    assert len(np.unique(np.diff(kept))) <= 1
    assert rows.moments()["count"] == [count]


def test_quantiles_lag_by_a_tenth_at_most_and_are_exact_when_asked() -> None:
    found = Distribution()
    draw = np.random.default_rng(0)
    pieces = [draw.normal(size=(10, 1)) + i for i in range(40)]
    for i, piece in enumerate(pieces):
        found.add({"action": piece}, {})
        median = found.stats()["action"]["q50"][0]
        fresh = [np.median(np.concatenate(pieces[:n])) for n in range(1, i + 2)]
        n = int(np.argmin(np.abs(np.array(fresh) - median))) + 1
        assert 1.1 * n >= i + 1 - 1e-9 or n == i + 1
    exact = found.stats(exact=True)["action"]["q50"][0]
    assert exact == pytest.approx(np.median(np.concatenate(pieces)))
