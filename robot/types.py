"""What crosses the borders between packages: numpy and frozen dataclasses.

Axes: ``*b`` any leading batch (candidates when steering, frames when filtering), ``t`` steps of a
chunk, ``d`` action dimensions, ``s`` state dimensions, ``k`` waypoints, ``h w 3`` an image.
Times are float seconds on the robot's clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from robot.errors import BadAction

Images = Mapping[str, UInt8[np.ndarray, "*b h w 3"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSpec:
    """How one camera's images are made.

    ``quality`` is part of the specification because it changes pixels: ``exact`` is the
    simulator's own picture, ``fast`` a cheaper one, ``real`` a camera's.
    """

    height: int
    width: int
    quality: str = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Names, units, limits and rate of what a robot shows and takes.

    It travels with every dataset, checkpoint and robot; a mismatch is an error before anything
    moves.

    Attributes:
        robot: Name of the embodiment, e.g. ``Panda+Panda``.
        control: Meaning of a target, e.g. ``joint_position`` (absolute) or ``osc_pose``.
        rate: Control steps a second [Hz].
        state_names, state_units: One entry for each state dimension.
        action_names, action_units: One entry for each action dimension.
        action_low, action_high: Limits, in the unit of the entry.
        cameras: How the images of each camera are made.
    """

    robot: str
    control: str
    rate: float
    state_names: tuple[str, ...]
    state_units: tuple[str, ...]
    action_names: tuple[str, ...]
    action_units: tuple[str, ...]
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    cameras: Mapping[str, CameraSpec] = field(default_factory=dict[str, CameraSpec])

    @property
    def period(self) -> float:
        """Time between control steps [s]."""
        return 1.0 / self.rate

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, ready for JSON."""
        plain = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the spec that ``to_dict`` wrote.

        Raises:
            KeyError: If an entry is missing.
        """
        cameras = {name: CameraSpec(**camera) for name, camera in plain["cameras"].items()}
        rest: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
        rest["cameras"] = cameras
        return cls(**rest)

    def differences(self, other: "Spec", *, cameras: Sequence[str] | None = None) -> list[str]:
        """Return one sentence for each entry in which ``other`` differs; empty if none does.

        Args:
            other: The spec to compare with.
            cameras: Only these cameras matter (those a policy looks at); all of ours if None.
        """
        found: list[str] = []
        for name in ("robot", "control", "rate"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name}: {mine!r} against {theirs!r}")
        for name in ("state_names", "state_units", "action_names", "action_units"):
            found += _list_differences(name, getattr(self, name), getattr(other, name))
        for name in ("action_low", "action_high"):
            mine, theirs = np.asarray(getattr(self, name)), np.asarray(getattr(other, name))
            if mine.shape == theirs.shape and not np.allclose(mine, theirs, atol=1e-6):
                worst = int(np.argmax(np.abs(mine - theirs)))
                found.append(
                    f"{name}[{self.action_names[worst]}]: {mine[worst]:g} against {theirs[worst]:g}"
                )
        for name in self.cameras if cameras is None else cameras:
            mine, theirs = self.cameras.get(name), other.cameras.get(name)
            if mine != theirs:
                found.append(f"camera {name}: {mine} against {theirs}")
        return found


def _list_differences(name: str, mine: tuple[str, ...], theirs: tuple[str, ...]) -> list[str]:
    if mine == theirs:
        return []
    if len(mine) != len(theirs):
        only_mine = [n for n in mine if n not in theirs]
        only_theirs = [n for n in theirs if n not in mine]
        return [f"{name}: {len(mine)} against {len(theirs)} ({only_mine} against {only_theirs})"]
    return [
        f"{name}[{i}]: {a!r} against {b!r}"
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
        if a != b
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a robot shows at one moment (or a batch of moments).

    ``images`` may render on first access; asking after the physics moved on raises StaleFrame.
    """

    time: Float[np.ndarray, "*b"] | float
    state: Float[np.ndarray, "*b s"]
    images: Images = field(default_factory=dict[str, UInt8[np.ndarray, "*b h w 3"]])

    @staticmethod
    def stack(observations: Sequence["Observation"]) -> "Observation":
        """Return one observation with a new leading batch axis."""
        names = list(observations[0].images)
        return Observation(
            time=np.asarray([o.time for o in observations], dtype=np.float64),
            state=np.stack([o.state for o in observations]),
            images={n: np.stack([o.images[n] for o in observations]) for n in names},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How one chunk was chosen among its candidates: what a steered run logs.

    Attributes:
        scores: One score for each candidate; higher is better. NaN where none was given.
        choice: Index of the candidate that runs.
        latency: Time from observation to choice [s], on the wall clock.
        fallback: Why the value did not decide (late, nan, constant, error), or empty.
        targets: All candidates, ``(n, t, d)``; None if not kept.
    """

    scores: Float[np.ndarray, " n"]
    choice: int
    latency: float
    fallback: str = ""
    targets: Float[np.ndarray, "n t d"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionChunk:
    """Targets for the steps to come, indexed by time: a late chunk skips its stale head.

    Attributes:
        start: Time of the first target [s]: that of the observation it answers.
        period: Time between targets [s].
        targets: Absolute targets, in the units of the spec.
        commit: How many leading steps to trust before asking again, at least 1.
        decision: How the chunk was chosen, if it was.
    """

    start: float
    period: float
    targets: Float[np.ndarray, "*b t d"]
    commit: Int[np.ndarray, "*b"]
    decision: Decision | None = None

    @property
    def steps(self) -> int:
        """Number of targets along time."""
        return int(self.targets.shape[-2])

    def __getitem__(self, index: int) -> "ActionChunk":
        """Return candidate ``index`` of the first batch axis."""
        return ActionChunk(
            start=self.start,
            period=self.period,
            targets=self.targets[index],
            commit=np.asarray(np.asarray(self.commit)[index]),
            decision=self.decision,
        )

    def index(self, time: float) -> int:
        """Return the step in force at ``time``; may lie outside ``0 .. steps - 1``."""
        # Half a step would be ambiguous: physics clocks sum periods and are off by rounding only.
        return int(np.floor((time - self.start) / self.period + 1e-3))

    def at(self, time: float) -> Float[np.ndarray, " d"]:
        """Return the target in force at ``time``; past the end the last target is held.

        Raises:
            BadAction: If the chunk still has a batch axis, or ``time`` lies before its start.
        """
        if self.targets.ndim != 2:
            raise BadAction(
                f"a chunk of shape {self.targets.shape} still holds candidates; choose one first"
            )
        index = self.index(time)
        if index < 0:
            raise BadAction(f"time {time:.3f} s lies before the chunk's start {self.start:.3f} s")
        return self.targets[min(index, self.steps - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked for, in words; ``name`` is the key under which results are kept."""

    name: str
    instruction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where the tool shall go in one camera's image.

    Attributes:
        camera: Whose image.
        points: ``x, y`` in [0, 1] of the image's width and height.
        grip: Gripper opening at each waypoint, in [0, 1].
    """

    camera: str
    points: Float[np.ndarray, "k 2"]
    grip: Float[np.ndarray, " k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A task with what is done and what remains of it, and where to go next."""

    task: Task
    done: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    trace: Trace | None = None


class Outcome(StrEnum):
    """How an episode ended. ``ERROR`` is infrastructure and never counted as a failure."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    ERROR = "error"


Score = Float[np.ndarray, "*b"]
Mask = Bool[np.ndarray, "*b"]
