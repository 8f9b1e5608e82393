"""What a chunk looks like to a value: targets, how far they are from here, where tools would go.

Axes: ``...`` any batch, ``t`` steps, ``d`` action dimensions, ``s`` state, ``f`` features.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from robot.types import Spec
from values.kinematics import known, tool_pose


class ChunkFeatures(nn.Module):
    """Features of each step of a chunk, in metres, radians and openings.

    Absolute targets, their difference to the present state where the state tells that entry, and
    (``tools``) for each arm the position of the tool, its way from where it is now, and two columns
    of its rotation.

    Args:
        spec: Names of state and action.
        tools: Whether to add tools; needs joint targets of arms of known geometry.

    Raises:
        ValueError: If tools are wanted and cannot be had.
    """

    entries: Tensor
    told: Tensor

    def __init__(self, spec: Spec, *, tools: bool) -> None:
        super().__init__()
        states = {name: i for i, name in enumerate(spec.state_names)}
        told = [name in states for name in spec.action_names]
        entries = [states.get(name, 0) for name in spec.action_names]
        self.register_buffer("entries", torch.tensor(entries), persistent=False)
        self.register_buffer("told", torch.tensor(told, dtype=torch.float32), persistent=False)
        self.arms = _arms(spec) if tools else ()
        if tools and not self.arms:
            raise ValueError(
                f"the tools of {spec.robot!r} under {spec.control!r} are not known; set tools=False"
            )
        self.size = 2 * len(spec.action_names) + 12 * len(self.arms)

    def forward(
        self, state: Float[Tensor, "*b s"], targets: Float[Tensor, "*b t d"]
    ) -> Float[Tensor, "*b t f"]:
        """Return features of absolute targets as seen from a state, both in the spec's units."""
        here = (state[..., self.entries] * self.told).unsqueeze(-2)
        parts = [targets, (targets - here) * self.told]
        for arm, actions in self.arms:
            now, _ = tool_pose(state[..., self.entries[list(actions)]], arm=arm)
            then, rotation = tool_pose(targets[..., list(actions)], arm=arm)
            columns = torch.cat([rotation[..., 0], rotation[..., 2]], dim=-1)
            parts += [then, then - now.unsqueeze(-2), columns]
        return torch.cat(parts, dim=-1)


def can_tell_tools(spec: Spec) -> bool:
    """Return whether tools can be computed from the targets of this robot."""
    return bool(_arms(spec))


def _arms(spec: Spec) -> tuple[tuple[str, Sequence[int]], ...]:
    """Return for each arm its kind and the action entries of its joints, if all are known."""
    if spec.control != "joint_position" or not known(spec.robot):
        return ()
    found: list[tuple[str, Sequence[int]]] = []
    sides = list(dict.fromkeys(name.split("_")[0] for name in spec.action_names))
    kinds = spec.robot.split("+")
    if len(sides) != len(kinds):
        return ()
    for side, kind in zip(sides, kinds, strict=True):
        joints = [
            i
            for i, (name, unit) in enumerate(zip(spec.action_names, spec.action_units, strict=True))
            if name.startswith(f"{side}_") and unit == "rad" and name in spec.state_names
        ]
        if len(joints) != 7:
            return ()
        found.append((kind, tuple(joints)))
    return tuple(found)
