"""One recorded episode, as plain arrays.

Axes: ``t`` steps, ``s`` state, ``d`` action, ``e`` environment state, ``h w 3`` an image.
Row ``i`` is what was seen before step ``i``, and the target that was asked for then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from robot.errors import DatasetError
from robot.types import Outcome, Spec, Task

Key = tuple[int, str, str]
"""What makes an episode unique in a store: seed, goal, quality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """Rows ``start`` to ``end`` (exclusive) that brought the task no further, and why."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What was seen, asked for and reached in one episode.

    Attributes:
        spec: Names, units and limits of states and actions.
        task: What was asked for, in words.
        seed: Names the start state.
        quality: How it was driven: ``clean``, ``hesitating``, ..., or ``rollout`` of a policy.
        success: Whether the goal was reached.
        times: Robot's clock at each row [s], as measured.
        states, actions: In the units of the spec.
        images: One array for each camera recorded.
        environment: Privileged state of the objects; no policy may see it.
        environment_names: One name for each of its entries.
        executed: What was really commanded where it differs from ``actions`` (noise that makes
            recoveries); None if nothing differs.
        progress: Privileged progress of the goal in [0, 1] at each row.
        reached: Whether the goal held after each step.
        subtask_index: Index into ``subtasks`` of each row.
        subtasks: Names of the parts of the task, all different.
        setbacks: Stretches that brought the task no further.
        start_hash: Hash of the physics state at the start.
        outcome: How it ended; None if that is not known.
        goal: Key of the goal; the task's name if empty.
    """

    spec: Spec
    task: Task
    seed: int
    quality: str
    success: bool
    times: Float[np.ndarray, " t"]
    states: Float[np.ndarray, "t s"]
    actions: Float[np.ndarray, "t d"]
    images: Mapping[str, UInt8[np.ndarray, "t h w 3"]] = field(
        default_factory=dict[str, UInt8[np.ndarray, "t h w 3"]]
    )
    environment: Float[np.ndarray, "t e"] | None = None
    environment_names: tuple[str, ...] = ()
    executed: Float[np.ndarray, "t d"] | None = None
    progress: Float[np.ndarray, " t"] | None = None
    reached: Bool[np.ndarray, " t"] | None = None
    subtask_index: Int[np.ndarray, " t"] | None = None
    subtasks: tuple[str, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    start_hash: str = ""
    outcome: Outcome | None = None
    goal: str = ""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.times)

    @property
    def key(self) -> Key:
        """Seed, goal and quality."""
        return (self.seed, self.goal or self.task.name, self.quality)

    def check(self) -> None:
        """Raise if this episode cannot be stored without loss or nonsense.

        Raises:
            DatasetError: If lengths differ, a number is not finite, or a camera, subtask or state
                does not fit the spec; all faults are named.
        """
        faults = [*_shape_faults(self), *_value_faults(self), *_camera_faults(self)]
        if faults:
            lines = "\n  ".join(faults)
            raise DatasetError(f"episode {self.key} was not stored; mend this first:\n  {lines}")


def _rows(episode: Episode) -> dict[str, tuple[np.ndarray, int | None]]:
    """Return each array with the width that it needs (None: one number a row)."""
    spec = episode.spec
    found: dict[str, tuple[np.ndarray | None, int | None]] = {
        "times": (episode.times, None),
        "states": (episode.states, len(spec.state_names)),
        "actions": (episode.actions, len(spec.action_names)),
        "environment": (episode.environment, len(episode.environment_names)),
        "executed": (episode.executed, len(spec.action_names)),
        "progress": (episode.progress, None),
        "reached": (episode.reached, None),
        "subtask_index": (episode.subtask_index, None),
    }
    return {name: (rows, width) for name, (rows, width) in found.items() if rows is not None}


def _shape_faults(episode: Episode) -> list[str]:
    steps = len(episode.times)
    faults = [] if steps else ["it has no rows"]
    for name, (rows, width) in _rows(episode).items():
        needed = (steps,) if width is None else (steps, width)
        if rows.shape != needed:
            faults.append(f"{name} has shape {rows.shape}, needed {needed}")
    for camera, frames in episode.images.items():
        if frames.shape[0] != steps:
            faults.append(f"camera {camera} has {len(frames)} frames for {steps} rows")
    return faults


def _value_faults(episode: Episode) -> list[str]:
    faults: list[str] = []
    names = {"states": episode.spec.state_names, "actions": episode.spec.action_names}
    for name, (rows, _) in _rows(episode).items():
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            where = [int(i) for i in bad[0]]
            entry = f" ({names[name][where[1]]})" if name in names and len(where) > 1 else ""
            faults.append(f"{name} is not finite in row {where[0]}{entry}, {len(bad)} in all")
    if len(set(episode.subtasks)) != len(episode.subtasks):
        faults.append(f"subtasks {episode.subtasks} are not all different")
    index = episode.subtask_index
    if index is not None and index.size:
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= len(episode.subtasks):
            faults.append(f"subtask_index spans {low}..{high} of {len(episode.subtasks)} subtasks")
    return faults


def _camera_faults(episode: Episode) -> list[str]:
    faults: list[str] = []
    for camera, frames in episode.images.items():
        needed = episode.spec.cameras.get(camera)
        if needed is None:
            known = ", ".join(episode.spec.cameras) or "none"
            faults.append(f"camera {camera} is not in the spec (it has {known})")
        elif frames.shape[1:] != (needed.height, needed.width, 3):
            faults.append(
                f"camera {camera} has frames of {frames.shape[1:]}, "
                f"the spec says {(needed.height, needed.width, 3)}"
            )
        if frames.dtype != np.uint8:
            faults.append(f"camera {camera} has {frames.dtype}, needed uint8")
    return faults
