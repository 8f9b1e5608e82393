import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sim.gym
from robot.errors import BadAction, UnknownName
from sim.gymnasium_env import TwoArmGym
from sim.tasks import GOALS

SMALL = {"agentview": (32, 32)}
NAMES = [
    pytest.param(name, marks=() if task == "lift" else pytest.mark.slow)
    for name, task in sim.gym.NAMES.items()
    if task in GOALS
]


@pytest.fixture(scope="module")
def lift() -> Iterator[Any]:
    env = gymnasium.make(
        "ambidex/TwoArmLift-v0", cameras=SMALL, time_limit_s=0.2, render_mode="rgb_array"
    )
    yield env
    env.close()


def still(env: Any) -> np.ndarray:
    return env.unwrapped.action(env.unwrapped.env._scene.target)


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_own_checker_finds_nothing(name: str) -> None:
    env = gymnasium.make(name, cameras=SMALL, render_mode="rgb_array")
    check_env(env.unwrapped, skip_close_check=True)
    env.close()


def test_a_seed_decides_the_start_and_the_starts_after_it(lift: Any) -> None:
    hashes: list[list[str]] = []
    for _ in range(2):
        lift.reset(seed=7)
        first = lift.unwrapped.env.state_hash()
        lift.reset()
        hashes.append([first, lift.unwrapped.env.state_hash()])
    assert hashes[0] == hashes[1]
    assert hashes[0][0] != hashes[0][1]


def test_a_seed_names_the_same_start_as_in_the_rest_of_ambidex(lift: Any) -> None:
    lift.reset(seed=3)
    through_gymnasium = lift.unwrapped.env.state_hash()
    lift.unwrapped.env.reset(3)
    assert lift.unwrapped.env.state_hash() == through_gymnasium


def test_the_end_of_time_truncates_and_does_not_terminate(lift: Any) -> None:
    lift.reset(seed=0)
    ends = [lift.step(still(lift))[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(False, True)]


def test_reaching_the_goal_terminates(lift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gymnasium.make("ambidex/TwoArmLift-v0", cameras={})
    env.reset(seed=0)
    inner: Any = env.unwrapped
    monkeypatch.setattr(inner.env, "success", lambda: True)
    steps = [env.step(still(env)) for _ in range(5)]
    env.close()
    assert [step[2] for step in steps] == [False] * 4 + [True]
    assert steps[-1][3] is False
    assert steps[-1][1] == 1.0
    assert steps[-1][4]["is_success"] is True


def test_an_action_and_its_target_translate_both_ways(lift: Any) -> None:
    env = lift.unwrapped
    low, high = np.array(env.env.spec.action_low), np.array(env.env.spec.action_high)
    np.testing.assert_allclose(env.target(np.full(len(low), -1.0)), low)
    np.testing.assert_allclose(env.target(np.ones(len(low))), high)
    middle = (low + high) / 2
    np.testing.assert_allclose(env.target(env.action(middle)), middle, atol=1e-6)


def test_an_action_of_another_shape_moves_nothing(lift: Any) -> None:
    lift.reset(seed=0)
    before = lift.unwrapped.env.state_hash()
    with pytest.raises(BadAction, match="left_joint1"):
        lift.unwrapped.step(np.zeros(3, dtype=np.float32))
    assert lift.unwrapped.env.state_hash() == before


def test_the_picture_has_the_size_asked_for(lift: Any) -> None:
    lift.reset(seed=0)
    assert lift.render().shape == (256, 256, 3)


def test_an_unknown_option_or_mode_is_named() -> None:
    with pytest.raises(UnknownName, match="rgb_array"):
        TwoArmGym("lift", render_mode="depth_map")
    with pytest.raises(UnknownName, match="dense"):
        TwoArmGym("lift", reward="dens")  # pyright: ignore[reportArgumentType]


def test_registering_twice_says_nothing() -> None:
    sim.gym.register_all()
    assert set(sim.gym.NAMES) <= set(gymnasium.registry)


@pytest.mark.slow
def test_registration_needs_no_simulator() -> None:
    code = "import sys, sim.gym; sys.exit('mujoco' in sys.modules or 'robosuite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
