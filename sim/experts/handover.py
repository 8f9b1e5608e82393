"""Expert of the hammer: the left hand brings it to the middle, the right one takes its far end.

Whoever holds the hammer says what is to be done: nobody, the left hand, both, or the right one.
Lengths [m].
"""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Expert, Wish
from sim.experts.flaws import Bend, Flaw, Glimpse, Miss, Pause, Slip
from sim.experts.grasp import across, approach, far_end, stand
from sim.tasks.handover import MEETING, Hammer, hammer

APART = 0.065
"""From the middle of the handle to each hand's grasp [m]."""
DOWN = np.array([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
"""``world_R_hand`` of the left hand when it hands over."""
SLANT = np.sqrt(0.5)
TAKING = np.array([[1.0, 0.0, 0.0], [0.0, -SLANT, -SLANT], [0.0, SLANT, -SLANT]])
"""``world_R_hand`` of the right hand when it takes: its palm stays clear of the left one."""
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
        far = far_end(seen)
        points = (seen.position - APART * far, seen.position + APART * far)
        rotations = (across(far), TAKING)
        bend = self._bend(self._glimpse(seen, points, rotations))
        if bend.still:
            if self._still is None:
                left, right = (
                    stand(h, closed=c) for h, c in zip(seen.hands, self._closed, strict=True)
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
        wish = approach(
            seen.hands[side],
            point + rotation @ bend.offsets[side],
            rotation,
            closed=self._closed[side],
            release=bend.release[side],
        )
        self._closed[side] = wish.opening == 0.0
        return wish

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
