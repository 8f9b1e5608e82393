"""The safety envelope around a robot, the same in simulation as on hardware.

Axes: ``d`` action dimensions. Positions in the units of the spec, velocities in units a second.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from robot.errors import BadAction, UnknownName
from robot.protocols import Clock, Robot
from robot.types import Observation, Spec

_PAUSE = 2.5  # periods without a command after which the measured position is the base


def check_target(spec: Spec, target: Float[np.ndarray, " d"]) -> None:
    """Refuse a target that no robot may follow.

    Raises:
        BadAction: If its shape is not that of the spec, or an entry is not finite.
    """
    found = np.asarray(target)
    needed = (len(spec.action_names),)
    if found.shape != needed:
        raise BadAction(
            f"a target of shape {found.shape} does not fit {spec.robot}, which takes {needed}: "
            f"{', '.join(spec.action_names)}; nothing was moved"
        )
    bad = ~np.isfinite(found)
    if bad.any():
        names = [name for name, wrong in zip(spec.action_names, bad, strict=True) if wrong]
        raise BadAction(
            f"the target of {', '.join(names)} is not finite; nothing was moved, the last target "
            "stays in force"
        )


def measured_target(spec: Spec, observation: Observation) -> Float[np.ndarray, " d"]:
    """Return the target that holds the robot where it is seen: each entry's measured value.

    Raises:
        BadAction: If an entry of the action is not part of the state.
    """
    missing = [name for name in spec.action_names if name not in spec.state_names]
    if missing:
        raise BadAction(
            f"cannot hold {spec.robot} under {spec.control!r}: the state does not measure "
            f"{', '.join(missing)}; give the robot a hold_target(observation) method"
        )
    index = [spec.state_names.index(name) for name in spec.action_names]
    return np.asarray(observation.state, dtype=np.float64)[index]


def hold_target(robot: Robot, observation: Observation) -> Float[np.ndarray, " d"]:
    """Return the target that holds ``robot``: its own ``hold_target()`` if it has one."""
    own = getattr(robot, "hold_target", None)
    return measured_target(robot.spec, observation) if own is None else own(observation)


class Limited:
    """A robot that never gets a target out of reach, too fast, or too far ahead of the arm.

    Every limit that acts is counted for its joint. Without a command the robot is left alone:
    the last target holds, and no zeros are ever sent.

    Args:
        robot: Who is limited.
        max_velocity: Largest change of the target, by unit: ``{"rad": 2.0}`` [unit/s].
        max_lead: Largest distance of the target from the measured position, by unit [unit]; a
            blocked arm is then not wound up. Entries that the state does not measure are free.
        margin: Distance kept from the limits of the spec, by unit [unit].

    Attributes:
        clamps: How often each kind of limit acted, by joint.

    Raises:
        UnknownName: If no entry of the action has such a unit.
        ValueError: If a limit is not positive, or the margin leaves no room.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        max_velocity: Mapping[str, float] | None = None,
        max_lead: Mapping[str, float] | None = None,
        margin: Mapping[str, float] | None = None,
    ) -> None:
        self.robot = robot
        spec = robot.spec
        room = _by_unit(spec, margin, otherwise=0.0)
        self._low = np.asarray(spec.action_low, dtype=np.float64) + room
        self._high = np.asarray(spec.action_high, dtype=np.float64) - room
        self._step = _positive(spec, max_velocity, "max_velocity") * spec.period
        self._lead = _positive(spec, max_lead, "max_lead")
        if (self._low > self._high).any():
            tight = spec.action_names[int(np.argmax(self._low > self._high))]
            raise ValueError(f"the margin leaves {tight} no room; make it smaller")
        self._measures = np.asarray([n in spec.state_names for n in spec.action_names])
        self._index = [
            spec.state_names.index(n) if n in spec.state_names else 0 for n in spec.action_names
        ]
        self.clamps: dict[str, dict[str, int]] = {
            kind: dict.fromkeys(spec.action_names, 0) for kind in ("position", "velocity", "lead")
        }
        self._last: Float[np.ndarray, " d"] | None = None
        self._last_time = -np.inf
        self._seen: Observation | None = None

    @property
    def spec(self) -> Spec:
        """The robot's own."""
        return self.robot.spec

    @property
    def clock(self) -> Clock:
        """The robot's own."""
        return self.robot.clock

    def observe(self) -> Observation:
        """Return what the robot shows, and remember it as the measured position."""
        self._seen = self.robot.observe()
        return self._seen

    def command(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Follow ``target`` as far as the limits allow and return what is in force.

        Raises:
            BadAction: If the target has a wrong shape or is not finite; nothing moves.
        """
        check_target(self.spec, target)
        now = self.clock.now()
        seen = self._seen
        if seen is None or abs(float(seen.time) - now) > self.spec.period:
            seen = self.observe()
        wanted = np.asarray(target, dtype=np.float64)
        measured = self._measured(seen)
        paused = not 0.0 <= now - self._last_time <= _PAUSE * self.spec.period
        base = self._last
        if base is None or paused:
            base = np.where(self._measures, measured, wanted if base is None else base)
        allowed = self._clamp("lead", wanted, measured - self._lead, measured + self._lead)
        allowed = self._clamp("velocity", allowed, base - self._step, base + self._step)
        allowed = self._clamp("position", allowed, self._low, self._high)
        taken = np.asarray(self.robot.command(allowed), dtype=np.float64)
        self._last, self._last_time = taken, now
        return taken

    def stop(self) -> None:
        """Stop the robot; the next command starts from the measured position."""
        self._last = None
        self.robot.stop()

    def hold_target(self, observation: Observation) -> Float[np.ndarray, " d"]:
        """Return the target that holds the robot where it is seen."""
        return hold_target(self.robot, observation)

    def _measured(self, seen: Observation) -> Float[np.ndarray, " d"]:
        """Return the measured position of each entry; NaN where the state has none."""
        state = np.asarray(seen.state, dtype=np.float64)
        return np.where(self._measures, state[self._index], np.nan)

    def _clamp(
        self,
        kind: str,
        wanted: Float[np.ndarray, " d"],
        low: Float[np.ndarray, " d"],
        high: Float[np.ndarray, " d"],
    ) -> Float[np.ndarray, " d"]:
        # NaN bounds are no bounds: fmin and fmax take the number.
        allowed = np.fmax(np.fmin(wanted, high), low)
        acted: Bool[np.ndarray, " d"] = np.abs(allowed - wanted) > 1e-9
        for name, clamped in zip(self.spec.action_names, acted, strict=True):
            self.clamps[kind][name] += int(clamped)
        return allowed


def _by_unit(
    spec: Spec, limits: Mapping[str, float] | None, *, otherwise: float
) -> Float[np.ndarray, " d"]:
    for unit in limits or {}:
        if unit not in spec.action_units:
            raise UnknownName(
                f"unit of {spec.robot}'s action", unit, sorted(set(spec.action_units))
            )
    chosen = limits or {}
    return np.asarray([chosen.get(unit, otherwise) for unit in spec.action_units], dtype=np.float64)


def _positive(spec: Spec, limits: Mapping[str, float] | None, name: str) -> Float[np.ndarray, " d"]:
    for unit, limit in (limits or {}).items():
        if not limit > 0.0:
            raise ValueError(f"{name} of {limit} {unit} lets nothing move; give a number > 0")
    return _by_unit(spec, limits, otherwise=np.inf)
