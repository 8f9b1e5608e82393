"""The goal in the scene with a hammer: the left arm picks it up and hands it to the right one.

Lengths [m], angles [rad].
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sim.tasks.goal import Scene
from sim.tasks.hands import WIDEST, Hand, fall, hand

LIFTED = 0.10
"""Height of the hammer's lowest end above the table that counts as lifted [m]."""
MEETING = np.array([0.0, -0.065, 1.10])
"""Where the hammer's middle is handed over [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hammer:
    """The hammer and both hands at one moment.

    Attributes:
        position: Middle of the handle [m].
        axis: Unit vector along the handle, toward the head.
        half: Half of the handle's length [m].
        thick: Thickness of the handle [m].
        height: Of its lowest end above the table [m].
        hands: Left and right.
    """

    position: Float[np.ndarray, "3"]
    axis: Float[np.ndarray, "3"]
    half: float
    thick: float
    height: float
    hands: tuple[Hand, Hand]

    def nearest(self, side: int) -> Float[np.ndarray, "3"]:
        """Return the point of the handle's middle line nearest to a hand, in its frame [m]."""
        to_hand = self.hands[side].position - self.position
        along = float(np.clip(to_hand @ self.axis, -self.half, self.half))
        return self.hands[side].to_hand(self.position + along * self.axis)

    def held(self, side: int) -> bool:
        """Return whether the fingers press on the handle."""
        point, gap = self.nearest(side), self.hands[side].gap
        near = abs(point[0]) < 0.02 and float(np.linalg.norm(point)) < 0.03
        return bool(near and self.thick - 0.012 < gap < self.thick + 0.010)

    def grip(self, side: int) -> float:
        """Return how firmly a hand holds the handle, 0 to 1."""
        between = fall(max(0.0, float(np.linalg.norm(self.nearest(side))) - 0.008), 0.012)
        open_room = WIDEST - self.thick - 0.004
        closed = float(np.clip((WIDEST - self.hands[side].gap) / open_room, 0.0, 1.0))
        return between * (0.2 + 0.8 * closed)


def hammer(env: Scene) -> Hammer:
    """Return what the physics says about hammer and hands."""
    data, suite = env.data, env.suite
    tool = suite.hammer
    position = data.geom_xpos[suite.hammer_handle_geom_id].copy()
    axis = data.xmat[suite.hammer_body_id].reshape(3, 3)[:, 2].copy()
    end = (tool.handle_length / 2 + 2 * tool.head_halfsize) * abs(float(axis[2]))
    table = float(data.site_xpos[suite.table_top_id][2])
    return Hammer(
        position=position,
        axis=axis,
        half=float(tool.handle_length / 2),
        thick=float(2 * tool.handle_radius),
        height=float(position[2] - tool.handle_radius - end - table),
        hands=(hand(env, 0), hand(env, 1)),
    )


class Handover:
    """Hand the hammer from the left arm to the right one."""

    task = "handover"
    name = "handover"
    time_limit = 180
    instruction = "hand the hammer over to the right arm"
    instructions = (
        instruction,
        "pick up the hammer with the left arm and give it to the right arm",
        "pass the hammer from the left hand to the right hand",
        "let the right arm take the hammer from the left arm",
    )
    subtasks = (
        "grasp the hammer with the left hand",
        "carry the hammer to the middle",
        "take the hammer with the right hand",
        "let go with the left hand",
    )
    environment_names = tuple(
        f"{entry}_{axis}"
        for entry in ("hammer", "hammer_axis", "left_hand_hammer", "right_hand_hammer")
        for axis in "xyz"
    )

    def success(self, env: Scene) -> bool:
        """Return whether only the right hand holds the handle, 0.10 m above the table."""
        seen = hammer(env)
        return seen.held(1) and not self._touched(env, seen) and seen.height > LIFTED

    def potential(self, env: Scene) -> float:
        """Return how much is done of grasping, carrying, taking over and letting go."""
        seen = hammer(env)
        grips = [seen.grip(side) for side in (0, 1)]
        reach = [fall(float(np.linalg.norm(seen.nearest(side))), 0.15) for side in (0, 1)]
        # What the left hand did is not undone when the right one has taken over.
        first = [max(reach[0], grips[1]), max(grips)]
        way = float(np.linalg.norm(MEETING - seen.position))
        carried = fall(way, 0.25) * float(np.clip(seen.height / LIFTED, 0.0, 1.0))
        freed = float(np.clip((seen.hands[0].gap - seen.thick) / 0.02, 0.0, 1.0))
        freed = max(freed, 1.0 - reach[0])
        done = 0.15 * first[0] + 0.15 * first[1] + 0.25 * carried
        return float(done + carried * (0.15 * reach[1] + 0.15 * grips[1] + 0.15 * grips[1] * freed))

    def environment_state(self, env: Scene) -> Float[np.ndarray, " e"]:
        """Return position and axis of the hammer, and its handle seen by both hands."""
        seen = hammer(env)
        parts = [seen.position, seen.axis, seen.nearest(0), seen.nearest(1)]
        return np.concatenate(parts).astype(np.float32)

    def _touched(self, env: Scene, seen: Hammer) -> bool:
        """Return whether the left hand still holds any part of the hammer."""
        return bool(env.suite._check_grasp(env.suite.robots[0].gripper, env.suite.hammer))
