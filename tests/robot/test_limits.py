import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot.errors import BadAction, UnknownName
from robot.limits import Limited, measured_target
from tests.robot.bench import PointArm


def test_a_target_out_of_reach_stops_at_the_limit_and_is_counted_for_its_joint() -> None:
    arm = PointArm()
    robot = Limited(arm)
    assert robot.command(np.array([3.0, 0.2])) == pytest.approx([1.0, 0.2])
    assert robot.clamps["position"] == {"joint1": 1, "joint2": 0}


def test_a_margin_keeps_away_from_the_limits() -> None:
    robot = Limited(PointArm(), margin={"rad": 0.25})
    assert robot.command(np.array([1.0, -1.0])) == pytest.approx([0.75, -0.75])


def test_the_target_never_changes_faster_than_allowed() -> None:
    robot = Limited(PointArm(), max_velocity={"rad": 2.0})
    assert robot.command(np.array([1.0, 0.0])) == pytest.approx([0.1, 0.0])
    assert robot.command(np.array([1.0, 0.0])) == pytest.approx([0.2, 0.0])
    assert robot.clamps["velocity"]["joint1"] == 2


def test_a_blocked_arm_is_not_wound_up() -> None:
    arm = PointArm()
    arm.blocked = True
    robot = Limited(arm, max_velocity={"rad": 2.0}, max_lead={"rad": 0.15})
    for _ in range(10):
        taken = robot.command(np.array([1.0, 0.0]))
    assert taken == pytest.approx([0.15, 0.0])
    assert robot.clamps["lead"]["joint1"] > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_target_that_is_no_number_moves_nothing(bad: float) -> None:
    arm = PointArm()
    robot = Limited(arm)
    robot.command(np.array([0.3, 0.3]))
    with pytest.raises(BadAction, match="joint2 is not finite"):
        robot.command(np.array([0.4, bad]))
    assert len(arm.commands) == 1
    assert arm.place == pytest.approx([0.3, 0.3])


def test_a_target_of_another_shape_names_the_joints_that_are_needed() -> None:
    arm = PointArm()
    with pytest.raises(BadAction, match="joint1, joint2"):
        Limited(arm).command(np.zeros(3))
    assert arm.commands == []


def test_after_a_pause_the_measured_position_is_the_base() -> None:
    arm = PointArm()
    robot = Limited(arm, max_velocity={"rad": 2.0})
    robot.command(np.array([0.1, 0.0]))
    arm.place = np.array([-0.9, 0.0])  # somebody moved the arm by hand
    arm.clock.advance(1.0)
    assert robot.command(np.array([0.5, 0.0])) == pytest.approx([-0.8, 0.0])


def test_after_a_reset_of_the_clock_the_measured_position_is_the_base() -> None:
    arm = PointArm()
    robot = Limited(arm, max_velocity={"rad": 2.0})
    for _ in range(5):
        robot.command(np.array([0.5, 0.0]))
    arm.clock.set(0.0)
    arm.place = np.array([-0.9, 0.0])
    assert robot.command(np.array([0.5, 0.0])) == pytest.approx([-0.8, 0.0])


def test_stopping_stops_the_robot_and_sends_no_target() -> None:
    arm = PointArm()
    robot = Limited(arm)
    robot.stop()
    assert (arm.stopped, arm.commands) == (1, [])


@given(
    targets=arrays(np.float64, (12, 2), elements=st.floats(-1e6, 1e6)),
    velocity=st.floats(0.1, 50.0),
)
def test_no_sequence_of_targets_leaves_the_envelope(targets: np.ndarray, velocity: float) -> None:
    arm = PointArm()
    robot = Limited(arm, max_velocity={"rad": velocity})
    last = arm.place
    for target in targets:
        taken = robot.command(target)
        assert np.abs(taken - last).max() <= velocity * arm.spec.period + 1e-9
        assert np.abs(taken).max() <= 1.0
        last = taken


def test_a_unit_that_no_joint_has_is_refused() -> None:
    with pytest.raises(UnknownName, match="rad"):
        Limited(PointArm(), max_velocity={"deg": 90.0})


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_lets_nothing_move_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="lets nothing move"):
        Limited(PointArm(), max_velocity={"rad": limit})


def test_a_margin_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves joint1 no room"):
        Limited(PointArm(), margin={"rad": 1.5})


def test_holding_needs_a_state_that_measures_the_action() -> None:
    from dataclasses import replace

    arm = PointArm()
    arm.place = np.array([0.2, 0.3])
    assert measured_target(arm.spec, arm.observe()) == pytest.approx([0.2, 0.3])
    other = replace(arm.spec, action_names=("x", "joint2"))
    with pytest.raises(BadAction, match="does not measure x"):
        measured_target(other, arm.observe())
