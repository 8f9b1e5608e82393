"""MuJoCo's state as plain numbers: copied, put back, hashed.

Axes: ``p`` numbers that decide how the physics goes on (time, positions, velocities, warm start,
controls).
"""

import hashlib

import mujoco
import numpy as np
from jaxtyping import Float

from robot.errors import InfrastructureError

STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value


def physics_state(model: mujoco.MjModel, data: mujoco.MjData) -> Float[np.ndarray, " p"]:
    """Return a copy of everything that the next step depends on."""
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state


def restore_physics(
    model: mujoco.MjModel, data: mujoco.MjData, state: Float[np.ndarray, " p"]
) -> None:
    """Put a state back and derive poses, contacts and the like from it.

    Raises:
        ValueError: If the state is that of another model.
    """
    needed = mujoco.mj_stateSize(model, STATE)
    if state.shape != (needed,):
        raise ValueError(
            f"a state of shape {state.shape} does not fit a model that needs ({needed},); "
            "restore it into an environment of the same task and robots"
        )
    mujoco.mj_setState(model, data, state, STATE)
    mujoco.mj_step1(model, data)


def state_hash(model: mujoco.MjModel, data: mujoco.MjData) -> str:
    """Return the sha256 of the physics state, as hex."""
    return hashlib.sha256(physics_state(model, data).tobytes()).hexdigest()


def check_physics(data: mujoco.MjData) -> None:
    """Raise if MuJoCo gave up on a state and silently started over from its default.

    Raises:
        InfrastructureError: If positions, velocities or accelerations became too large.
    """
    numbers = data.warning.number
    kinds = mujoco.mjtWarning
    bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
    if any(numbers[k.value] for k in bad):
        raise InfrastructureError(
            f"the physics diverged at {data.time:.3f} s (not a number, or too large); "
            "reset the environment, and look at the targets of the last steps"
        )
