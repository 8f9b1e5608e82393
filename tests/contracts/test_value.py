"""What every StateValue and ActionValue must do."""

from collections.abc import Callable

import numpy as np
import pytest

from policies.steer import RandomValue
from robot.protocols import ActionValue
from tests.robot.bench import PLAN, PointArm, Reach

Make = Callable[[], ActionValue]
ACTION_VALUES: dict[str, Make] = {"random": RandomValue}


@pytest.fixture(params=ACTION_VALUES.values(), ids=ACTION_VALUES.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def test_it_is_an_action_value(make: Make) -> None:
    assert isinstance(make(), ActionValue)


@pytest.mark.parametrize("count", [1, 5])
def test_it_gives_one_finite_score_a_candidate(make: Make, count: int) -> None:
    seen = PointArm().observe()
    chunk = Reach(noise=0.1).propose(seen, PLAN, count)
    scores = make().score(seen, PLAN, chunk)
    assert np.shape(scores) == (count,)
    assert np.isfinite(scores).all()


def test_it_does_not_write_to_the_candidates(make: Make) -> None:
    seen = PointArm().observe()
    chunk = Reach(noise=0.1).propose(seen, PLAN, 4)
    before = chunk.targets.copy()
    make().score(seen, PLAN, chunk)
    assert chunk.targets == pytest.approx(before, abs=0.0)
