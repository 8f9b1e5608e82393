"""The goal in the scene with a peg on the left arm and a plate with a hole on the right.

robosuite counts a peg that is near the plate as inserted (5 cm beside the hole, tip not yet in);
here its tip must have passed through. Lengths [m], angles [rad].
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sim.tasks.goal import Scene
from sim.tasks.hands import Hand, fall, hand

HOLE = np.array([0.11, 0.0, 0.0])
"""Middle of the hole in the frame of the plate [m]; the hole is 0.10 wide, the peg 0.046."""
THROUGH = 0.03
"""How far the tip must have passed the plate's middle plane [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PegAndHole:
    """Peg, hole and hands at one moment.

    Attributes:
        peg: Middle of the peg [m].
        axis: Unit vector along the peg, toward its tip.
        half: Half of its length [m].
        hole: Middle of the hole [m].
        normal: Unit vector out of the hole, toward the side that the peg comes from.
        hands: Left (peg) and right (plate).
    """

    peg: Float[np.ndarray, "3"]
    axis: Float[np.ndarray, "3"]
    half: float
    hole: Float[np.ndarray, "3"]
    normal: Float[np.ndarray, "3"]
    hands: tuple[Hand, Hand]

    @property
    def along(self) -> float:
        """How far the tip has passed through the hole's plane [m]; negative before it."""
        return float((self.peg + self.half * self.axis - self.hole) @ -self.normal)

    @property
    def aside(self) -> float:
        """Distance of the hole's middle from the peg's line [m]."""
        return float(np.linalg.norm(np.cross(self.hole - self.peg, self.axis)))

    @property
    def aligned(self) -> float:
        """Cosine between the peg and the way into the hole."""
        return float(-self.axis @ self.normal)


def peg_and_hole(env: Scene) -> PegAndHole:
    """Return what the physics says about peg and hole."""
    data, suite = env.data, env.suite
    plate = data.xmat[suite.hole_body_id].reshape(3, 3)
    return PegAndHole(
        peg=data.xpos[suite.peg_body_id].copy(),
        axis=data.xmat[suite.peg_body_id].reshape(3, 3)[:, 2].copy(),
        half=float(suite.peg_length),
        hole=data.xpos[suite.hole_body_id] + plate @ HOLE,
        normal=plate[:, 2].copy(),
        hands=(hand(env, 0), hand(env, 1)),
    )


class Insert:
    """Put the peg through the hole."""

    task = "peg"
    name = "peg"
    time_limit = 120
    instruction = "insert the peg into the hole"
    instructions = (
        instruction,
        "put the peg through the hole in the plate",
        "push the green peg into the plate's hole",
        "bring the plate and the peg together until the peg is in the hole",
    )
    subtasks = ("turn peg and hole to each other", "line up the peg", "insert the peg")
    environment_names = tuple(
        f"{entry}_{axis}"
        for entry in ("peg", "peg_axis", "hole", "hole_normal", "peg_to_hole")
        for axis in "xyz"
    )

    def success(self, env: Scene) -> bool:
        """Return whether the tip is 3 cm through the hole, within 18 degrees of straight."""
        seen = peg_and_hole(env)
        inside = seen.aside < 0.05 and THROUGH < seen.along < seen.half + 0.12
        return bool(inside and seen.aligned > 0.95)

    def potential(self, env: Scene) -> float:
        """Return a quarter each for turning, for nearness, for lining up and for insertion."""
        seen = peg_and_hole(env)
        turned = float(np.clip(0.5 + 0.5 * seen.aligned, 0.0, 1.0))
        tip = seen.peg + seen.half * seen.axis
        near = fall(float(np.linalg.norm(tip - seen.hole)) - min(max(seen.along, 0.0), 0.05), 0.25)
        lined = fall(seen.aside, 0.05) * max(0.0, seen.aligned)
        # A tip beside the hole has gone nowhere, however far it is past the plane.
        deep = float(np.clip((seen.along + 0.1) / (THROUGH + 0.11), 0.0, 1.0))
        return 0.25 * (turned + near + lined + deep * lined)

    def environment_state(self, env: Scene) -> Float[np.ndarray, " e"]:
        """Return position and axis of peg and hole, and the hole seen by the left hand."""
        seen = peg_and_hole(env)
        parts = [seen.peg, seen.axis, seen.hole, seen.normal, seen.hands[0].to_hand(seen.hole)]
        return np.concatenate(parts).astype(np.float32)
