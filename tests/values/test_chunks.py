"""What a chunk looks like to a value: ways of the tools follow from joint targets."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toyworld import SPEC

from robot.types import Spec
from values.chunks import ChunkFeatures, can_tell_tools
from values.kinematics import tool_pose

angles = st.lists(st.floats(-2.5, 2.5), min_size=7, max_size=7)


def pandas() -> Spec:
    names = tuple(
        f"{side}_{name}"
        for side in ("left", "right")
        for name in (*(f"joint{i + 1}" for i in range(7)), "gripper")
    )
    units = tuple("opening" if name.endswith("gripper") else "rad" for name in names)
    return Spec(
        robot="Panda+Panda",
        control="joint_position",
        rate=20.0,
        state_names=names,
        state_units=units,
        action_names=names,
        action_units=units,
        action_low=(-3.0,) * 16,
        action_high=(3.0,) * 16,
    )


def test_a_stretched_arm_points_down_where_its_links_add_up() -> None:
    position, rotation = tool_pose(torch.zeros(7, dtype=torch.float64), arm="Panda")
    up = 0.333 + 0.316 + 0.384 - 0.107 - 0.1034
    torch.testing.assert_close(position, torch.tensor([0.088, 0.0, up], dtype=torch.float64))
    down = torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64)
    torch.testing.assert_close(rotation[:, 2], down)


def test_a_known_bent_pose_is_where_the_robots_own_model_puts_it() -> None:
    """The usual ready pose of a Panda; with its fingers at about 0.307, 0, 0.487 m."""
    ready = torch.tensor([0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398])
    position, rotation = tool_pose(ready, arm="Panda")
    torch.testing.assert_close(position, torch.tensor([0.3069, 0.0, 0.4869]), atol=2e-3, rtol=0.0)
    torch.testing.assert_close(
        rotation, torch.diag(torch.tensor([1.0, -1.0, -1.0])), atol=1e-3, rtol=0.0
    )


@given(angles, st.floats(-1.0, 1.0))
def test_turning_the_base_turns_the_tool_around_it(joints: list[float], turn: float) -> None:
    q = torch.tensor(joints, dtype=torch.float64)
    first = torch.tensor([turn, *[0.0] * 6], dtype=torch.float64)
    position, rotation = tool_pose(q, arm="Panda")
    moved, turned = tool_pose(q + first, arm="Panda")
    c, s = torch.cos(first[0]), torch.sin(first[0])
    z = torch.stack(
        [torch.stack([c, -s, c * 0]), torch.stack([s, c, c * 0]), first.new_tensor([0, 0, 1])]
    )
    torch.testing.assert_close(moved, z @ position)
    torch.testing.assert_close(turned, z @ rotation)
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(3, dtype=torch.float64))


def test_features_tell_where_each_tool_would_go_from_here() -> None:
    spec = pandas()
    features = ChunkFeatures(spec, tools=True)
    state = torch.randn(2, 3, 16)
    still = features(state, state.unsqueeze(-2).expand(-1, -1, 4, -1))
    assert still.shape == (2, 3, 4, features.size == 56 and 56)
    assert (still[..., 16:32] == 0).all()
    assert still[..., 35:38].abs().max() < 1e-6
    targets = state.unsqueeze(-2).repeat(1, 1, 4, 1)
    targets[..., 2, 8] += 0.3
    moved = features(state, targets)
    assert moved[..., 2, 47:50].norm(dim=-1).min() > 1e-3  # the right tool moves
    assert moved[..., 35:38].abs().max() < 1e-6  # the left one does not


def test_tools_of_unknown_arms_are_not_made_up() -> None:
    assert can_tell_tools(pandas())
    assert not can_tell_tools(SPEC)
    assert not can_tell_tools(replace(pandas(), control="osc_pose"))
    with pytest.raises(ValueError, match="Toy"):
        ChunkFeatures(SPEC, tools=True)
    with pytest.raises(ValueError, match="7 joints"):
        tool_pose(torch.zeros(6), arm="Panda")
