"""What every Policy must do."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
import torch

from policies.horizons import Consensus, Horizons
from policies.learn import PolicyLearner
from policies.load import load_policy
from policies.steer import BestOf, RandomValue
from robot.protocols import Policy
from robot.types import ActionChunk, Observation, Plan, Task
from tests.policies.conftest import make_frames, make_spec
from tests.robot.bench import PLAN, PointArm, Reach

TOY = Plan(task=Task(name="toy", instruction="move to the blob"))


def encode(sentences: Sequence[str]) -> np.ndarray:
    return np.ones((len(sentences), 384), dtype=np.float32)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = PolicyLearner(
        [make_frames(episodes=4, steps=12)],
        make_spec(),
        horizons=Horizons(lengths=(2, 4, 8)),
        commit=Consensus(),
        encode=encode,
        scene={"width": 32, "depth": 1},
        expert={"width": 32, "depth": 1},
    )
    with torch.no_grad():  # fresh gates are closed; open them so that noise and images matter
        for parameter in made.module.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape))
    folder = tmp_path_factory.mktemp("policy") / "checkpoint"
    return str(made.save(folder, made.module.state_dict(), {}))


@cache
def neural(checkpoint: str) -> Policy:
    return load_policy(checkpoint)


@cache
def frame() -> Observation:
    frames = make_frames(episodes=1, steps=4)
    images = {name: pixels[1] for name, pixels in frames.images.items()}
    return Observation(time=0.05, state=frames.states[1], images=images)


Make = Callable[[str], Policy]
POLICIES: dict[str, tuple[Make, Plan]] = {
    "reach": (lambda checkpoint: Reach(noise=0.1), PLAN),
    "best of one": (lambda checkpoint: BestOf(Reach(noise=0.1)), PLAN),
    "random of four": (lambda checkpoint: BestOf(Reach(noise=0.1), RandomValue(), 4), PLAN),
    "neural": (neural, TOY),
    "random of four neural": (lambda c: BestOf(neural(c), RandomValue(), 4), TOY),
}


@pytest.fixture(params=POLICIES.keys())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def observation(name: str) -> Observation:
    return frame() if POLICIES[name][1] is TOY else PointArm().observe()


@pytest.fixture
def propose(name: str, checkpoint: str) -> Callable[..., ActionChunk]:
    make, plan = POLICIES[name]

    def proposed(*, seed: int = 0, count: int = 1) -> ActionChunk:
        policy = make(checkpoint)
        policy.reset(seed)
        return policy.propose(observation(name), plan, count)

    return proposed


Propose = Callable[..., ActionChunk]


def test_it_is_a_policy(name: str, checkpoint: str) -> None:
    assert isinstance(POLICIES[name][0](checkpoint), Policy)


def test_candidates_lie_on_the_first_axis(name: str, propose: Propose) -> None:
    chunk = propose(count=3)
    assert chunk.targets.shape[0] == 3
    assert chunk.targets.ndim == 3
    assert np.asarray(chunk.commit).shape == (3,)
    assert np.isfinite(chunk.targets).all()


def test_at_least_one_step_is_trusted_and_none_past_the_end(propose: Propose) -> None:
    chunk = propose(count=3)
    assert np.all((np.asarray(chunk.commit) >= 1) & (np.asarray(chunk.commit) <= chunk.steps))


def test_a_chunk_starts_at_the_observation(name: str, propose: Propose) -> None:
    assert propose().start == pytest.approx(float(observation(name).time))


def test_the_first_candidate_does_not_depend_on_their_number(propose: Propose) -> None:
    one, many = propose(count=1), propose(count=4)
    assert many.targets[0] == pytest.approx(one.targets[0], abs=1e-5)


def test_a_seed_decides_all_chance(propose: Propose) -> None:
    first, again, other = (propose(seed=seed).targets for seed in (1, 1, 2))
    assert again == pytest.approx(first, abs=0.0)
    assert not np.allclose(first, other, atol=1e-6)


def test_what_was_observed_is_not_written_to(name: str, propose: Propose) -> None:
    before = observation(name).state.copy()
    propose()
    assert observation(name).state == pytest.approx(before, abs=0.0)
