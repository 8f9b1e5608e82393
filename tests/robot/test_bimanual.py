import numpy as np
import pytest

from robot.bimanual import Bimanual
from robot.errors import BadAction
from tests.robot.bench import PointArm, refuse


def pair() -> tuple[PointArm, PointArm, Bimanual]:
    left, right = PointArm(dof=2), PointArm(dof=3)
    return left, right, Bimanual(left, right)


def test_entries_of_both_arms_are_told_apart_by_side() -> None:
    _, _, robot = pair()
    assert robot.spec.action_names == (
        "left_joint1",
        "left_joint2",
        "right_joint1",
        "right_joint2",
        "right_joint3",
    )
    assert list(robot.spec.cameras) == ["left_top", "right_top"]


def test_each_arm_follows_its_half() -> None:
    left, right, robot = pair()
    target = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert robot.command(target) == pytest.approx(target)
    assert left.place == pytest.approx([0.1, 0.2])
    assert right.place == pytest.approx([0.3, 0.4, 0.5])
    assert robot.observe().state == pytest.approx(target)


@pytest.mark.parametrize("index", range(5))
def test_a_bad_half_moves_neither_arm(index: int) -> None:
    left, right, robot = pair()
    target = np.full(5, 0.3)
    target[index] = np.nan
    with pytest.raises(BadAction):
        robot.command(target)
    assert (left.commands, right.commands) == ([], [])


def test_both_arms_stop_when_the_right_one_refuses() -> None:
    left, right, robot = pair()
    refuse(right)
    with pytest.raises(BadAction, match="refuses"):
        robot.command(np.zeros(5))
    assert (left.stopped, right.stopped) == (1, 1)


def test_the_right_arm_stops_even_if_the_left_one_cannot() -> None:
    left, right, robot = pair()

    def stop() -> None:
        raise OSError("the bus is gone")

    left.stop = stop  # type: ignore[method-assign]
    with pytest.raises(OSError, match="bus"):
        robot.stop()
    assert right.stopped == 1


def test_images_of_both_arms_render_only_when_asked() -> None:
    left, right, robot = pair()
    seen = robot.observe()
    assert left.rendered + right.rendered == 0
    assert seen.images["right_top"].shape == (4, 6, 3)
    assert (left.rendered, right.rendered) == (0, 1)


def test_arms_at_different_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="one rate"):
        Bimanual(PointArm(rate=20.0), PointArm(rate=30.0))
