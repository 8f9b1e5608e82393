"""Experts of the pot scene: lift it with both arms, or slide it to the left.

What is done follows from the present state: hands that are off go up, over and down (a funnel
above each handle); hands at the handles close; two closed hands lift or slide. Lengths [m].
"""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Expert, Quality, Wish
from sim.experts.flaws import Alone, Astray, Bend, Flaw, Glimpse, Miss, Pause, Slip
from sim.tasks.hands import WIDEST
from sim.tasks.pot import LIFTED, SLID, Pot, pot

GRASP = np.array([0.0, 0.0, 0.003])
"""Of the grip site in the frame of the grasp: the pads lie 3 mm above it."""
HANDLE = np.array([0.0, 0.16, 0.06])
"""Middle of handle 0's bar in the frame of the pot [m]."""
HOVER = 0.07
ASKEW = 0.2
"""Tilt of a pot near the table from which it is let go of [rad]."""
CARRY = LIFTED + 0.04
SLIDE_LEAD = 0.04
UNWEIGHTED = 0.008
"""Wished height of a sliding pot [m]: the arms carry much of its weight, which still stands."""


class PotExpert(Expert):
    """Lifts or slides the pot, whichever the environment's goal says."""

    def _draw(self) -> list[Flaw]:
        self._still: tuple[Wish, Wish] | None = None
        self._closed = [False, False]
        return draw_flaws(self.quality, self.env.goal.name, self.random)

    def _wishes(self) -> tuple[Wish, Wish]:
        seen = pot(self.env)
        bend = self._bend(self._glimpse(seen))
        if bend.still:
            if self._still is None:
                self._still = self._stand(seen)
            return self._still[0].moved(bend.sway), self._still[1].moved(bend.sway)
        self._still = None
        goal = self.env.goal.name
        if bend.astray:
            goal = "slide" if goal == "lift" else "lift"
        if seen.tilt > ASKEW and seen.height < 0.04 and bend.alone is None:
            # A pot that was pulled askew is let go of, so that it stands again.
            bend.release = [True, True]
        ready = [self._ready(seen, side, bend) for side in (0, 1)]
        working = ready if bend.alone is None else [ready[bend.alone]]
        if all(working):
            self.subtask = 2
            move = self._lift if goal == "lift" else self._slide
            return self._each(seen, bend, ready, move(seen, alone=bend.alone is not None))
        near = all(self._distance(seen, side) < 0.02 or ready[side] for side in (0, 1))
        self.subtask = 1 if near else 0
        # A hand that holds on while the other comes back sets a lifted pot down first.
        down = np.array([0.0, 0.0, -min(max(seen.height, 0.0), 0.06)])
        return self._each(seen, bend, ready, down)

    def _each(
        self, seen: Pot, bend: Bend, ready: list[bool], move: Float[np.ndarray, "3"]
    ) -> tuple[Wish, Wish]:
        left, right = (
            self._carry(seen, side, move) if ready[side] else self._approach(seen, side, bend)
            for side in (0, 1)
        )
        return left, right

    def _glimpse(self, seen: Pot) -> Glimpse:
        return Glimpse(
            distance=(self._distance(seen, 0), self._distance(seen, 1)),
            gap=(seen.hands[0].gap, seen.hands[1].gap),
            above=(
                float(seen.hands[0].position[2] - seen.handles[0][2]),
                float(seen.hands[1].position[2] - seen.handles[1][2]),
            ),
            held=(seen.held(0), seen.held(1)),
            progress=self._progress(seen),
        )

    def _progress(self, seen: Pot) -> float:
        if self.env.goal.name == "lift":
            return seen.height / LIFTED
        return float((0.0 - seen.position[1]) / (0.0 - SLID))

    def _point(self, seen: Pot, side: int) -> Float[np.ndarray, "3"]:
        return seen.handles[side] + seen.grasp(side) @ (GRASP + self._offsets[side])

    def _distance(self, seen: Pot, side: int) -> float:
        return float(np.linalg.norm(self._point(seen, side) - seen.hands[side].position))

    def _ready(self, seen: Pot, side: int, bend: Bend) -> bool:
        """Return whether this hand holds the handle and may move on."""
        return seen.held(side) and not bend.release[side]

    def _approach(self, seen: Pot, side: int, bend: Bend) -> Wish:
        """Return the wish that brings a hand over its handle, down to it, and closes it."""
        hand, rotation = seen.hands[side], seen.grasp(side)
        point = self._point(seen, side)
        if bend.release[side] and seen.held(side):
            # Open first: closed fingers would take the handle along.
            return Wish(position=hand.position, rotation=hand.rotation, opening=1.0)
        x, y, z = (point - hand.position) @ rotation
        turn = float(np.linalg.norm(rotation[:, 0] - hand.rotation[:, 0]))
        aside = float(np.hypot(x, y)) + 0.06 * max(0.0, turn - 0.25)
        # Fingers that have begun to close go on unless they are far off.
        slack = 2.0 if hand.gap < 0.9 * WIDEST and self._closed[side] else 1.0
        arrived = aside < 0.012 * slack and abs(z) < 0.010 * slack
        self._closed[side] = arrived and not bend.release[side]
        rise = float(np.clip(3.0 * (aside - 0.012), 0.0, HOVER))
        return Wish(
            position=point + np.array([0.0, 0.0, rise]),
            rotation=rotation,
            opening=0.0 if self._closed[side] else 1.0,
        )

    def _carry(self, seen: Pot, side: int, move: Float[np.ndarray, "3"]) -> Wish:
        """Return the wish that moves a held handle along with an upright pot."""
        level = np.stack(
            [
                np.cross(seen.grasp(0, level=True)[:, 0], [0.0, 0.0, 1.0]),
                seen.grasp(0, level=True)[:, 0],
                np.array([0.0, 0.0, 1.0]),
            ],
            axis=1,
        )
        handle = seen.position + level @ (HANDLE * np.array([1.0, 1.0 - 2.0 * side, 1.0]))
        hold = seen.hands[side].position - seen.handles[side]
        return Wish(
            position=handle + hold + move,
            rotation=seen.grasp(side, level=True),
            opening=0.0,
            lead=0.08,
        )

    def _lift(self, seen: Pot, *, alone: bool) -> Float[np.ndarray, "3"]:
        # One hand alone must not reach the height that counts, however the pot hangs.
        top = 0.07 if alone else CARRY
        return np.array([0.0, 0.0, np.clip(top - seen.height, -0.06, 0.06)])

    def _slide(self, seen: Pot, *, alone: bool) -> Float[np.ndarray, "3"]:
        way = np.clip(SLID - 0.02 - seen.position[1], -SLIDE_LEAD, SLIDE_LEAD)
        return np.array([0.0, way, np.clip(UNWEIGHTED - seen.height, -0.06, 0.01)])

    def _stand(self, seen: Pot) -> tuple[Wish, Wish]:
        left, right = (
            Wish(
                position=seen.hands[side].position,
                rotation=seen.hands[side].rotation,
                opening=0.0 if seen.held(side) or self._closed[side] else 1.0,
            )
            for side in (0, 1)
        )
        return left, right


def draw_flaws(quality: Quality, goal: str, random: np.random.Generator) -> list[Flaw]:
    """Return what goes wrong in one episode of this quality."""

    def beside() -> Float[np.ndarray, "3"]:
        """Return an offset of 2.2 to 4 cm, upward and along the bar: the fingers close on air."""
        up = random.uniform(0.022, 0.036)
        return np.array([random.uniform(-0.01, 0.01), random.uniform(-0.02, 0.02), -up])

    def misses(again: int) -> list[Flaw]:
        both = random.random() < 0.35
        sides = [0, 1] if both else [int(random.integers(2))]
        return [Miss(beside, side, again=again) for side in sides]

    if quality == "hesitating":
        return [Pause(random) for _ in range(int(random.integers(1, 3)))]
    if quality == "retrying":
        if random.random() < 0.25:
            return [Slip(float(random.uniform(0.1, 0.3)), (True, True))]
        return misses(0)
    if quality == "failing":
        kind = random.random()
        if kind < 0.4:
            return misses(1000)
        if kind < 0.7:
            # Let go early enough: a pot that slides fast goes on by itself.
            at = float(random.uniform(0.2, 0.7) if goal == "lift" else random.uniform(0.05, 0.35))
            keeps_off = bool(random.random() < 0.5)
            return [Slip(at, (True, True), again=1000, away=goal == "slide" or keeps_off)]
        if kind < 0.85 and goal == "lift":
            return [Alone(int(random.integers(2)))]
        return [Astray()]
    return []
