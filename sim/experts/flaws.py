"""What goes wrong on purpose: flaws that an expert carries out step by step.

A flaw looks at the present state and bends what a good expert would do. Each lasts long enough
to be seen in a chunk of 16 steps, and knows exactly when it began and ended. Lengths [m].
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float


def _nowhere() -> list[Float[np.ndarray, "3"]]:
    return [np.zeros(3), np.zeros(3)]


@dataclass(slots=True, kw_only=True)
class Bend:
    """How the wishes of a good expert are to be bent in this step.

    Attributes:
        offsets: Added to the grasp point of each hand, in the frame of its grasp [m].
        release: Which hands open, whatever else.
        still: Hold both hands where they are.
        sway: Added to where both hands are held still [m].
        alone: The only hand that takes part, if any.
        astray: Go for another goal of the scene.
    """

    offsets: list[Float[np.ndarray, "3"]] = field(default_factory=_nowhere)
    release: list[bool] = field(default_factory=lambda: [False, False])
    still: bool = False
    sway: Float[np.ndarray, "3"] = field(default_factory=lambda: np.zeros(3))
    alone: int | None = None
    astray: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What flaws look at, for each hand.

    Attributes:
        distance: From the hand to the point it grasps at, offset included [m].
        gap: Between the fingers [m].
        above: Height of the hand above the handle, offset left out [m].
        held: Whether the object is held.
        progress: Of the last subtask, 0 to 1.
    """

    distance: tuple[float, float]
    gap: tuple[float, float]
    above: tuple[float, float]
    held: tuple[bool, bool]
    progress: float


class Flaw:
    """One thing that goes wrong.

    ``began`` is the step at which it stopped progress, None before; ``over`` says that it has
    passed.
    """

    kind = "flaw"

    def __init__(self) -> None:
        self.began: int | None = None
        self.over = False

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Bend the wishes of this step."""
        raise NotImplementedError


class Pause(Flaw):
    """Stops, or sways to and fro, for a while once hands are near enough or far enough along.

    Args:
        random: Where, how long and how is drawn from it.
        longest: Number of steps at most.
    """

    def __init__(self, random: np.random.Generator, *, longest: int = 14) -> None:
        super().__init__()
        self._steps = int(random.integers(8, longest + 1))
        self._near = float(random.uniform(0.02, 0.12))
        self._along = float(random.uniform(0.1, 0.7)) if random.random() < 0.35 else None
        sways = random.random() < 0.5
        self.kind = "sway" if sways else "pause"
        direction = random.standard_normal(3) * np.array([1.0, 1.0, 0.5])
        self._sway = 0.03 * direction / np.linalg.norm(direction) if sways else np.zeros(3)

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Hold still from the trigger on."""
        if self.began is None:
            if self._along is None:
                start = min(glimpse.distance) < self._near
            else:
                start = glimpse.progress > self._along
            if not start:
                return
            self.began = step
        since = step - self.began
        if since >= self._steps:
            self.over = True
            return
        bend.still = True
        bend.sway = self._sway * np.sin(2.0 * np.pi * since / self._steps)


class Miss(Flaw):
    """Grasps beside the handle with one hand, closes on nothing, backs off and opens again.

    Args:
        draw: Returns an offset in the frame of the grasp [m].
        side: The hand.
        again: How many times after the first.
    """

    kind = "miss"

    def __init__(
        self, draw: Callable[[], Float[np.ndarray, "3"]], side: int, *, again: int = 0
    ) -> None:
        super().__init__()
        self._draw = draw
        self._offset = draw()
        self._side = side
        self._again = again
        self._closing = 0
        self._backing = False

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Shift the grasp point until the fingers have closed, then go up and open."""
        i = self._side
        if self._backing:
            bend.release[i] = True
            bend.offsets[i] = np.array([0.0, 0.0, -0.07])
            if glimpse.gap[i] > 0.065 and glimpse.above[i] > 0.04:
                self._retry()
            return
        bend.offsets[i] = self._offset
        if self.began is None and glimpse.distance[i] < 0.08:
            self.began = step
        self._closing = self._closing + 1 if glimpse.distance[i] < 0.02 else 0
        if glimpse.gap[i] < 0.012 or self._closing > 14:
            self._backing = True

    def _retry(self) -> None:
        if self._again == 0:
            self.over = True
            return
        self._again -= 1
        self._offset, self._closing, self._backing = self._draw(), 0, False


class Slip(Flaw):
    """Lets go on the way, so that the grasp has to be made again.

    Args:
        at: Progress of the last subtask at which it happens.
        hands: Which hands open.
        again: How many times after the first.
        away: Stay away afterwards.
    """

    def __init__(
        self, at: float, hands: tuple[bool, bool], *, again: int = 0, away: bool = False
    ) -> None:
        super().__init__()
        self.kind = "release" if away or again else "slip"
        self._at = at
        self._hands = hands
        self._again = again
        self._away = away
        self._since = 0

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Open the hands from the trigger on."""
        if self._since == 0:
            if glimpse.progress <= self._at or not all(glimpse.held):
                return
            self.began = step if self.began is None else self.began
        self._since += 1
        for i in (0, 1):
            if self._hands[i]:
                bend.release[i] = True
                if self._away:
                    bend.offsets[i] = np.array([0.0, 0.0, -0.10])
        if self._away or self._since < 9:
            return
        self._since = 0
        if self._again == 0:
            self.over = True
        self._again -= 1


class Jam(Flaw):
    """Thrusts beside the hole, presses for a while, and draws back.

    Args:
        draw: Returns an offset in the plane of the hole [m].
        again: How many times after the first.
    """

    kind = "jam"

    def __init__(self, draw: Callable[[], Float[np.ndarray, "3"]], *, again: int = 0) -> None:
        super().__init__()
        self._draw = draw
        self._offset = draw()
        self._again = again
        self._pressed = 0
        self._near = 0
        self._back = 0

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Aim beside the hole until pressed long enough, then draw back."""
        bend.offsets[0] = self._offset
        if self.began is None and glimpse.distance[0] < 0.12:
            self.began = step
        self._pressed += glimpse.distance[0] < 0.035
        # What is in the way may keep it from coming so near.
        self._near += self.began is not None
        if self._pressed < 8 and self._near < 24:
            return
        bend.release[0] = True
        self._back += 1
        if self._back < 8:
            return
        if self._again == 0:
            self.over = True
            return
        self._again -= 1
        self._offset, self._pressed, self._near, self._back = self._draw(), 0, 0, 0


class Alone(Flaw):
    """One hand works alone while the other stays away."""

    kind = "one arm"

    def __init__(self, side: int) -> None:
        super().__init__()
        self._side = side

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Keep the other hand above its handle."""
        if self.began is None and glimpse.distance[self._side] < 0.08:
            self.began = step
        bend.alone = self._side
        bend.offsets[1 - self._side] = np.array([0.0, 0.0, -0.10])
        bend.release[1 - self._side] = True


class Astray(Flaw):
    """Goes for another goal of the scene than the one asked for."""

    kind = "wrong goal"

    def bend(self, bend: Bend, glimpse: Glimpse, step: int) -> None:
        """Swap the goal."""
        if self.began is None and all(glimpse.held):
            self.began = step
        bend.astray = True
