"""Where an arm lives in a MuJoCo model, and what it is called outside.

Axes: ``n`` joints of one arm, ``g`` actuators of its gripper. Angles [rad], torques [N m].
"""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from jaxtyping import Float, Int

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gripper:
    """A gripper that one number opens.

    Attributes:
        actuators: Indices of its actuators.
        qpos: Index of the position that each actuator drives.
        direction: Sign of each actuator's command when opening.
        speed: Change of the command in one control step; commands lie in [-1, 1].
        middle, reach: Control of each actuator is ``middle + reach * direction * command``.
        low, high: Limits of the controls.
        closed, open: Position of each driven joint at either end [m or rad].
    """

    actuators: Int[np.ndarray, " g"]
    qpos: Int[np.ndarray, " g"]
    direction: Float[np.ndarray, " g"]
    speed: float
    middle: Float[np.ndarray, " g"]
    reach: Float[np.ndarray, " g"]
    low: Float[np.ndarray, " g"]
    high: Float[np.ndarray, " g"]
    closed: Float[np.ndarray, " g"]
    open: Float[np.ndarray, " g"]

    def control(self, command: float) -> Float[np.ndarray, " g"]:
        """Return the controls of its actuators for a command in [-1, 1]; 1 opens."""
        control = self.middle + self.reach * (self.direction * command)
        return np.minimum(np.maximum(control, self.low), self.high)

    def opening(self, qpos: Float[np.ndarray, " q"]) -> float:
        """Return how far it is open, 0 to 1, from all positions of the model."""
        return float(np.mean((qpos[self.qpos] - self.closed) / (self.open - self.closed)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Indices and limits of one arm.

    ``base`` is the site that robosuite takes for the arm's base, or -1 if it stands still: that of
    an IIWA turns with its first joint.
    """

    side: str
    qpos: Int[np.ndarray, " n"]
    dofs: Int[np.ndarray, " n"]
    actuators: Int[np.ndarray, " n"]
    site: int
    base: int
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]
    gripper: Gripper | None

    @property
    def joints(self) -> int:
        """Number of joints, the gripper's not counted."""
        return len(self.qpos)


def arms_of(suite: Any) -> tuple[Arm, Arm]:
    """Return the left and the right arm of a robosuite environment with two robots."""
    model: mujoco.MjModel = suite.sim.model._model
    left, right = (
        _arm(model, robot, side) for robot, side in zip(suite.robots, SIDES, strict=True)
    )
    return left, right


def _arm(model: mujoco.MjModel, robot: Any, side: str) -> Arm:
    joints = [model.joint(name) for name in robot.robot_arm_joints]
    ranges = np.array(
        [j.range if j.limited[0] else (-2 * np.pi, 2 * np.pi) for j in joints], dtype=np.float64
    )
    base = model.site(f"{robot.robot_model.naming_prefix}right_center").id
    return Arm(
        side=side,
        qpos=np.array([j.qposadr[0] for j in joints]),
        dofs=np.array([j.dofadr[0] for j in joints]),
        actuators=np.array(robot._ref_actuators_indexes_dict["right"]),
        site=int(robot.eef_site_id["right"]),
        base=-1 if model.body_weldid[model.site_bodyid[base]] == 0 else base,
        low=ranges[:, 0],
        high=ranges[:, 1],
        gripper=_gripper(model, robot.gripper["right"]),
    )


def _gripper(model: mujoco.MjModel, gripper: Any) -> Gripper | None:
    if not gripper.actuators:
        return None
    before = np.array(gripper.current_action)
    gripper.current_action = np.zeros(len(gripper.actuators))
    direction = np.sign(gripper.format_action(np.array([-1.0])))
    gripper.current_action = before
    actuators = np.array([model.actuator(name).id for name in gripper.actuators])
    ctrl = model.actuator_ctrlrange[actuators]
    joints = model.actuator_trnid[actuators, 0]
    opens_high = direction > 0
    return Gripper(
        actuators=actuators,
        qpos=np.asarray(model.jnt_qposadr[joints]),
        direction=direction.astype(np.float64),
        speed=float(gripper.speed),
        middle=0.5 * (ctrl[:, 1] + ctrl[:, 0]),
        reach=0.5 * (ctrl[:, 1] - ctrl[:, 0]),
        low=ctrl[:, 0].copy(),
        high=ctrl[:, 1].copy(),
        closed=np.where(opens_high, ctrl[:, 0], ctrl[:, 1]),
        open=np.where(opens_high, ctrl[:, 1], ctrl[:, 0]),
    )
