"""Goals follow from the physics alone, and say how far it is from them."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot.errors import UnknownName
from sim.robosuite import TwoArmEnv
from sim.tasks import GOALS, Goal, goal_for, goals, time_limit
from sim.tasks.hands import fall
from sim.tasks.peg import peg_and_hole
from sim.tasks.pot import pot


@pytest.fixture(scope="module")
def lift() -> TwoArmEnv:
    return TwoArmEnv(task="lift", goal="lift", cameras={})


@pytest.fixture(scope="module")
def peg() -> TwoArmEnv:
    return TwoArmEnv(task="peg", cameras={})


def put_pot(env: TwoArmEnv, *, up: float = 0.0, y: float | None = None, tilt: float = 0.0) -> None:
    """Move the pot by hand: ``up`` above the table [m], to ``y`` [m], tilted [rad]."""
    env.reset(0)
    start = env.model.joint("pot_joint0").qposadr[0]
    env.data.qpos[start + 2] += up
    if y is not None:
        env.data.qpos[start + 1] = y
    turned = np.empty(4)
    lean = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0])
    mujoco.mju_mulQuat(turned, lean, env.data.qpos[start + 3 : start + 7].copy())
    env.data.qpos[start + 3 : start + 7] = turned
    mujoco.mj_forward(env.model, env.data)


@pytest.mark.parametrize("task", list(GOALS))
def test_every_goal_is_complete_in_words(task: str) -> None:
    for name in goals(task):
        goal = goal_for(task, name)
        assert isinstance(goal, Goal)
        assert (goal.task, goal.name) == (task, name)
        assert goal.instructions[0] == goal.instruction
        assert len(set(goal.instructions)) >= 3
        assert len(goal.subtasks) >= 2
        assert time_limit(task, name) == goal.time_limit > 0


def test_no_two_goals_share_an_instruction() -> None:
    said = [w for task in GOALS for g in goals(task) for w in goal_for(task, g).instructions]
    assert len(said) == len(set(said))


def test_an_unknown_goal_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match="slide"):
        goal_for("lift", "slid")
    with pytest.raises(UnknownName, match="lift"):
        goal_for("lifting")


@pytest.mark.parametrize(("up", "tilt", "holds"), [(0.11, 0.0, True), (0.09, 0.0, False)])
def test_a_pot_is_lifted_above_ten_centimetres(
    lift: TwoArmEnv, up: float, tilt: float, holds: bool
) -> None:
    put_pot(lift, up=up, tilt=tilt)
    assert goal_for("lift", "lift").success(lift) is holds


@pytest.mark.parametrize(("degrees", "holds"), [(25, True), (35, False)])
def test_a_pot_tilted_by_thirty_degrees_is_not_lifted(
    lift: TwoArmEnv, degrees: float, holds: bool
) -> None:
    put_pot(lift, up=0.15, tilt=np.radians(degrees))
    assert goal_for("lift", "lift").success(lift) is holds


@pytest.mark.parametrize(
    ("y", "up", "tilt", "holds"),
    [
        (-0.12, 0.0, 0.0, True),
        (-0.10, 0.0, 0.0, False),
        (0.12, 0.0, 0.0, False),
        (-0.12, 0.05, 0.0, False),
        (-0.12, 0.0, 0.5, False),
    ],
)
def test_a_pot_is_slid_when_it_stands_on_the_left(
    lift: TwoArmEnv, y: float, up: float, tilt: float, holds: bool
) -> None:
    put_pot(lift, y=y, up=up, tilt=tilt)
    assert goal_for("lift", "slide").success(lift) is holds


def test_the_start_is_eight_centimetres_from_a_slid_pot(lift: TwoArmEnv) -> None:
    for seed in range(20):
        lift.reset(seed)
        assert pot(lift).position[1] - -0.11 >= 0.08 - 1e-6


def test_the_two_goals_of_the_pot_exclude_each_other(lift: TwoArmEnv) -> None:
    put_pot(lift, up=0.12, y=-0.15)
    assert goal_for("lift", "lift").success(lift)
    assert not goal_for("lift", "slide").success(lift)


@pytest.mark.parametrize("name", ["lift", "slide"])
def test_potential_rises_with_the_pot_on_its_way(lift: TwoArmEnv, name: str) -> None:
    goal, found = goal_for("lift", name), []
    for share in np.linspace(0.0, 1.0, 6):
        put_pot(lift, **({"up": 0.1 * share} if name == "lift" else {"y": 0.03 - 0.14 * share}))
        found.append(goal.potential(lift))
    assert np.all(np.diff(found) > 0.01)
    assert 0.0 <= min(found) <= max(found) <= 1.0


def test_a_tilted_pot_has_less_potential(lift: TwoArmEnv) -> None:
    put_pot(lift, up=0.05)
    upright = goal_for("lift", "lift").potential(lift)
    put_pot(lift, up=0.05, tilt=0.6)
    assert goal_for("lift", "lift").potential(lift) < upright


@pytest.mark.parametrize("task", ["lift", "peg"])
def test_environment_state_has_a_name_for_each_finite_entry(
    request: pytest.FixtureRequest, task: str
) -> None:
    env: TwoArmEnv = request.getfixturevalue(task)
    env.reset(3)
    state = env.environment_state()
    assert state.dtype == np.float32
    assert state.shape == (len(env.environment_names),)
    assert len(set(env.environment_names)) == len(env.environment_names)
    assert np.isfinite(state).all()


def test_handles_are_seen_in_the_frames_of_the_hands(lift: TwoArmEnv) -> None:
    put_pot(lift)
    seen = pot(lift)
    back = seen.hands[1].rotation @ seen.hands[1].to_hand(seen.handles[1])
    np.testing.assert_allclose(back + seen.hands[1].position, seen.handles[1])
    assert np.linalg.norm(seen.handles[0] - seen.handles[1]) == pytest.approx(0.32, abs=1e-6)


def test_a_grasp_points_down_with_fingers_across_the_bar(lift: TwoArmEnv) -> None:
    put_pot(lift)
    for side in (0, 1):
        grasp = pot(lift).grasp(side)
        np.testing.assert_allclose(grasp.T @ grasp, np.eye(3), atol=1e-9)
        assert np.linalg.det(grasp) == pytest.approx(1.0)
        outward = pot(lift).handles[side] - pot(lift).position
        assert grasp[2, 2] < -0.99
        assert grasp[:, 0] @ outward > 0.15


def test_the_peg_is_not_in_at_the_start(peg: TwoArmEnv) -> None:
    peg.reset(0)
    assert not peg.success()
    assert peg.potential() < 0.5
    assert peg_and_hole(peg).half == pytest.approx(0.13)


@given(value=st.floats(0.0, 10.0), more=st.floats(1e-3, 10.0), scale=st.floats(1e-2, 1.0))
def test_fall_is_one_at_zero_and_falls(value: float, more: float, scale: float) -> None:
    assert fall(0.0, scale) == 1.0
    assert 0.0 < fall(value + more, scale) < fall(value, scale) <= 1.0
