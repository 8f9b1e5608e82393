"""What every Env must do."""

from collections.abc import Callable

import numpy as np
import pytest

from robot.inference import Delayed
from robot.protocols import Env, Robot
from robot.runner import Runner
from robot.types import ActionChunk, Observation, Outcome, Plan, Task
from sim.robosuite import TwoArmEnv
from tests.robot.bench import PointEnv

Make = Callable[[], Env]
_SCENES: dict[str, TwoArmEnv] = {}


def scene(task: str, **settings: object) -> Make:
    def make() -> Env:
        name = f"{task} {settings}"
        if name not in _SCENES:
            _SCENES[name] = TwoArmEnv(task=task, time_limit_s=0.5, **settings)
        return _SCENES[name]

    return make


ENVS: dict[str, Make] = {
    "point": lambda: PointEnv(time_limit_s=0.5),
    "lift": scene("lift", cameras={"agentview": (32, 48)}),
    "peg": scene("peg"),
    "transport": scene("transport"),
}
pytestmark = pytest.mark.parametrize("make", ENVS.values(), ids=ENVS.keys())


class Hold:
    """Proposes to stay where the robot is."""

    def __init__(self, env: Env) -> None:
        self._spec = env.robot.spec

    def reset(self, seed: int) -> None:
        return

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        index = [self._spec.state_names.index(name) for name in self._spec.action_names]
        place = np.asarray(observation.state, dtype=np.float64)[index]
        return ActionChunk(
            start=float(observation.time),
            period=self._spec.period,
            targets=np.tile(place, (count, 8, 1)),
            commit=np.full(count, 8),
        )


def test_it_is_an_env_with_a_robot(make: Make) -> None:
    env = make()
    assert isinstance(env, Env)
    assert isinstance(env.robot, Robot)


def test_a_reset_says_in_words_what_is_asked_for(make: Make) -> None:
    task = make().reset(0)
    assert isinstance(task, Task)
    assert task.name
    assert len(task.instruction.split()) >= 2


def test_a_seed_decides_the_start(make: Make) -> None:
    env = make()
    hashes: list[str] = []
    for seed in (5, 6, 5):
        env.reset(seed)
        hashes.append(env.state_hash())
    assert hashes[0] == hashes[2]
    assert hashes[0] != hashes[1]


def test_time_is_zero_after_a_reset(make: Make) -> None:
    env = make()
    env.reset(0)
    env.robot.command(env.robot.observe().state[: len(env.robot.spec.action_names)])
    assert env.robot.clock.now() == pytest.approx(env.robot.spec.period)
    env.reset(1)
    assert env.robot.clock.now() == 0.0


def test_doing_nothing_ends_in_a_timeout(make: Make) -> None:
    env = make()
    record = Runner(env, Delayed(Hold(env))).run(0)
    assert record.outcome is Outcome.TIMEOUT
    assert record.duration == pytest.approx(0.5)


def test_the_same_seed_and_policy_give_the_same_episode(make: Make) -> None:
    env = make()
    ends: list[str] = []
    for _ in range(2):
        Runner(env, Delayed(Hold(env))).run(3)
        ends.append(env.state_hash())
    assert ends[0] == ends[1]


def test_closing_twice_is_safe(make: Make) -> None:
    env = make()
    env.reset(0)
    env.close()
    env.close()
    _SCENES.clear()
