"""The goal in the scene with three bins: the hammer changes bins, and the trash makes room for it.

The left arm stands at the start bin, which has a lid; the right arm at the target bin, in which
the trash lies, and at the bin for it. Lengths [m], angles [rad].
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sim.tasks.goal import Scene
from sim.tasks.handover import MEETING, Hammer
from sim.tasks.hands import WIDEST, Hand, fall, hand

BAR = 0.02
"""Thickness of the lid's handle [m]."""
CUBE = 0.04
"""Edge of the trash [m]."""
INNER = 0.14
"""Half the inner width of a bin [m]."""
FLOOR = -0.065
"""Of the bottom of a bin below its middle [m]."""
RIM = 0.075
"""Of the rim of a bin above its middle [m]."""
LID = 0.095
"""Of the middle of the lid above that of the bin that it closes [m]."""
OPEN = 0.27
"""How far the lid has to be away for the start bin to be open [m]."""
OVER_RIM = 0.20
"""Height above a bin's bottom from which an object may travel sideways [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Objects and hands at one moment.

    Attributes:
        start: Middle of the bin in which the hammer lies [m].
        target: Middle of the bin into which it shall [m].
        waste: Middle of the bin into which the trash shall [m].
        lid: Middle of the lid [m].
        handle: Middle of the lid's handle [m].
        handle_side: Unit vector along the handle.
        trash: Middle of the trash [m].
        trash_turn: ``world_R_trash``.
        hammer: The hammer and both hands; its height is above the bottom of the target bin.
        delivered: Whether the hammer touches the bottom of the target bin.
        cleared: Whether the trash touches the bottom of the bin for it.
    """

    start: Float[np.ndarray, "3"]
    target: Float[np.ndarray, "3"]
    waste: Float[np.ndarray, "3"]
    lid: Float[np.ndarray, "3"]
    handle: Float[np.ndarray, "3"]
    handle_side: Float[np.ndarray, "3"]
    trash: Float[np.ndarray, "3"]
    trash_turn: Float[np.ndarray, "3 3"]
    hammer: Hammer
    delivered: bool
    cleared: bool

    @property
    def hands(self) -> tuple[Hand, Hand]:
        """Left and right."""
        return self.hammer.hands

    @property
    def opened(self) -> float:
        """How far the lid is off the start bin, 0 to 1."""
        away = float(np.linalg.norm(self.lid - self.start - np.array([0.0, 0.0, LID])))
        return min(1.0, away / OPEN)

    @property
    def covered(self) -> bool:
        """Whether the lid lies over the start bin, or over one of its edges."""
        aside = np.abs(self.lid[:2] - self.start[:2]).max()
        return bool(aside < OPEN and self.lid[2] > self.start[2])

    def holds_lid(self, side: int) -> bool:
        """Return whether the fingers press on the lid's handle."""
        x, y, z = self.hands[side].to_hand(self.handle)
        near = abs(x) < 0.025 and abs(y) < 0.05 and abs(z) < 0.028
        return bool(near and BAR - 0.006 < self.hands[side].gap < BAR + 0.010)

    def holds_trash(self, side: int) -> bool:
        """Return whether the fingers press on the trash."""
        near = float(np.linalg.norm(self.hands[side].to_hand(self.trash))) < 0.03
        return bool(near and CUBE - 0.008 < self.hands[side].gap < CUBE + 0.006)


@dataclass(frozen=True, slots=True)
class _Parts:
    bodies: dict[str, int]
    handle: int
    hammer: int
    half: float
    thick: float
    head: float
    geoms: dict[str, Bool[np.ndarray, " g"]]


@lru_cache(maxsize=16)
def _parts(model: Any) -> _Parts:
    names = {
        "start": "transport_start_bin_root",
        "target": "transport_target_bin_root",
        "waste": "transport_trash_bin_root",
        "lid": "transport_start_bin_lid_root",
        "trash": "trash_main",
        "hammer": "payload_root",
    }
    bodies = {name: int(model.body(body).id) for name, body in names.items()}
    collide = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    geoms = {name: (model.geom_bodyid == bodies[name]) & collide for name in ("trash", "hammer")}
    for name, geom in (
        ("target", "transport_target_bin_base"),
        ("waste", "transport_trash_bin_base"),
    ):
        geoms[name] = np.zeros(model.ngeom, dtype=bool)
        geoms[name][model.geom(geom).id] = True
    size = model.geom("payload_handle").size
    return _Parts(
        bodies=bodies,
        handle=int(model.geom("transport_start_bin_lid_handle").id),
        hammer=int(model.geom("payload_handle").id),
        half=float(size[2]),
        thick=float(2 * size[0]),
        head=float(model.geom("payload_head").size[1]),
        geoms=geoms,
    )


def _touch(data: Any, some: Bool[np.ndarray, " g"], others: Bool[np.ndarray, " g"]) -> bool:
    first, second = data.contact.geom[:, 0], data.contact.geom[:, 1]
    return bool(np.any((some[first] & others[second]) | (others[first] & some[second])))


def bins(env: Scene) -> Bins:
    """Return what the physics says about bins, lid, trash, hammer and hands."""
    data, parts = env.data, _parts(env.model)
    at = {name: data.xpos[body].copy() for name, body in parts.bodies.items()}
    position = data.geom_xpos[parts.hammer].copy()
    axis = data.xmat[parts.bodies["hammer"]].reshape(3, 3)[:, 2].copy()
    end = (parts.half + 2 * parts.head) * abs(float(axis[2]))
    return Bins(
        start=at["start"],
        target=at["target"],
        waste=at["waste"],
        lid=at["lid"],
        handle=data.geom_xpos[parts.handle].copy(),
        handle_side=data.geom_xmat[parts.handle].reshape(3, 3)[:, 1].copy(),
        trash=at["trash"],
        trash_turn=data.xmat[parts.bodies["trash"]].reshape(3, 3).copy(),
        hammer=Hammer(
            position=position,
            axis=axis,
            half=parts.half,
            thick=parts.thick,
            height=float(position[2] - parts.thick / 2 - end - at["target"][2] - FLOOR),
            hands=(hand(env, 0), hand(env, 1)),
        ),
        delivered=_touch(data, parts.geoms["target"], parts.geoms["hammer"]),
        cleared=_touch(data, parts.geoms["waste"], parts.geoms["trash"]),
    )


def within(point: Float[np.ndarray, "3"], middle: Float[np.ndarray, "3"]) -> bool:
    """Return whether a point lies in a bin or straight above it."""
    return bool(np.abs(point[:2] - middle[:2]).max() < INNER)


def way(point: Float[np.ndarray, "3"], middle: Float[np.ndarray, "3"]) -> float:
    """Return how far an object has to go to the bottom of a bin: up, across, down [m]."""
    height = max(0.0, float(point[2] - middle[2] - FLOOR))
    across = float(np.linalg.norm(np.maximum(np.abs(point[:2] - middle[:2]) - INNER, 0.0)))
    if across == 0.0:
        return min(height, OVER_RIM)
    return OVER_RIM + across + max(0.0, OVER_RIM - height)


class Transport:
    """Put the hammer into the target bin, and the trash that lies there into its own bin."""

    task = "transport"
    name = "transport"
    time_limit = 600
    instruction = "move the hammer into the target bin and the trash into the trash bin"
    instructions = (
        instruction,
        "take the lid off, hand the hammer over to the other bin and throw the trash away",
        "clear the trash out of the target bin and bring the hammer there",
        "transport the hammer from the covered bin to the bin in which the trash lies",
    )
    subtasks = (
        "take the lid off the start bin with the left hand",
        "move the trash into the trash bin with the right hand",
        "take the hammer out of the start bin with the left hand",
        "hand the hammer over to the right hand",
        "put the hammer into the target bin with the right hand",
    )
    environment_names = tuple(
        f"{entry}_{axis}"
        for entry in (
            "hammer",
            "hammer_axis",
            "trash",
            "trash_side",
            "lid_handle",
            "lid_handle_side",
            "start_bin",
            "target_bin",
            "trash_bin",
            "left_hand_lid_handle",
            "left_hand_hammer",
            "right_hand_hammer",
            "right_hand_trash",
        )
        for axis in "xyz"
    )

    def success(self, env: Scene) -> bool:
        """Return whether hammer and trash touch the bottom of the bins in which they shall be."""
        seen = bins(env)
        return seen.delivered and seen.cleared

    def potential(self, env: Scene) -> float:
        """Return 0.25 for the trash, 0.15 for the lid, 0.6 for the hammer's way."""
        seen = bins(env)
        return 0.25 * self._trash(seen) + 0.15 * self._lid(seen) + 0.6 * self._hammer(seen)

    def environment_state(self, env: Scene) -> Float[np.ndarray, " e"]:
        """Return where hammer, trash, lid and bins are, and what the hands see of them."""
        seen = bins(env)
        left, right = seen.hands
        parts = [seen.hammer.position, seen.hammer.axis, seen.trash, seen.trash_turn[:, 0]]
        parts += [seen.handle, seen.handle_side, seen.start, seen.target, seen.waste]
        parts += [left.to_hand(seen.handle), seen.hammer.nearest(0), seen.hammer.nearest(1)]
        return np.concatenate([*parts, right.to_hand(seen.trash)]).astype(np.float32)

    def _trash(self, seen: Bins) -> float:
        if seen.cleared:
            return 1.0
        # What the hand did is not undone when it lets go above the bin.
        over = float(within(seen.trash, seen.waste))
        reach, grip = _grasp(seen.hands[1], seen.trash, CUBE)
        total = 2 * OVER_RIM + float(np.linalg.norm(seen.waste - seen.target)) - 2 * INNER
        done = float(np.clip(1.0 - way(seen.trash, seen.waste) / total, 0.0, 1.0))
        return 0.2 * max(reach, over) + 0.2 * max(grip, over) + 0.57 * done

    def _lid(self, seen: Bins) -> float:
        if seen.delivered:
            return 1.0
        reach, grip = _grasp(seen.hands[0], seen.handle, BAR)
        away = seen.opened
        return 0.3 * max(reach, away) + 0.3 * max(grip, away) + 0.4 * away

    def _hammer(self, seen: Bins) -> float:
        if seen.delivered:
            return 1.0
        tool = seen.hammer
        over = float(within(tool.position, seen.target))
        reach = [fall(float(np.linalg.norm(tool.nearest(side))), 0.15) for side in (0, 1)]
        grips = [max(tool.grip(side), over) for side in (0, 1)]
        goal = seen.target[:2] - MEETING[:2]
        total = 2 * OVER_RIM + float(np.linalg.norm(seen.target[:2] - seen.start[:2])) - INNER
        done = float(np.clip(1.0 - way(tool.position, seen.target) / total, 0.0, 1.0))
        middle = 1.0 - (OVER_RIM + float(np.linalg.norm(goal)) - INNER) / total
        halfway = float(np.clip(done / middle, 0.0, 1.0))
        taken = max(reach[1], over), grips[1]
        first = 0.1 * max(reach[0], *grips) + 0.15 * max(grips)
        return seen.opened * first + 0.47 * done + halfway * (0.1 * taken[0] + 0.15 * taken[1])


def _grasp(hand: Hand, point: Float[np.ndarray, "3"], thick: float) -> tuple[float, float]:
    """Return how near a hand is to a thing, and how firmly it holds it, each 0 to 1."""
    distance = float(np.linalg.norm(hand.to_hand(point)))
    closed = float(np.clip((WIDEST - hand.gap) / (WIDEST - thick - 0.004), 0.0, 1.0))
    between = fall(max(0.0, distance - 0.012), 0.015)
    return fall(distance, 0.15), between * (0.2 + 0.8 * closed)
