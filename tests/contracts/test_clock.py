"""What every Clock must do."""

from collections.abc import Callable

import pytest

from robot.clock import StepClock, WallClock
from robot.protocols import Clock
from sim.robosuite import TwoArmEnv


def physics_clock() -> Clock:
    return TwoArmEnv(task="lift").robot.clock


CLOCKS: list[Callable[[], Clock]] = [StepClock, lambda: WallClock(0.002), physics_clock]
pytestmark = pytest.mark.parametrize("make", CLOCKS, ids=["step", "wall", "physics"])


def test_it_is_a_clock(make: Callable[[], Clock]) -> None:
    assert isinstance(make(), Clock)


def test_time_is_a_float_that_never_goes_back(make: Callable[[], Clock]) -> None:
    clock = make()
    times: list[float] = []
    for _ in range(5):
        times.append(clock.now())
        clock.wait()
    assert all(isinstance(time, float) for time in times)
    assert times == sorted(times)


def test_waiting_tells_how_many_deadlines_were_missed(make: Callable[[], Clock]) -> None:
    clock = make()
    missed = clock.wait()
    assert isinstance(missed, int)
    assert missed >= 0
