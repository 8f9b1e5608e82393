import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot.clock import StepClock, Stopwatch, WallClock


class Wall:
    """A wall whose time passes only in sleep and in work."""

    def __init__(self, start: float = 100.0, *, oversleep: float = 0.0) -> None:
        self.time, self.oversleep = start, oversleep

    def monotonic(self) -> float:
        return self.time

    def sleep(self, duration: float) -> None:
        self.time += duration + self.oversleep

    def clock(self, period: float) -> WallClock:
        return WallClock(period, monotonic=self.monotonic, sleep=self.sleep)


def test_wall_clock_starts_at_zero_and_waits_for_the_next_deadline() -> None:
    wall = Wall()
    clock = wall.clock(0.1)
    assert clock.now() == 0.0
    wall.time += 0.03
    assert clock.wait() == 0
    assert clock.now() == pytest.approx(0.1)


def test_deadlines_stay_on_the_grid_however_late_each_sleep_ends() -> None:
    wall = Wall(oversleep=0.004)
    clock = wall.clock(0.02)
    for k in range(1, 200):
        assert clock.wait() == 0
        assert clock.now() == pytest.approx(k * 0.02 + 0.004)


def test_a_late_step_loses_its_own_deadlines_and_shifts_no_other() -> None:
    wall = Wall()
    clock = wall.clock(0.1)
    clock.wait()
    wall.time += 0.35
    assert clock.wait() == 3
    assert clock.now() == pytest.approx(0.5)
    assert clock.wait() == 0
    assert clock.now() == pytest.approx(0.6)
    assert clock.misses == 3


@given(
    period=st.floats(1e-3, 1.0),
    work=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30),
)
def test_every_deadline_is_either_kept_or_counted_as_missed(
    period: float, work: list[float]
) -> None:
    wall = Wall(start=0.0)
    clock = wall.clock(period)
    for kept, duration in enumerate(work, start=1):
        wall.time += duration * period
        clock.wait()
        assert clock.now() / period == pytest.approx(kept + clock.misses, abs=1e-6)


def test_a_period_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="give a period > 0"):
        WallClock(0.0)


def test_step_clock_moves_only_when_it_is_moved() -> None:
    clock = StepClock()
    assert clock.wait() == 0
    assert clock.now() == 0.0
    clock.advance(0.05)
    assert clock.now() == 0.05
    clock.set(0.0)
    assert clock.now() == 0.0


@pytest.mark.parametrize("duration", [-0.1, float("nan"), float("inf")])
def test_step_clock_does_not_move_by_nonsense(duration: float) -> None:
    clock = StepClock()
    with pytest.raises(ValueError, match="cannot move on"):
        clock.advance(duration)
    assert clock.now() == 0.0


def test_stopwatch_counts_wall_time_up() -> None:
    watch = Stopwatch()
    first = watch.elapsed
    assert 0.0 <= first <= watch.elapsed
