"""From a wished pose of a hand to joint targets: one damped least-squares step.

Axes: ``n`` joints of one arm. Angles [rad], lengths [m]. The step starts at the measured joints,
so that a target follows from the present state alone.
"""

from typing import Any

import mujoco
import numpy as np
from jaxtyping import Float

from sim.arms import Arm

DAMPING = 0.03
MARGIN = 0.01
POSTURE_GAIN = 0.3
PANDA = (0.0, np.pi / 16, 0.0, -2.618, 0.0, 2.94, 0.0)
"""Posture to which the free joint of a seven-jointed arm is drawn [rad]."""


def rotation_vector(rotation: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "3"]:
    """Return axis times angle of a rotation matrix [rad]."""
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).reshape(9))
    vector = np.empty(3)
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    return vector


def clipped(vector: Float[np.ndarray, "3"], longest: float) -> Float[np.ndarray, "3"]:
    """Return the vector, shortened to ``longest``."""
    length = float(np.linalg.norm(vector))
    return vector if length <= longest else vector * (longest / length)


class Reach:
    """Inverse kinematics of one arm of a model.

    Args:
        model: The ``mujoco.MjModel``.
        arm: Where the arm lives in it.
    """

    def __init__(self, model: Any, arm: Arm) -> None:
        self._model = model
        self._arm = arm
        self._jacobian = np.zeros((6, model.nv))
        self._posture = 0.5 * (arm.low + arm.high)
        self._weights = np.zeros(arm.joints)
        if arm.joints == len(PANDA):
            self._posture = np.array(PANDA)
            self._weights = np.array([1.0, 1.0, 1.0, 0.5, 1.0, 0.3, 0.0])

    def joints(self, data: Any) -> Float[np.ndarray, " n"]:
        """Return the measured joint angles [rad]."""
        return data.qpos[self._arm.qpos].copy()

    def toward(
        self,
        data: Any,
        position: Float[np.ndarray, "3"],
        rotation: Float[np.ndarray, "3 3"],
        *,
        lead: float = 0.06,
        turn: float = 0.45,
    ) -> Float[np.ndarray, " n"]:
        """Return joint targets that move the grip site toward a pose.

        Args:
            data: The ``mujoco.MjData``, with kinematics up to date.
            position: Wished position of the grip site [m].
            rotation: Wished ``world_R_hand``.
            lead: How far ahead of the hand the target may lie [m]; it sets the speed.
            turn: The same for the angle [rad].
        """
        j = self._jacobian
        mujoco.mj_jacSite(self._model, data, j[:3], j[3:], self._arm.site)
        jacobian = j[:, self._arm.dofs]
        now = data.site_xmat[self._arm.site].reshape(3, 3)
        error = np.concatenate(
            [
                clipped(position - data.site_xpos[self._arm.site], lead),
                clipped(rotation_vector(rotation @ now.T), turn),
            ]
        )
        q = data.qpos[self._arm.qpos]
        rest = POSTURE_GAIN * self._weights * (self._posture - q)
        low, high = self._arm.low + MARGIN - q, self._arm.high - MARGIN - q
        step = _solve(jacobian, error, rest)
        blocked = (step < low) | (step > high)
        if blocked.any():
            # Joints at their limits stay there, and the others make up for it.
            stuck = np.where(blocked, np.clip(step, low, high), 0.0)
            free = ~blocked
            step = stuck
            step[free] = _solve(jacobian[:, free], error - jacobian @ stuck, rest[free])
        return q + np.clip(step, low, high)


def _solve(
    jacobian: Float[np.ndarray, "6 n"], error: Float[np.ndarray, "6"], rest: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return the damped least-squares step, nearest to ``rest`` where the error leaves a choice."""
    square = jacobian @ jacobian.T + DAMPING**2 * np.eye(6)
    return rest + jacobian.T @ np.linalg.solve(square, error - jacobian @ rest)
