import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot.errors import DatasetError
from robot.nn.encoders import StatePredictor
from robot.nn.normalise import Normaliser
from robot.nn.statistics import Statistics

NAMES = ("left_joint1", "left_gripper", "right_joint1")
samples = arrays(np.float64, st.tuples(st.integers(2, 20), st.just(3)), elements=st.floats(-50, 50))
many = settings(max_examples=50, deadline=None)


@many
@given(data=samples, mode=st.sampled_from(["mean_std", "quantile"]))
def test_normalising_and_back_returns_the_values(data: np.ndarray, mode: str) -> None:
    normaliser = Normaliser(Statistics.of(data, names=NAMES, what="state"), mode=mode)
    values = torch.from_numpy(data).float()
    torch.testing.assert_close(normaliser.invert(normaliser(values)), values, atol=1e-3, rtol=1e-4)


@many
@given(data=samples)
def test_statistics_survive_json(data: np.ndarray) -> None:
    made = Statistics.of(data, names=NAMES, what="state")
    again = Statistics.from_dict(json.loads(json.dumps(made.to_dict())))
    np.testing.assert_array_equal(made.mean, again.mean)
    np.testing.assert_array_equal(made.high, again.high)
    assert again.count == len(data)


def test_normalised_data_has_no_mean_and_unit_spread() -> None:
    data = np.random.default_rng(0).normal(3.0, 0.2, size=(500, 3))
    normaliser = Normaliser(Statistics.of(data, names=NAMES, what="state"))
    out = normaliser(torch.from_numpy(data).float())
    torch.testing.assert_close(out.mean(dim=0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(out.std(dim=0), torch.ones(3), atol=1e-2, rtol=0)


def test_an_entry_that_never_moves_is_not_blown_up() -> None:
    data = np.zeros((10, 3))
    normaliser = Normaliser(Statistics.of(data, names=NAMES, what="state"), floor=0.1)
    assert float(normaliser(torch.full((3,), 0.1)).abs().max()) == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e6])
def test_data_that_cannot_be_normalised_is_refused_by_name(bad: float) -> None:
    data = np.zeros((5, 3))
    data[3, 2] = bad
    with pytest.raises(DatasetError, match="right_joint1"):
        Statistics.of(data, names=NAMES, what="state")


def test_missing_entries_are_left_out_but_an_empty_column_is_refused() -> None:
    data = np.ones((4, 3))
    data[0, 1] = np.nan
    assert Statistics.of(data, names=NAMES, what="state").mean[1] == 1.0
    data[:, 1] = np.nan
    with pytest.raises(DatasetError, match="left_gripper"):
        Statistics.of(data, names=NAMES, what="state")


def test_no_samples_are_refused() -> None:
    with pytest.raises(DatasetError, match="collect"):
        Statistics.of(np.zeros((0, 3)), names=NAMES, what="state")


def test_stored_statistics_must_be_finite() -> None:
    plain = Statistics.of(np.ones((4, 3)), names=NAMES, what="state").to_dict()
    plain["std"][0] = float("nan")
    with pytest.raises(DatasetError, match="std"):
        Statistics.from_dict(plain)


def test_the_privileged_error_skips_unknown_entries_and_is_not_ruled_by_one_outlier() -> None:
    head = StatePredictor(width=4, image_tokens=2, out=2)
    scene = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        said = head(scene)
        assert float(head.error(scene, said)) == pytest.approx(0.0)
        unknown = said.clone()
        unknown[0, 0] = float("nan")
        assert float(head.error(scene, unknown)) == pytest.approx(0.0)
        assert float(head.error(scene, said + 0.5)) == pytest.approx(0.25, rel=1e-4)
        far = said.clone()
        far[0, 0] += 100.0
        assert float(head.error(scene, far)) < 100.0
