"""What every Policy must do."""

from collections.abc import Callable

import numpy as np
import pytest

from policies.steer import BestOf, RandomValue
from robot.protocols import Policy
from robot.types import ActionChunk, Observation
from tests.robot.bench import PLAN, PointArm, Reach

Make = Callable[[], Policy]
POLICIES: dict[str, Make] = {
    "reach": lambda: Reach(noise=0.1),
    "best of one": lambda: BestOf(Reach(noise=0.1)),
    "random of four": lambda: BestOf(Reach(noise=0.1), RandomValue(), 4),
}
CHOOSERS = ("random of four",)


@pytest.fixture(params=POLICIES.keys())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def observation() -> Observation:
    return PointArm().observe()


def propose(name: str, *, seed: int = 0, count: int = 1) -> ActionChunk:
    policy = POLICIES[name]()
    policy.reset(seed)
    return policy.propose(observation(), PLAN, count)


def test_it_is_a_policy(name: str) -> None:
    assert isinstance(POLICIES[name](), Policy)


def test_candidates_lie_on_the_first_axis(name: str) -> None:
    chunk = propose(name, count=3)
    assert chunk.targets.shape[0] == 3
    assert chunk.targets.shape[-1] == 2
    assert np.asarray(chunk.commit).shape == (3,)
    assert np.isfinite(chunk.targets).all()


def test_at_least_one_step_is_trusted_and_none_past_the_end(name: str) -> None:
    chunk = propose(name, count=3)
    assert np.all((np.asarray(chunk.commit) >= 1) & (np.asarray(chunk.commit) <= chunk.steps))


def test_a_chunk_starts_at_the_observation(name: str) -> None:
    assert propose(name).start == pytest.approx(float(observation().time))


def test_the_first_candidate_does_not_depend_on_their_number(name: str) -> None:
    one, many = propose(name, count=1), propose(name, count=4)
    assert many.targets[0] == pytest.approx(one.targets[0])


def test_a_seed_decides_all_chance(name: str) -> None:
    first, again, other = (propose(name, seed=seed).targets for seed in (1, 1, 2))
    assert again == pytest.approx(first, abs=0.0)
    assert not np.allclose(first, other)
