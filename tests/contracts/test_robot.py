"""What every Robot must do."""

from collections.abc import Callable

import numpy as np
import pytest

from robot.bimanual import Bimanual
from robot.errors import BadAction
from robot.limits import Limited, hold_target
from robot.protocols import Clock, Robot
from sim.robosuite import TwoArmEnv
from tests.robot.bench import PointArm

Make = Callable[[], Robot]
_SCENE: list[TwoArmEnv] = []


def sim_robot() -> Robot:
    if not _SCENE:
        _SCENE.append(TwoArmEnv(task="lift"))
    _SCENE[0].reset(0)
    return _SCENE[0].robot


ROBOTS: dict[str, Make] = {
    "point": PointArm,
    "limited": lambda: Limited(PointArm(), max_velocity={"rad": 5.0}, max_lead={"rad": 0.5}),
    "bimanual": lambda: Bimanual(PointArm(), PointArm(dof=3)),
    "simulated": sim_robot,
    "limited simulated": lambda: Limited(sim_robot(), max_velocity={"rad": 2.0}),
}
pytestmark = pytest.mark.parametrize("make", ROBOTS.values(), ids=ROBOTS.keys())


def still(robot: Robot) -> np.ndarray:
    return hold_target(robot, robot.observe())


def test_it_is_a_robot_with_a_clock(make: Make) -> None:
    robot = make()
    assert isinstance(robot, Robot)
    assert isinstance(robot.clock, Clock)


def test_its_spec_is_whole(make: Make) -> None:
    spec = make().spec
    assert len(set(spec.state_names)) == len(spec.state_names) == len(spec.state_units)
    sizes = {len(spec.action_names), len(spec.action_units), len(spec.action_low)}
    assert sizes == {len(spec.action_high)}
    assert len(set(spec.action_names)) == len(spec.action_names)
    assert np.all(np.asarray(spec.action_low) < np.asarray(spec.action_high))
    assert type(spec).from_dict(spec.to_dict()) == spec


def test_an_observation_fits_the_spec(make: Make) -> None:
    robot = make()
    seen = robot.observe()
    assert seen.state.shape == (len(robot.spec.state_names),)
    assert np.isfinite(seen.state).all()
    assert float(seen.time) == pytest.approx(robot.clock.now())
    assert set(seen.images) == set(robot.spec.cameras)


def test_images_have_the_size_that_the_spec_says(make: Make) -> None:
    robot = make()
    images = robot.observe().images
    for name, camera in robot.spec.cameras.items():
        assert images[name].shape == (camera.height, camera.width, 3)
        assert images[name].dtype == np.uint8


def test_a_command_returns_the_target_in_force(make: Make) -> None:
    robot = make()
    taken = robot.command(still(robot))
    assert taken.shape == (len(robot.spec.action_names),)
    assert np.all(taken >= np.asarray(robot.spec.action_low) - 1e-6)
    assert np.all(taken <= np.asarray(robot.spec.action_high) + 1e-6)


def test_a_target_out_of_reach_is_brought_into_reach(make: Make) -> None:
    robot = make()
    taken = robot.command(np.full(len(robot.spec.action_names), 1e3))
    assert np.all(taken <= np.asarray(robot.spec.action_high) + 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_target_that_is_no_number_moves_nothing(make: Make, bad: float) -> None:
    robot = make()
    before, time = robot.observe().state.copy(), robot.clock.now()
    target = still(robot)
    target[-1] = bad
    with pytest.raises(BadAction):
        robot.command(target)
    assert robot.observe().state == pytest.approx(before, abs=0.0)
    assert robot.clock.now() == time


@pytest.mark.parametrize("size", [0, 1, 99])
def test_a_target_of_another_shape_moves_nothing(make: Make, size: int) -> None:
    robot = make()
    before = robot.observe().state.copy()
    with pytest.raises(BadAction):
        robot.command(np.zeros(size))
    assert robot.observe().state == pytest.approx(before, abs=0.0)


def test_the_target_given_is_not_written_to(make: Make) -> None:
    robot = make()
    target = np.full(len(robot.spec.action_names), 1e3)
    robot.command(target)
    assert np.all(target == 1e3)


def test_what_was_observed_does_not_change_afterwards(make: Make) -> None:
    robot = make()
    seen = robot.observe()
    before = seen.state.copy()
    robot.command(np.clip(still(robot) + 0.05, robot.spec.action_low, robot.spec.action_high))
    assert seen.state == pytest.approx(before, abs=0.0)


def test_stopping_twice_is_safe(make: Make) -> None:
    robot = make()
    robot.stop()
    robot.stop()
