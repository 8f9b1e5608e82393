"""Where a hand is and what lies between its fingers, read from the physics.

The grip site's z axis points out of the hand, the fingers open along its x axis. Lengths [m].
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from sim.tasks.goal import Scene

WIDEST = 0.08
"""Gap between the pads of an open Panda hand [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """One hand at one moment.

    Attributes:
        position: Of the grip site in the world [m].
        rotation: ``world_R_hand``.
        gap: Distance between the finger pads [m]; 0 if the arm has no fingers.
    """

    position: Float[np.ndarray, "3"]
    rotation: Float[np.ndarray, "3 3"]
    gap: float

    def to_hand(self, point: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3"]:
        """Return a point of the world in the frame of the hand [m]."""
        return (point - self.position) @ self.rotation


@lru_cache(maxsize=16)
def _addresses(model: Any, side: int) -> tuple[int, tuple[int, ...]]:
    site = model.site(f"gripper{side}_right_grip_site").id
    names = {model.joint(i).name for i in range(model.njnt)}
    fingers = [f"gripper{side}_right_finger_joint{i}" for i in (1, 2)]
    return site, tuple(int(model.joint(f).qposadr[0]) for f in fingers if f in names)


def hand(env: Scene, side: int) -> Hand:
    """Return the hand of the left (0) or right (1) arm."""
    site, fingers = _addresses(env.model, side)
    data = env.data
    gap = abs(float(data.qpos[fingers[0]] - data.qpos[fingers[1]])) if fingers else 0.0
    return Hand(
        position=data.site_xpos[site].copy(),
        rotation=data.site_xmat[site].reshape(3, 3).copy(),
        gap=gap,
    )


def fall(value: float, scale: float) -> float:
    """Return 1 at 0, falling smoothly to 0 far beyond ``scale``."""
    return float(1.0 / (1.0 + (value / scale) ** 2))


def angle_between(a: Float[np.ndarray, "3"], b: Float[np.ndarray, "3"]) -> float:
    """Return the angle between two unit vectors [rad]."""
    return float(np.arccos(np.clip(a @ b, -1.0, 1.0)))
