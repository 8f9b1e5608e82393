"""What experts with two grasps of a hammer share: how a hand comes to a handle. Lengths [m]."""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Wish
from sim.tasks.handover import Hammer
from sim.tasks.hands import Hand

HOVER = 0.08
"""How far in front of its grasp a hand stays that is not yet in line with it [m]."""


def approach(
    hand: Hand,
    point: Float[np.ndarray, "3"],
    rotation: Float[np.ndarray, "3 3"],
    *,
    closed: bool,
    release: bool,
    hover: float = HOVER,
) -> Wish:
    """Return the wish that brings a hand in front of its grasp, onto it, and closes it.

    Args:
        hand: The hand.
        point: Where to grasp [m].
        rotation: ``world_R_hand`` of the grasp.
        closed: Whether the fingers have begun to close; they then go on unless far off.
        release: Keep the fingers open.
        hover: How far in front of the grasp it stays until it is in line [m].
    """
    x, y, z = (point - hand.position) @ rotation
    turn = float(np.linalg.norm(rotation - hand.rotation)) / np.sqrt(2.0)
    aside = float(np.hypot(x, y)) + 0.06 * max(0.0, turn - 0.25)
    slack = 2.0 if closed else 1.0
    arrived = aside < 0.012 * slack and abs(z) < 0.010 * slack
    stand_off = float(np.clip(3.0 * (aside - 0.012), 0.0, hover))
    return Wish(
        position=point - stand_off * rotation[:, 2],
        rotation=rotation,
        opening=0.0 if arrived and not release else 1.0,
    )


def far_end(seen: Hammer) -> Float[np.ndarray, "3"]:
    """Return the direction along the handle toward the end that the right hand takes."""
    if seen.held(0) or seen.held(1):
        towards = seen.hands[0].rotation[:, 1] if seen.held(0) else np.array([0.0, 1.0, 0.0])
    else:
        # The smaller turn of the left wrist: its y axis starts along the world's.
        towards = np.array([0.0, 1.0, 0.0])
    return seen.axis if seen.axis @ towards >= 0.0 else -seen.axis


def across(along: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3 3"]:
    """Return ``world_R_hand`` of a hand that points down, fingers across a direction."""
    y = np.array([along[0], along[1], 0.0])
    y = y / max(float(np.linalg.norm(y)), 1e-6)
    down = np.array([0.0, 0.0, -1.0])
    return np.stack([np.cross(y, down), y, down], axis=1)


def stand(hand: Hand, *, closed: bool) -> Wish:
    """Return the wish to stay where the hand is."""
    return Wish(position=hand.position, rotation=hand.rotation, opening=0.0 if closed else 1.0)
