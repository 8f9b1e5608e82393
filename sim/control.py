"""One control period in one compiled call that lets go of the interpreter's lock.

robosuite's control laws, evaluated before every physics step on fresh positions, velocities, mass
matrix, bias and Jacobian. MuJoCo is reached through its C symbols.

Axes: ``a`` arms, ``n`` joints of one arm (an arm with fewer leaves the rest unused), ``g`` gripper
actuators, ``v`` degrees of freedom of the model, ``u`` its actuators. Angles [rad],
torques [N m].

Source:
    Khatib, "A unified approach for motion and force control of robot manipulators: the operational
    space formulation", IEEE J. Robotics and Automation 3(1), 1987.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from sim.compiled import compiled, jac_site, step1, step2
from sim.linear import factor, mass_block, rotation, solve, solve_lower

NULL_STIFFNESS = 10.0
"""Gain that draws the free motion of an arm to its rest [1/s^2]; robosuite's."""


class Physics(NamedTuple):
    """Addresses of a model and its data, and views into them. All keep pointing to the same."""

    model: int
    data: int
    qpos: Float[np.ndarray, " q"]
    qvel: Float[np.ndarray, " v"]
    ctrl: Float[np.ndarray, " u"]
    inertia: Float[np.ndarray, " m"]
    bias: Float[np.ndarray, " v"]
    site_xpos: Float[np.ndarray, "s 3"]
    site_xmat: Float[np.ndarray, "s 9"]
    inertia_address: Int[np.ndarray, " v"]
    parent: Int[np.ndarray, " v"]
    ctrlrange: Float[np.ndarray, "u 2"]


class Wiring(NamedTuple):
    """Which parts of a model belong to the arms.

    ``place[a, v]`` is the joint of arm ``a`` that moves degree of freedom ``v``, or -1. Tools are
    ``sites``; they are damped relative to ``bases``, which are -1 where they stand still.
    """

    joints: Int[np.ndarray, " a"]
    qpos: Int[np.ndarray, "a n"]
    dofs: Int[np.ndarray, "a n"]
    place: Int[np.ndarray, "a v"]
    actuators: Int[np.ndarray, "a n"]
    grips: Int[np.ndarray, " g"]
    sites: Int[np.ndarray, " a"]
    bases: Int[np.ndarray, " a"]
    kp: float
    kd: float


@compiled
def _apply(physics: Physics, actuator: int, torque: Any) -> None:
    low, high = physics.ctrlrange[actuator, 0], physics.ctrlrange[actuator, 1]
    physics.ctrl[actuator] = min(max(torque, low), high)


@compiled
def _step(physics: Physics, grips: Int[np.ndarray, " g"], grip: Float[np.ndarray, " g"]) -> None:
    for g in range(len(grip)):
        physics.ctrl[grips[g]] = grip[g]
    step2(physics.model, physics.data)
    step1(physics.model, physics.data)


@compiled
def follow_joints(
    physics: Physics,
    wiring: Wiring,
    goals: Float[np.ndarray, "a n"],
    grip: Float[np.ndarray, " g"],
    substeps: int,
) -> None:
    """Run ``substeps`` of: torque towards joint angles, then one physics step.

    What follows from positions and velocities must be up to date before, and is so afterwards.

    Args:
        physics: The model and its data.
        wiring: The arms in it.
        goals: Joint angles.
        grip: Controls of the grippers' actuators.
        substeps: Number of physics steps.
    """
    widest = wiring.dofs.shape[1]
    mass, wanted = np.zeros((widest, widest)), np.zeros(widest)
    for _ in range(substeps):
        for a in range(len(wiring.joints)):
            n, dofs = wiring.joints[a], wiring.dofs[a]
            mass_block(
                physics.inertia,
                physics.inertia_address,
                physics.parent,
                dofs,
                wiring.place[a],
                n,
                mass,
            )
            for i in range(n):
                error = goals[a, i] - physics.qpos[wiring.qpos[a, i]]
                wanted[i] = wiring.kp * error - wiring.kd * physics.qvel[dofs[i]]
            for i in range(n):
                torque = 0.0
                for j in range(n):
                    torque += mass[i, j] * wanted[j]
                _apply(physics, wiring.actuators[a, i], torque + physics.bias[dofs[i]])
        _step(physics, wiring.grips, grip)


@compiled
def _jacobian(
    physics: Physics,
    site: int,
    dofs: Int[np.ndarray, " n"],
    n: int,
    whole: Float[np.ndarray, "2 3 v"],
    out: Float[np.ndarray, "6 n"],
) -> None:
    jac_site(physics.model, physics.data, whole[0].ctypes.data, whole[1].ctypes.data, site)
    for i in range(n):
        for k in range(3):
            out[k, i] = whole[0, k, dofs[i]]
            out[3 + k, i] = whole[1, k, dofs[i]]


@compiled
def _pose_error(
    position: Float[np.ndarray, "3"],
    axes: Float[np.ndarray, "9"],
    goal: Float[np.ndarray, "6"],
    desired: Float[np.ndarray, "3 3"],
    out: Float[np.ndarray, "6"],
) -> None:
    """Fill in the way to the goal: position, then half the sum of cross products of the axes."""
    for k in range(3):
        out[k] = goal[k] - position[k]
        out[3 + k] = 0.0
    for c in range(3):
        r0, r1, r2 = axes[c], axes[3 + c], axes[6 + c]
        d0, d1, d2 = desired[0, c], desired[1, c], desired[2, c]
        out[3] += 0.5 * (r1 * d2 - r2 * d1)
        out[4] += 0.5 * (r2 * d0 - r0 * d2)
        out[5] += 0.5 * (r0 * d1 - r1 * d0)


@compiled
def _decouple(mobility: Float[np.ndarray, "6 6"], wrench: Float[np.ndarray, "6"]) -> None:
    """Turn accelerations into a wrench, force and torque each by their own inertia."""
    block, root, part = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for first in range(0, 6, 3):
        for k in range(3):
            part[k] = wrench[first + k]
            for m in range(3):
                block[k, m] = mobility[first + k, first + m]
        factor(block, 3, root)
        solve(root, 3, part)
        for k in range(3):
            wrench[first + k] = part[k]


@compiled
def follow_poses(
    physics: Physics,
    wiring: Wiring,
    goals: Float[np.ndarray, "a 6"],
    grip: Float[np.ndarray, " g"],
    substeps: int,
    rest: Float[np.ndarray, "a n"],
) -> None:
    """Run ``substeps`` of: wrench towards tool poses, then one physics step.

    As ``follow_joints``, with position and rotation vector in the world as goals; ``rest`` are the
    joint angles that the motion which does not move the tool is drawn to.
    """
    widest, arms = wiring.dofs.shape[1], len(wiring.joints)
    mass, root = np.zeros((widest, widest)), np.zeros((widest, widest))
    whole, jac, half = (
        np.zeros((2, 3, len(physics.qvel))),
        np.zeros((6, widest)),
        np.zeros((6, widest)),
    )
    anchor, mobility, mobility_root = np.zeros((6, widest)), np.zeros((6, 6)), np.zeros((6, 6))
    error, wrench, seen = np.zeros(6), np.zeros(6), np.zeros(6)
    free, desired = np.zeros(widest), np.zeros((arms, 3, 3))
    null_damping = 2.0 * np.sqrt(NULL_STIFFNESS)
    for a in range(arms):
        rotation(goals[a, 3:6], desired[a])
    for _ in range(substeps):
        for a in range(arms):
            n, dofs, site = wiring.joints[a], wiring.dofs[a], wiring.sites[a]
            mass_block(
                physics.inertia,
                physics.inertia_address,
                physics.parent,
                dofs,
                wiring.place[a],
                n,
                mass,
            )
            factor(mass, n, root)
            _jacobian(physics, site, dofs, n, whole, jac)
            anchor[:] = 0.0
            if wiring.bases[a] >= 0:
                _jacobian(physics, wiring.bases[a], dofs, n, whole, anchor)
            # With M = L L^T, J M^-1 J^T is the product of L^-1 J^T with itself.
            half[:] = jac
            for k in range(6):
                solve_lower(root, n, half[k])
            for k in range(6):
                for m in range(6):
                    mobility[k, m] = 0.0
                    for i in range(n):
                        mobility[k, m] += half[k, i] * half[m, i]
            _pose_error(
                physics.site_xpos[site], physics.site_xmat[site], goals[a], desired[a], error
            )
            for i in range(n):
                free[i] = (
                    NULL_STIFFNESS * (rest[a, i] - physics.qpos[wiring.qpos[a, i]])
                    - null_damping * physics.qvel[dofs[i]]
                )
            for k in range(6):
                speed, seen[k] = 0.0, 0.0
                for i in range(n):
                    speed += (jac[k, i] - anchor[k, i]) * physics.qvel[dofs[i]]
                    seen[k] += jac[k, i] * free[i]
                wrench[k] = wiring.kp * error[k] - wiring.kd * speed
            _decouple(mobility, wrench)
            # What of the pull to rest would move the tool is taken from it:
            # M z - J^T (J M^-1 J^T)^-1 J z.
            factor(mobility, 6, mobility_root)
            solve(mobility_root, 6, seen)
            for i in range(n):
                torque = physics.bias[dofs[i]]
                for k in range(6):
                    torque += jac[k, i] * (wrench[k] - seen[k])
                for j in range(n):
                    torque += mass[i, j] * free[j]
                _apply(physics, wiring.actuators[a, i], torque)
        _step(physics, wiring.grips, grip)


def warm() -> None:
    """Compile both control laws, or load them from disk: at set-up rather than in a loop."""
    from sim.scene import Scene

    for control in ("joint_position", "osc_pose"):
        scene = Scene(task="lift", robots=("Panda", "Panda"), control=control, rate=20.0)
        scene.advance(scene.target)
