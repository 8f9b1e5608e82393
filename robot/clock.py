"""A robot's time: physics steps, or a fixed grid of wall deadlines.

Times are float seconds. This module and drivers are the only ones that import ``time``.
"""

import time
from collections.abc import Callable
from math import floor

_ROUNDING = 1e-9  # [s]; the monotonic clock tells no less


class StepClock:
    """Physics time: it stands still until the simulator moves it on."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Return the physics time since the last reset [s]."""
        return self._now

    def wait(self) -> int:
        """Return at once: a simulated robot is never late."""
        return 0

    def advance(self, duration: float) -> None:
        """Move on by ``duration`` [s].

        Raises:
            ValueError: If the duration is negative or not finite.
        """
        if not 0.0 <= duration < float("inf"):
            raise ValueError(
                f"physics time cannot move on by {duration} s; give a duration >= 0, or set()"
            )
        self._now += duration

    def set(self, moment: float) -> None:
        """Stand at ``moment`` [s]: 0 at a reset, the moment of a snapshot at a restore."""
        self._now = float(moment)


class WallClock:
    """Deadlines on a fixed grid of the monotonic wall clock.

    Deadline ``k`` lies at ``k * period`` after the start, whatever happened before: a late step
    loses its own deadlines (they are counted) and never shifts those to come.

    Args:
        period: Time between control steps [s].
        monotonic, sleep: Source of time [s]; others than the system's are for tests.

    Raises:
        ValueError: If the period is not positive.
    """

    def __init__(
        self,
        period: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not period > 0.0:
            raise ValueError(f"a period of {period} s is no grid; give a period > 0")
        self.period = period
        self.misses = 0
        self._monotonic = monotonic
        self._sleep = sleep
        self._origin = monotonic()
        self._deadline = 0  # index on the grid of the last deadline waited for

    def now(self) -> float:
        """Return the time since the clock was made [s]."""
        return self._monotonic() - self._origin

    def wait(self) -> int:
        """Sleep to the next deadline and return how many were missed before it.

        A deadline is missed when ``wait`` is called after it.
        """
        due = self._deadline + 1
        now = self.now()
        missed = 0
        if now > due * self.period:
            ahead = floor(now / self.period) + 1
            missed = ahead - due
            due = ahead
        while (rest := due * self.period - self.now()) > _ROUNDING:
            self._sleep(rest)
        self._deadline = due
        self.misses += missed
        return missed


class Stopwatch:
    """Wall time since it was made: what a computation costs, on no robot's clock."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Wall time since the start [s]."""
        return time.perf_counter() - self._start
