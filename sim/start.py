"""Start states: robosuite's own placement code, without what it rebuilds around it.

A soft reset of robosuite makes new controllers, buffers and observables each time (7 ms). They are
not used here, so only what decides the state is left: joint noise, finger positions, placement.
"""

from functools import partial
from typing import Any

import mujoco
import numpy as np

from sim.suite import global_seed


def lighten(suite: Any) -> None:
    """Let later resets of a robosuite environment do no more than set the start state."""
    for robot in suite.robots:
        robot.reset = partial(_reset_robot, robot)
        # Only inverse kinematics that is not used here reads it, and it takes 50 MiB.
        robot.robot_model.mujoco_model = None
    # The references never change: the model is built once.
    suite._setup_references = lambda: None
    suite._observables.clear()


def place_at_start(suite: Any, seed: int) -> None:
    """Set the state in which robosuite's soft reset would start after ``np.random.seed(seed)``.

    The environment must have been made light before.
    """
    with global_seed(seed):
        suite.sim.reset()
        suite._reset_internal()
    mujoco.mj_forward(suite.sim.model._model, suite.sim.data._data)


def _reset_robot(robot: Any, deterministic: bool = False) -> None:
    noise = robot.initialization_noise
    if deterministic or noise["type"] != "gaussian":
        raise ValueError(f"only random starts with gaussian noise are known, not {noise}")
    start = np.array(robot.init_qpos)
    start += np.random.randn(len(start)) * noise["magnitude"]  # noqa: NPY002  as robosuite draws
    qpos = robot.sim.data.qpos
    qpos[robot._ref_joint_pos_indexes] = start
    for arm in robot.arms:
        if robot.has_gripper[arm]:
            qpos[robot._ref_gripper_joint_pos_indexes[arm]] = robot.gripper[arm].init_qpos
