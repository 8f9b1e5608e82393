"""Two arms as one robot: half a target moves nothing.

Axes: ``d`` action dimensions, the left arm's before the right's.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from jaxtyping import Float, UInt8

from robot.limits import check_target
from robot.protocols import Clock, Robot
from robot.types import Images, Observation, Spec


class Bimanual:
    """Joins two robots on one clock; entries and cameras get ``left_`` and ``right_`` in front.

    Args:
        left, right: The arms; they share one clock, or clocks that run alike.

    Raises:
        ValueError: If their rates or controls differ.
    """

    def __init__(self, left: Robot, right: Robot) -> None:
        for name in ("rate", "control"):
            one, other = getattr(left.spec, name), getattr(right.spec, name)
            if one != other:
                raise ValueError(
                    f"two arms need one {name}; left has {one!r}, right has {other!r}; "
                    "configure them alike"
                )
        self.left, self.right = left, right
        self._spec = _joined(left.spec, right.spec)
        self._split = len(left.spec.action_names)

    @property
    def spec(self) -> Spec:
        """Entries of both arms."""
        return self._spec

    @property
    def clock(self) -> Clock:
        """The left arm's, which both go by."""
        return self.left.clock

    def observe(self) -> Observation:
        """Return both arms' states as one, and all images."""
        left, right = self.left.observe(), self.right.observe()
        return Observation(
            time=left.time,
            state=np.concatenate([left.state, right.state]),
            images=_Pair(left.images, right.images),
        )

    def command(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Follow both halves and return the target in force.

        If the right arm refuses what the left one took already, both are stopped.

        Raises:
            BadAction: If either half has a wrong shape or is not finite; neither arm moves.
        """
        check_target(self._spec, target)
        left = self.left.command(target[: self._split])
        try:
            right = self.right.command(target[self._split :])
        except BaseException:
            self.stop()
            raise
        return np.concatenate([left, right])

    def stop(self) -> None:
        """Stop both arms, the right one even if stopping the left one fails."""
        try:
            self.left.stop()
        finally:
            self.right.stop()


class _Pair(Mapping[str, UInt8[np.ndarray, "*b h w 3"]]):
    """Images of both arms, rendered on first access where the arm's own are."""

    def __init__(self, left: Images, right: Images) -> None:
        self._places = {
            f"{side}_{name}": (images, name)
            for side, images in (("left", left), ("right", right))
            for name in images
        }

    def __getitem__(self, name: str) -> UInt8[np.ndarray, "*b h w 3"]:
        images, own = self._places[name]
        return images[own]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _joined(left: Spec, right: Spec) -> Spec:
    def both(pick: Callable[[Spec], tuple[str, ...]]) -> tuple[str, ...]:
        named = [(side, name) for side, s in _sides(left, right) for name in pick(s)]
        return tuple(f"{side}_{name}" for side, name in named)

    return Spec(
        robot=f"{left.robot}+{right.robot}",
        control=left.control,
        rate=left.rate,
        state_names=both(lambda s: s.state_names),
        state_units=left.state_units + right.state_units,
        action_names=both(lambda s: s.action_names),
        action_units=left.action_units + right.action_units,
        action_low=left.action_low + right.action_low,
        action_high=left.action_high + right.action_high,
        cameras={
            f"{side}_{name}": camera
            for side, s in _sides(left, right)
            for name, camera in s.cameras.items()
        },
    )


def _sides(left: Spec, right: Spec) -> tuple[tuple[str, Spec], tuple[str, Spec]]:
    return ("left", left), ("right", right)
