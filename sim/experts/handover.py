"""Expert of the hammer: the left hand brings it to the middle, the right one takes its far end.

Whoever holds the hammer says what is to be done: nobody, the left hand, both, or the right one.
Lengths [m].
"""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Expert, Wish
from sim.experts.flaws import Bend, Flaw, Glimpse, Miss, Pause, Slip
from sim.tasks.handover import MEETING, Hammer, hammer

APART = 0.065
"""From the middle of the handle to each hand's grasp [m]."""
DOWN = np.array([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
"""``world_R_hand`` of the left hand when it hands over."""
SLANT = np.sqrt(0.5)
TAKING = np.array([[1.0, 0.0, 0.0], [0.0, -SLANT, -SLANT], [0.0, SLANT, -SLANT]])
"""``world_R_hand`` of the right hand when it takes: its palm stays clear of the left one."""
HOVER = 0.08
CLEAR = 0.10
"""Height above the table from which the hammer may travel sideways [m]."""


class HandoverExpert(Expert):
    """Picks up the hammer with the left arm and gives it to the right one."""

    def _draw(self) -> list[Flaw]:
        self._still: tuple[Wish, Wish] | None = None
        self._closed = [False, False]
        random = self.random

        side = int(random.integers(2))
        # The right hand comes slanting: as far off the handle, it is farther along its approach.
        far = 0.032 if side == 0 else 0.050

        def beside() -> Float[np.ndarray, "3"]:
            """Return an offset away from the handle: fingers close on air."""
            return np.array([random.uniform(-0.008, 0.008), 0.0, -random.uniform(far, far + 0.01)])

        if self.quality == "hesitating":
            return [Pause(random) for _ in range(int(random.integers(1, 3)))]
        if self.quality == "retrying":
            return [Miss(beside, side)]
        if self.quality == "failing":
            if random.random() < 0.5:
                return [Miss(beside, side, again=1000)]
            return [Slip(float(random.uniform(0.5, 0.9)), (True, False), away=True)]
        return []

    def _wishes(self) -> tuple[Wish, Wish]:
        seen = hammer(self.env)
        far = self._far(seen)
        points = (seen.position - APART * far, seen.position + APART * far)
        rotations = (self._over(seen, far), TAKING)
        bend = self._bend(self._glimpse(seen, points, rotations))
        if bend.still:
            if self._still is None:
                left, right = (
                    Wish(position=h.position, rotation=h.rotation, opening=0.0 if c else 1.0)
                    for h, c in zip(seen.hands, self._closed, strict=True)
                )
                self._still = (left, right)
            return self._still[0].moved(bend.sway), self._still[1].moved(bend.sway)
        self._still = None
        held = [seen.held(side) and not bend.release[side] for side in (0, 1)]
        right_waits = Wish(
            position=MEETING + np.array([0.0, APART, 0.0]) - 0.15 * TAKING[:, 2],
            rotation=TAKING,
            opening=1.0,
        )
        if held[1]:
            self.subtask = 3
            self._closed = [False, True]
            return self._let_go(seen, bend), self._keep(seen, 1)
        if not held[0]:
            self.subtask, self._closed[1] = 0, False
            return self._grasp(seen, 0, points[0], rotations[0], bend), right_waits
        self._closed[0] = True
        carry = self._carry(seen)
        there = float(
            np.linalg.norm(MEETING - np.array([0.0, APART, 0.0]) - seen.hands[0].position)
        )
        if there > 0.04 or float(np.linalg.norm(DOWN[:, 0] - seen.hands[0].rotation[:, 0])) > 0.2:
            self.subtask, self._closed[1] = 1, False
            return carry, right_waits
        self.subtask = 2
        return carry, self._grasp(seen, 1, points[1], rotations[1], bend)

    def _far(self, seen: Hammer) -> Float[np.ndarray, "3"]:
        """Return the direction along the handle toward the end that the right hand takes."""
        if seen.held(0) or seen.held(1):
            towards = seen.hands[0].rotation[:, 1] if seen.held(0) else np.array([0.0, 1.0, 0.0])
        else:
            # The smaller turn of the left wrist: its y axis starts along the world's.
            towards = np.array([0.0, 1.0, 0.0])
        return seen.axis if seen.axis @ towards >= 0.0 else -seen.axis

    def _over(self, seen: Hammer, far: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3 3"]:
        """Return ``world_R_hand`` of the left hand above the handle, fingers across it."""
        y = np.array([far[0], far[1], 0.0])
        y = y / max(float(np.linalg.norm(y)), 1e-6)
        down = np.array([0.0, 0.0, -1.0])
        return np.stack([np.cross(y, down), y, down], axis=1)

    def _glimpse(
        self,
        seen: Hammer,
        points: tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]],
        rotations: tuple[Float[np.ndarray, "3 3"], Float[np.ndarray, "3 3"]],
    ) -> Glimpse:
        off = [(p - h.position) @ r for p, h, r in zip(points, seen.hands, rotations, strict=True)]
        left, right = (
            float(np.linalg.norm(o + offset)) for o, offset in zip(off, self._offsets, strict=True)
        )
        way = float(np.linalg.norm(MEETING - seen.position))
        return Glimpse(
            distance=(left, right),
            gap=(seen.hands[0].gap, seen.hands[1].gap),
            above=(float(off[0][2]), float(off[1][2])),
            held=(seen.held(0), True),
            progress=float(np.clip(1.0 - way / 0.5, 0.0, 1.0)),
        )

    def _grasp(
        self,
        seen: Hammer,
        side: int,
        point: Float[np.ndarray, "3"],
        rotation: Float[np.ndarray, "3 3"],
        bend: Bend,
    ) -> Wish:
        """Return the wish that brings a hand in front of its grasp, onto it, and closes it."""
        hand = seen.hands[side]
        point = point + rotation @ bend.offsets[side]
        x, y, z = (point - hand.position) @ rotation
        turn = float(np.linalg.norm(rotation - hand.rotation)) / np.sqrt(2.0)
        aside = float(np.hypot(x, y)) + 0.06 * max(0.0, turn - 0.25)
        slack = 2.0 if self._closed[side] else 1.0
        arrived = aside < 0.012 * slack and abs(z) < 0.010 * slack
        self._closed[side] = arrived and not bend.release[side]
        stand_off = float(np.clip(3.0 * (aside - 0.012), 0.0, HOVER))
        return Wish(
            position=point - stand_off * rotation[:, 2],
            rotation=rotation,
            opening=0.0 if self._closed[side] else 1.0,
        )

    def _carry(self, seen: Hammer) -> Wish:
        goal = MEETING - np.array([0.0, APART, 0.0])
        if seen.height < CLEAR * 0.5:
            goal = np.array([*seen.hands[0].position[:2], goal[2]])
        return Wish(position=goal, rotation=DOWN, opening=0.0, lead=0.08)

    def _let_go(self, seen: Hammer, bend: Bend) -> Wish:
        hand = seen.hands[0]
        near = float(np.linalg.norm(seen.nearest(0))) < 0.05
        clear = hand.gap > seen.thick + 0.02 or not near
        away = hand.position + (np.array([0.0, -0.03, 0.06]) if clear else 0.0)
        away[2] = min(away[2], MEETING[2] + 0.15)
        return Wish(position=away, rotation=hand.rotation, opening=1.0)

    def _keep(self, seen: Hammer, side: int) -> Wish:
        hand = seen.hands[side]
        height = max(float(hand.position[2]), MEETING[2])
        return Wish(
            position=np.array([*hand.position[:2], height]), rotation=hand.rotation, opening=0.0
        )
