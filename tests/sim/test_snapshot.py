"""Copying a moment and putting it back, controllers, ramps, counters and clock included."""

from collections.abc import Callable

import numpy as np
import pytest

from robot.types import Outcome
from sim.mujoco import physics_state
from sim.robosuite import TwoArmEnv
from sim.scene import Scene
from sim.suite import CONTROLS, TASKS

Pandas = Callable[..., Scene]


def _closing(scene: Scene, steps: int) -> np.ndarray:
    """Return targets ``(t, d)`` that move every joint a little and close the grippers."""
    time = np.arange(1, steps + 1)[:, None]
    targets = scene.target + 0.01 * np.sin(0.3 * time + np.arange(len(scene.target)))
    hands = [name.endswith("_gripper") for name in scene.spec.action_names]
    targets[:, hands] = 0.0
    return targets


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("task", TASKS)
def test_future_after_a_restore_is_the_same_bit_by_bit(
    task: str, control: str, pandas: Pandas
) -> None:
    scene = pandas(task, control)
    twin = pandas(task, control, copy=1)
    twin.reset(99)
    targets = _closing(scene, 12)
    for target in targets[:2]:  # the grippers are on their ramp now
        scene.advance(target)
    moment = scene.snapshot()
    once: list[np.ndarray] = []
    for target in targets[2:]:
        scene.advance(target)
        once.append(physics_state(scene.model, scene.data))
    for other in (scene, twin):
        other.restore(moment)
        for target, expected in zip(targets[2:], once, strict=True):
            other.advance(target)
            np.testing.assert_array_equal(physics_state(other.model, other.data), expected)


def test_what_follows_from_the_state_is_restored_too(pandas: Pandas) -> None:
    scene = pandas("lift", "joint_position")
    for target in _closing(scene, 3):
        scene.advance(target)
    moment, seen = scene.snapshot(), scene.data.xpos.copy()
    contacts = scene.data.contact.dist.copy()
    scene.reset(5)
    scene.restore(moment)
    np.testing.assert_array_equal(scene.data.xpos, seen)
    np.testing.assert_array_equal(scene.data.contact.dist, contacts)


def test_snapshot_does_not_follow_the_scene(pandas: Pandas) -> None:
    scene = pandas("lift", "osc_pose")
    moment = scene.snapshot()
    kept = [moment.physics.copy(), moment.target.copy(), moment.ramp.copy(), moment.rest.copy()]
    for target in _closing(scene, 3):
        scene.advance(target)
    scene.reset(8)
    for now, then in zip(
        (moment.physics, moment.target, moment.ramp, moment.rest), kept, strict=True
    ):
        np.testing.assert_array_equal(now, then)


def test_counters_and_clock_come_back() -> None:
    env = TwoArmEnv("lift", time_limit_s=0.2)
    moment = env.snapshot()
    for _ in range(4):
        env.robot.command(env.robot.target)
    assert env.judge(env.robot.observe()) is Outcome.TIMEOUT
    assert env.robot.clock.now() == pytest.approx(0.2)
    env.restore(moment)
    assert env.judge(env.robot.observe()) is None
    assert env.robot.clock.now() == 0.0


def test_moment_of_another_task_is_refused(pandas: Pandas) -> None:
    scene = pandas("lift", "joint_position")
    other = pandas("peg", "joint_position")
    with pytest.raises(ValueError, match="same task"):
        scene.restore(other.snapshot())
