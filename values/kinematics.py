"""Where a tool is for given joint angles, for arms whose geometry is published.

Axes: ``...`` any batch, ``j`` joints. Angles [rad], lengths [m]; poses are in the arm's own base.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

DENAVIT_HARTENBERG: dict[str, tuple[tuple[float, float, float], ...]] = {
    # Angle of twist before each joint as a multiple of pi / 2, length along x, offset along z; the
    # last row is the flange. Source: Franka Emika, "Robot and interface specifications".
    "Panda": (
        (0, 0.0, 0.333),
        (-1, 0.0, 0.0),
        (1, 0.0, 0.316),
        (1, 0.0825, 0.0),
        (-1, -0.0825, 0.384),
        (1, 0.0, 0.0),
        (1, 0.088, 0.0),
        (0, 0.0, 0.107),
    )
}
"""Rows ``(twist, a, d)`` in Craig's convention, by robot."""

TOOL = 0.1034
"""From the flange to the point between the finger tips along z [m], turned by -45 degrees."""


def known(robot: str) -> bool:
    """Return whether the geometry of each arm of ``robot`` (e.g. ``Panda+Panda``) is known."""
    return all(arm in DENAVIT_HARTENBERG for arm in robot.split("+"))


def tool_pose(
    angles: Float[Tensor, "... j"], *, arm: str
) -> tuple[Float[Tensor, "... 3"], Float[Tensor, "... 3 3"]]:
    """Return position and rotation of the tool in the arm's base.

    Raises:
        ValueError: If the arm has another number of joints.

    Source:
        Craig, "Introduction to Robotics", 3rd edition, section 3.4.
    """
    rows = DENAVIT_HARTENBERG[arm]
    if angles.shape[-1] != len(rows) - 1:
        raise ValueError(f"{arm} has {len(rows) - 1} joints, found {angles.shape[-1]} angles")
    position = angles.new_zeros(*angles.shape[:-1], 3)
    rotation = torch.eye(3, dtype=angles.dtype).expand(*angles.shape[:-1], 3, 3)
    turns = torch.cat([angles, torch.full_like(angles[..., :1], -torch.pi / 4)], dim=-1)
    for i, (twist, a, d) in enumerate(rows):
        # cos and sin of a multiple of a quarter turn, exactly.
        ca, sa = (0.0, float(twist)) if twist else (1.0, 0.0)
        link = angles.new_tensor([a, -sa * d, ca * d])
        position = position + rotation @ link
        cos, sin = turns[..., i].cos(), turns[..., i].sin()
        zero = torch.zeros_like(cos)
        joint = _stack(
            [cos, -sin, zero],
            [sin * ca, cos * ca, torch.full_like(cos, -sa)],
            [sin * sa, cos * sa, torch.full_like(cos, ca)],
        )
        rotation = rotation @ joint
    return position + rotation[..., 2] * TOOL, rotation


def _stack(*rows: Sequence[Tensor]) -> Float[Tensor, "... 3 3"]:
    return torch.stack([torch.stack(list(row), dim=-1) for row in rows], dim=-2)
