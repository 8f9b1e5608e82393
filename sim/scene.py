"""Two arms and some objects under physics: start states, targets in, joint angles out.

Axes: ``s`` state, ``d`` action, ``n`` joints of one arm. Angles [rad], lengths [m]; a gripper's
opening lies in [0, 1]. The first robot is the ``left`` arm, the second the ``right`` one.
"""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from jaxtyping import Float

from robot.errors import BadAction
from robot.types import Spec
from sim.arms import Arm, arms_of
from sim.control import follow_joints, follow_poses
from sim.mujoco import check_physics, physics_state, restore_physics
from sim.snapshot import Snapshot
from sim.start import lighten, place_at_start
from sim.suite import PHYSICS_STEP, STIFFNESS, make_suite
from sim.wiring import physics_of, wiring_of

SEEDS = 2**32
"""Seeds lie in ``0 .. SEEDS - 1``."""

REACH = 2.0
"""Bound of tool positions in ``osc_pose`` [m], per axis of the world."""

OSC_AXES = ("x", "y", "z", "rx", "ry", "rz")


class Scene:
    """The physics of one task: robosuite's model and start states, our own control loop.

    Attributes:
        suite: robosuite's environment, for its object references.
        model, data: MuJoCo's.
        arms: The left and the right arm.
        spec: State, action, limits and rate; without cameras.
        target: Target in force. Absolute joint angles, or tool position and rotation vector in
            the world, then the opening of the gripper; the left arm first.
    """

    def __init__(self, *, task: str, robots: Sequence[str], control: str, rate: float) -> None:
        self.suite: Any = make_suite(task=task, robots=robots, control=control, rate=rate)
        lighten(self.suite)
        self.model: mujoco.MjModel = self.suite.sim.model._model
        self.data: mujoco.MjData = self.suite.sim.data._data
        # Force sensors move nothing and take a twentieth of a step; nobody reads them.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR.value
        self.arms = arms_of(self.suite)
        self.spec = _spec(self.arms, robots=robots, control=control, rate=rate)
        self._low, self._high = np.array(self.spec.action_low), np.array(self.spec.action_high)
        self._substeps = round(1.0 / (rate * PHYSICS_STEP))
        self._osc = control == "osc_pose"
        self._physics = physics_of(self.model, self.data)
        self._wiring = wiring_of(self.arms, freedoms=self.model.nv, stiffness=STIFFNESS)
        widest = self._wiring.dofs.shape[1]
        self.target = np.zeros(len(self.spec.action_names))
        self._goals = np.zeros((len(self.arms), 6 if self._osc else widest))
        self._grip = np.zeros(len(self._wiring.grips))
        self._ramp = np.zeros(len(self.arms))
        self._rest = np.zeros((len(self.arms), widest))
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Set the start state that robosuite's own soft reset sets for this seed.

        Raises:
            ValueError: If the seed is negative or needs more than 32 bits.
        """
        if not 0 <= seed < SEEDS:
            raise ValueError(f"seed {seed} lies outside 0 .. {SEEDS - 1}; choose one inside")
        place_at_start(self.suite, seed)
        self._ramp[:] = 0.0
        for a, arm in enumerate(self.arms):
            self._rest[a, : arm.joints] = self.data.qpos[arm.qpos]
        self.hold()

    def hold(self) -> None:
        """Make what the arms do now the target in force."""
        self.target = self._achieved()

    def advance(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Follow ``target`` for one control period and return it as the limits leave it.

        Raises:
            BadAction: If it has a wrong shape or is not finite; nothing moves.
            InfrastructureError: If the physics diverges.
        """
        target = np.asarray(target, dtype=np.float64)
        if target.shape != self._low.shape:
            raise BadAction(
                f"a target of shape {target.shape} does not fit {self._low.shape}, which is "
                f"{', '.join(self.spec.action_names)}; nothing moved"
            )
        if not np.isfinite(target).all():
            bad = [
                name
                for name, value in zip(self.spec.action_names, target, strict=True)
                if not np.isfinite(value)
            ]
            raise BadAction(f"{', '.join(bad)} of the target is not finite; nothing moved")
        self.target = np.minimum(np.maximum(target, self._low), self._high)
        self._aim()
        if self._osc:
            follow_poses(
                self._physics, self._wiring, self._goals, self._grip, self._substeps, self._rest
            )
        else:
            follow_joints(self._physics, self._wiring, self._goals, self._grip, self._substeps)
        check_physics(self.data)
        return self.target

    def _aim(self) -> None:
        """Split the target into the goals of arms and grippers; the latter move on a ramp."""
        start = grips = 0
        for a, arm in enumerate(self.arms):
            width = 6 if self._osc else arm.joints
            self._goals[a, :width] = self.target[start : start + width]
            start += width
            if arm.gripper is None:
                continue
            wanted, speed = 2.0 * self.target[start] - 1.0, arm.gripper.speed
            self._ramp[a] += min(max(wanted - self._ramp[a], -speed), speed)
            count = len(arm.gripper.actuators)
            self._grip[grips : grips + count] = arm.gripper.control(self._ramp[a])
            start, grips = start + 1, grips + count

    def state(self) -> Float[np.ndarray, " s"]:
        """Return joint angles and gripper opening, the left arm first."""
        parts: list[Any] = []
        for arm in self.arms:
            parts.append(self.data.qpos[arm.qpos])
            if arm.gripper is not None:
                parts.append([arm.gripper.opening(self.data.qpos)])
        return np.concatenate(parts)

    def snapshot(self, *, steps: int = 0, held: int = 0) -> Snapshot:
        """Return a copy of this moment; the counters are the caller's."""
        return Snapshot(
            physics=physics_state(self.model, self.data),
            target=self.target.copy(),
            ramp=self._ramp.copy(),
            rest=self._rest.copy(),
            steps=steps,
            held=held,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Put a moment back, bit by bit; also one taken from an equal scene.

        Raises:
            ValueError: If it is a moment of another model.
        """
        restore_physics(self.model, self.data, snapshot.physics)
        self.target = snapshot.target.copy()
        self._ramp[:] = snapshot.ramp
        self._rest[:] = snapshot.rest

    def _achieved(self) -> Float[np.ndarray, " d"]:
        parts: list[Any] = []
        for a, arm in enumerate(self.arms):
            if self._osc:
                quat, rotation = np.zeros(4), np.zeros(3)
                mujoco.mju_mat2Quat(quat, self.data.site_xmat[arm.site])
                mujoco.mju_quat2Vel(rotation, quat, 1.0)
                parts += [self.data.site_xpos[arm.site], rotation]
            else:
                parts.append(self.data.qpos[arm.qpos])
            if arm.gripper is not None:
                parts.append([0.5 * (self._ramp[a] + 1.0)])
        return np.concatenate(parts)


def _spec(arms: Sequence[Arm], *, robots: Sequence[str], control: str, rate: float) -> Spec:
    state: list[tuple[str, str]] = []
    action: list[tuple[str, str, float, float]] = []
    for arm in arms:
        names = [f"{arm.side}_joint{i + 1}" for i in range(arm.joints)]
        state += [(name, "rad") for name in names]
        if control == "joint_position":
            limits = zip(names, arm.low, arm.high, strict=True)
            action += [(name, "rad", float(low), float(high)) for name, low, high in limits]
        else:
            action += [(f"{arm.side}_{axis}", "m", -REACH, REACH) for axis in OSC_AXES[:3]]
            action += [
                (f"{arm.side}_{axis}", "rad", -2 * np.pi, 2 * np.pi) for axis in OSC_AXES[3:]
            ]
        if arm.gripper is not None:
            state.append((f"{arm.side}_gripper", "opening"))
            action.append((f"{arm.side}_gripper", "opening", 0.0, 1.0))
    return Spec(
        robot="+".join(robots),
        control=control,
        rate=rate,
        state_names=tuple(name for name, _ in state),
        state_units=tuple(unit for _, unit in state),
        action_names=tuple(name for name, _, _, _ in action),
        action_units=tuple(unit for _, unit, _, _ in action),
        action_low=tuple(low for _, _, low, _ in action),
        action_high=tuple(high for _, _, _, high in action),
    )
