"""A moment of an environment, to be put back: physics, controllers, grippers, counters."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that the rest of an episode depends on. It holds copies only.

    Attributes:
        physics: MuJoCo's state, time included.
        target: Target in force, in the units of the spec.
        ramp: How far each gripper's command has come, in [-1, 1]; 1 is open.
        rest: Joint angles to which the free motion of each arm is drawn [rad].
        steps: Control steps since the reset.
        held: For how many of the last steps the goal has held without a break.
    """

    physics: Float[np.ndarray, " p"]
    target: Float[np.ndarray, " d"]
    ramp: Float[np.ndarray, "2"]
    rest: Float[np.ndarray, "2 n"]
    steps: int
    held: int
