"""Two goals in the scene with a pot: lift it with both arms, or slide it to the left.

The table's frame is the world's: z up, the left arm stands at negative y, so that "left" (in the
picture of the camera ``agentview``, too) is negative y. Lengths [m].
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sim.tasks.goal import Scene
from sim.tasks.hands import WIDEST, Hand, angle_between, fall, hand

BAR = 0.02
"""Thickness of a handle [m]."""
LIFTED = 0.10
"""Height of the pot's bottom above the table that counts as lifted [m]."""
SLID = -0.11
"""The pot's y from which it counts as slid: at least 0.08 m from any start (|y| <= 0.03)."""
STEEPEST = np.pi / 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Pot:
    """The pot and both hands at one moment.

    Attributes:
        position: Centre of the pot [m].
        rotation: ``world_R_pot``; handle 0 lies along its y axis.
        height: Of the pot's bottom above the table, if it stood upright [m].
        tilt: Angle between the pot's axis and the vertical [rad].
        handles: Middle of each handle's bar [m].
        hands: Left and right.
    """

    position: Float[np.ndarray, "3"]
    rotation: Float[np.ndarray, "3 3"]
    height: float
    tilt: float
    handles: tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]
    hands: tuple[Hand, Hand]

    def grasp(self, side: int, *, level: bool = False) -> Float[np.ndarray, "3 3"]:
        """Return ``world_R_hand`` of a good grasp: one finger inside, one outside of the bar.

        Args:
            side: 0 for the left hand, 1 for the right.
            level: As if the pot stood upright.
        """
        up = np.array([0.0, 0.0, 1.0]) if level else self.rotation[:, 2]
        outward = self.rotation[:, 1] * (1.0 if side == 0 else -1.0)
        outward = outward - up * (outward @ up)
        outward = outward / np.linalg.norm(outward)
        return np.stack([outward, np.cross(-up, outward), -up], axis=1)

    def between(self, side: int) -> float:
        """Return how well the bar lies between the fingers, 0 to 1."""
        x, y, z = self.hands[side].to_hand(self.handles[side])
        open_half = max(self.hands[side].gap / 2, BAR / 2)
        across = max(0.0, abs(x) - max(open_half - BAR / 2, 0.0))
        return fall(across, 0.006) * fall(max(0.0, abs(z) - 0.006), 0.008) * fall(y, 0.06)

    def closed(self, side: int) -> float:
        """Return how far the fingers are closed, 1 at the bar's thickness."""
        return float(np.clip((WIDEST - self.hands[side].gap) / (WIDEST - BAR - 0.002), 0.0, 1.0))

    def held(self, side: int) -> bool:
        """Return whether the fingers press on the bar."""
        x, y, z = self.hands[side].to_hand(self.handles[side])
        near = abs(x) < 0.025 and abs(y) < 0.05 and abs(z) < 0.022
        return bool(near and BAR - 0.006 < self.hands[side].gap < BAR + 0.014)

    def reach(self, side: int) -> float:
        """Return how near a hand is to its grasp, 0 to 1."""
        distance = float(np.linalg.norm(self.handles[side] - self.hands[side].position))
        want, have = self.grasp(side), self.hands[side].rotation
        off = angle_between(want[:, 0], have[:, 0]) + angle_between(want[:, 2], have[:, 2])
        near = 0.5 * fall(distance, 0.08) + 0.2 * fall(distance, 0.02)
        return near + 0.3 * float(np.clip(1.0 - off / np.pi, 0.0, 1.0))

    def grip(self, side: int) -> float:
        """Return how firmly the bar is held, 0 to 1; closing beside the bar earns nothing."""
        between = self.between(side)
        return between * (0.3 + 0.7 * self.closed(side)) * 0.9 + 0.1 * (
            between + (1.0 - between) * (1.0 - self.closed(side))
        )


def pot(env: Scene) -> Pot:
    """Return what the physics says about the pot and the hands."""
    data, suite = env.data, env.suite
    position = data.site_xpos[suite.pot_center_id].copy()
    rotation = data.xmat[suite.pot_body_id].reshape(3, 3).copy()
    bars: list[Float[np.ndarray, "3"]] = []
    for side, site in enumerate((suite.handle0_site_id, suite.handle1_site_id)):
        # The site lies 5 mm inside of the bar's middle.
        inward = rotation[:, 1] * (0.005 if side == 0 else -0.005)
        bars.append(data.site_xpos[site] + inward)
    return Pot(
        position=position,
        rotation=rotation,
        height=float(position[2] - suite.pot.top_offset[2] - data.site_xpos[suite.table_top_id][2]),
        tilt=float(np.arccos(np.clip(rotation[2, 2], -1.0, 1.0))),
        handles=(bars[0], bars[1]),
        hands=(hand(env, 0), hand(env, 1)),
    )


class PotGoal:
    """What both goals of the scene share."""

    task = "lift"
    time_limit = 104
    instruction: str

    environment_names = tuple(
        f"{entry}_{axis}"
        for entry in ("pot", "pot_side", "pot_up", "left_hand_handle", "right_hand_handle")
        for axis in "xyz"
    )

    def environment_state(self, env: Scene) -> Float[np.ndarray, " e"]:
        """Return position, y axis and z axis of the pot, and both handles seen by the hands."""
        seen = pot(env)
        parts = [seen.position, seen.rotation[:, 1], seen.rotation[:, 2]]
        parts += [seen.hands[side].to_hand(seen.handles[side]) for side in (0, 1)]
        return np.concatenate(parts).astype(np.float32)

    def _approach(self, seen: Pot) -> float:
        # The worse hand counts more: a pot is not lifted by one.
        reach = [seen.reach(side) for side in (0, 1)]
        grip = [seen.grip(side) for side in (0, 1)]
        together = [0.5 * (np.mean(x) + min(x)) for x in (reach, grip)]
        return float(0.6 * together[0] + 0.4 * together[1])


class Lift(PotGoal):
    """Lift the pot with both arms, upright."""

    name = "lift"
    instruction = "lift the pot with both arms"
    instructions = (
        instruction,
        "pick up the pot by its two handles",
        "raise the pot off the table with both hands",
        "take the pot by the handles and lift it up",
    )
    subtasks = ("reach the handles", "grasp the handles", "lift the pot")

    def success(self, env: Scene) -> bool:
        """Return whether the pot is more than 0.10 m above the table, tilted less than 30 deg."""
        seen = pot(env)
        return seen.height > LIFTED and seen.tilt < STEEPEST

    def potential(self, env: Scene) -> float:
        """Return half for hands at the handles, half for height; tilting the pot costs."""
        seen = pot(env)
        height = float(np.clip(seen.height / (LIFTED + 0.01), 0.0, 1.0))
        upright = fall(max(0.0, seen.tilt - 0.05), 0.5)
        return upright * (0.5 * self._approach(seen) + 0.5 * height)


class Slide(PotGoal):
    """Slide the pot to the left on the table."""

    name = "slide"
    instruction = "slide the pot to the left"
    instructions = (
        instruction,
        "move the pot to the left side of the table without lifting it",
        "push the pot over to the left arm",
        "drag the pot left across the table",
    )
    subtasks = ("reach the handles", "grasp the handles", "slide the pot")

    def success(self, env: Scene) -> bool:
        """Return whether the pot stands upright on the left part of the table."""
        seen = pot(env)
        return bool(seen.position[1] < SLID and abs(seen.height) < 0.02 and seen.tilt < 0.26)

    def potential(self, env: Scene) -> float:
        """Return 0.4 for hands at the handles, 0.6 for the way; lifting and tilting cost."""
        seen = pot(env)
        way = float(np.clip((0.05 - seen.position[1]) / (0.05 - SLID + 0.005), 0.0, 1.0))
        upright = fall(max(0.0, seen.tilt - 0.05), 0.3)
        low = fall(max(0.0, seen.height - 0.01), 0.04)
        return upright * low * (0.4 * self._approach(seen) + 0.6 * way)
