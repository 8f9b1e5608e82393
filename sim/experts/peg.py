"""Expert of the peg: the right arm holds the plate slanting, the left one comes from above.

The peg follows the plate as it is: first far out on the hole's axis, then in once it is lined up.
Lengths [m].
"""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Expert, Wish
from sim.experts.flaws import Flaw, Glimpse, Jam, Pause
from sim.tasks.peg import PegAndHole, peg_and_hole

MEETING = np.array([0.0, 0.02, 1.02])
"""Where the hole is held [m]."""
INTO = np.array([0.0, 1.0, -1.0]) / np.sqrt(2.0)
"""Way into the hole: both hands point forward and down, where a Panda's wrist has room."""
PLATE = np.stack([INTO, [1.0, 0.0, 0.0], np.cross(INTO, [1.0, 0.0, 0.0])], axis=1)
"""``world_R_hand`` of the hand that holds the plate: its hole looks at the left arm."""
BELOW = -0.17 * PLATE[:, 2]
"""From the hole's middle to that hand [m]."""
BEFORE = 0.05
DEEP = 0.07
ASIDE = 0.02
TURNED = 0.9
"""Cosine from which the plate counts as facing the peg."""


class PegExpert(Expert):
    """Puts the peg through the hole."""

    def _draw(self) -> list[Flaw]:
        self._still: tuple[Wish, Wish] | None = None
        random = self.random

        def beside() -> Float[np.ndarray, "3"]:
            angle, radius = random.uniform(0, 2 * np.pi), random.uniform(0.075, 0.095)
            return radius * np.array([np.cos(angle), np.sin(angle), 0.0])

        if self.quality == "hesitating":
            return [Pause(random) for _ in range(int(random.integers(1, 3)))]
        if self.quality == "retrying":
            return [Jam(beside)]
        if self.quality == "failing":
            return [Jam(beside, again=1000)]
        return []

    def _wishes(self) -> tuple[Wish, Wish]:
        seen = peg_and_hole(self.env)
        tip = seen.peg + seen.half * seen.axis
        turned = -seen.normal @ INTO > TURNED
        distance = float(np.linalg.norm(tip - seen.hole - self._shift(seen))) if turned else 1.0
        glimpse = Glimpse(
            distance=(distance, distance),
            gap=(0.0, 0.0),
            above=(0.0, 0.0),
            held=(True, True),
            progress=float(np.clip((seen.along + 0.15) / 0.2, 0.0, 1.0)),
        )
        bend = self._bend(glimpse)
        if bend.still:
            if self._still is None:
                left, right = (
                    Wish(position=h.position, rotation=h.rotation, opening=0.0) for h in seen.hands
                )
                self._still = (left, right)
            return self._still[0].moved(bend.sway), self._still[1]
        self._still = None
        plate = Wish(position=MEETING + BELOW, rotation=PLATE, opening=0.0, lead=0.05)
        return self._thrust(seen, back=bend.release[0]), plate

    def _shift(self, seen: PegAndHole) -> Float[np.ndarray, "3"]:
        """Return how far beside the hole the expert aims [m]."""
        x, y, _ = self._offsets[0]
        return x * np.cross(seen.normal, [0.0, 0.0, 1.0]) + y * np.array([0.0, 0.0, 1.0])

    def _thrust(self, seen: PegAndHole, *, back: bool) -> Wish:
        into = -seen.normal
        if into @ INTO < TURNED:
            # A plate still on its way: keep clear of it.
            into = INTO
            self.subtask, depth = 0, -0.15
            hole = MEETING
        else:
            hole = seen.hole + self._shift(seen)
            off = float(np.linalg.norm(np.cross(hole - seen.peg, into)))
            straight = float(seen.axis @ into)
            tip = seen.peg + seen.half * seen.axis
            beside = float(np.linalg.norm(np.cross(tip - hole, into)))
            lined_up = max(off, beside) < ASIDE and straight > 0.97 and not back
            self.subtask = 2 if lined_up else 1
            out = 3.0 * max(0.0, max(off, beside) - 0.01) + 0.3 * max(0.0, 0.99 - straight)
            depth = DEEP if lined_up else -BEFORE - min(out, 0.1)
        # Hand and peg share one axis, so that the hand lies a whole peg behind the tip.
        x = np.cross([0.0, 1.0, 1.0], into)
        x = x / np.linalg.norm(x)
        rotation = np.stack([x, np.cross(into, x), into], axis=1)
        return Wish(
            position=hole + into * (depth - 2.0 * seen.half),
            rotation=rotation,
            opening=0.0,
            lead=0.05,
        )
