"""What every ActionValue and StateValue must do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from policies.steer import RandomValue
from robot.protocols import ActionValue, StateValue
from robot.types import ActionChunk, Observation, Plan, Task
from sim.oracle import Oracle
from sim.robosuite import TwoArmEnv
from tests.robot.bench import PLAN, PointArm, Reach
from tests.values.toyworld import SIZE, STEPS, TEXTS, encode, make_store
from values.learn import CriticLearner
from values.load import load_value


@dataclass
class Case:
    """A value, what it is shown, and candidates it is asked about."""

    value: ActionValue
    seen: Observation
    plan: Plan
    targets: np.ndarray

    def chunk(self, count: int) -> ActionChunk:
        return ActionChunk(
            start=float(self.seen.time),
            period=0.05,
            targets=self.targets[:count].copy(),
            commit=np.full(count, 4),
        )

    def score(self, count: int) -> np.ndarray:
        return np.asarray(self.value.score(self.seen, self.plan, self.chunk(count)))


def of_chance(folder: Path) -> Case:
    seen = PointArm().observe()
    targets = Reach(noise=0.1).propose(seen, PLAN, 6).targets
    return Case(RandomValue(), seen, PLAN, targets)


def of_a_critic(folder: Path) -> Case:
    made = CriticLearner(
        siblings=[make_store(folder / "siblings", episodes=6)],
        steps=STEPS,
        width=32,
        depth=1,
        scene={"width": 32, "depth": 1, "stem": "patch", "patch": 8},
        encode=encode,
    )
    value = load_value(made.save(folder / "checkpoint", made.module.state_dict(), {}))
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (SIZE, SIZE, 3), dtype=np.uint8)
    seen = Observation(time=0.0, state=rng.normal(size=4), images={"front": image})
    plan = Plan(task=Task(name="toy", instruction=TEXTS[0]))
    return Case(value, seen, plan, rng.normal(size=(6, STEPS, 4)))


class Hold:
    def reset(self, seed: int) -> None:
        return

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        targets = np.tile(np.asarray(observation.state)[..., None, :], (count, 1, 8, 1))
        return ActionChunk(
            start=float(np.max(observation.time)),
            period=0.05,
            targets=targets,
            commit=np.full(targets.shape[:-2], 8),
        )


def of_an_oracle(folder: Path) -> Case:
    env = TwoArmEnv(task="lift")
    plan = Plan(task=env.reset(0))
    seen = env.robot.observe()
    noise = np.random.default_rng(0).normal(size=(6, 8, len(seen.state)))
    value = Oracle(env, Hold(), steps=2, continuations=0)
    value.reset(0)
    return Case(value, seen, plan, np.asarray(seen.state) + 0.05 * noise)


MAKE: dict[str, Callable[[Path], Case]] = {
    "chance": of_chance,
    "critic": of_a_critic,
    "oracle": of_an_oracle,
}
STATE_VALUES = ("critic",)


@pytest.fixture(scope="module", params=MAKE.keys())
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return MAKE[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module", params=STATE_VALUES)
def state_case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return MAKE[request.param](tmp_path_factory.mktemp(request.param))


def test_it_is_an_action_value(case: Case) -> None:
    assert isinstance(case.value, ActionValue)


@pytest.mark.parametrize("count", [1, 5])
def test_it_gives_one_finite_score_a_candidate(case: Case, count: int) -> None:
    scores = case.score(count)
    assert scores.shape == (count,)
    assert np.isfinite(scores).all()


def test_it_does_not_write_to_the_candidates(case: Case) -> None:
    chunk = case.chunk(4)
    case.value.score(case.seen, case.plan, chunk)
    assert chunk.targets == pytest.approx(case.targets[:4], abs=0.0)


def test_it_is_a_state_value(state_case: Case) -> None:
    assert isinstance(state_case.value, StateValue)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_it_gives_one_finite_score_an_observation(state_case: Case, batch: tuple[int, ...]) -> None:
    value, seen = state_case.value, state_case.seen
    assert isinstance(value, StateValue)
    many = Observation(
        time=np.zeros(batch),
        state=np.broadcast_to(seen.state, (*batch, *np.shape(seen.state))).copy(),
        images={
            name: np.broadcast_to(pixels, (*batch, *pixels.shape)).copy()
            for name, pixels in seen.images.items()
        },
    )
    scores = np.asarray(value.value(many, state_case.plan))
    assert scores.shape == batch
    assert np.isfinite(scores).all()
