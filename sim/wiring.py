"""What the compiled control laws need to know of a scene, gathered once.

Axes as in ``sim.control``.
"""

from collections.abc import Sequence

import mujoco
import numpy as np

from sim.arms import Arm
from sim.control import Physics, Wiring


def physics_of(model: mujoco.MjModel, data: mujoco.MjData) -> Physics:
    """Return views of a model and its data; both must outlive them."""
    return Physics(
        model=model._address,
        data=data._address,
        qpos=data.qpos,
        qvel=data.qvel,
        ctrl=data.ctrl,
        inertia=data.qM,
        bias=data.qfrc_bias,
        site_xpos=data.site_xpos,
        site_xmat=data.site_xmat,
        inertia_address=model.dof_Madr,
        parent=model.dof_parentid,
        ctrlrange=model.actuator_ctrlrange,
    )


def wiring_of(arms: Sequence[Arm], *, freedoms: int, stiffness: float) -> Wiring:
    """Return where the arms are, for critically damped control.

    Args:
        arms: The arms, in the order of their goals.
        freedoms: Degrees of freedom of the model.
        stiffness: Gain of position errors [1/s^2].
    """
    shape = (len(arms), max(arm.joints for arm in arms))
    qpos, dofs, actuators = (np.zeros(shape, dtype=np.int32) for _ in range(3))
    place = np.full((len(arms), freedoms), -1, dtype=np.int32)
    for a, arm in enumerate(arms):
        qpos[a, : arm.joints] = arm.qpos
        dofs[a, : arm.joints] = arm.dofs
        actuators[a, : arm.joints] = arm.actuators
        place[a, arm.dofs] = np.arange(arm.joints)
    grips = [arm.gripper.actuators for arm in arms if arm.gripper is not None]
    return Wiring(
        joints=np.array([arm.joints for arm in arms], dtype=np.int32),
        qpos=qpos,
        dofs=dofs,
        place=place,
        actuators=actuators,
        grips=np.concatenate([np.zeros(0, dtype=np.int32), *grips]).astype(np.int32),
        sites=np.array([arm.site for arm in arms], dtype=np.int32),
        bases=np.array([arm.base for arm in arms], dtype=np.int32),
        kp=stiffness,
        kd=2.0 * np.sqrt(stiffness),
    )
