"""Turns one run of a robot into an Episode: a watcher of the runner, and a loop for experts.

Axes: ``t`` steps, ``d`` action, ``e`` environment state. A simulator may say more than an ``Env``
must (``environment_state``, ``potential``, ``success``, ``state_hash``); what it says is recorded.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from robot.clock import Stopwatch
from robot.episodes.episode import Episode, Setback
from robot.errors import DatasetError
from robot.inference import materialised
from robot.protocols import Env
from robot.record import EpisodeRecord
from robot.types import ActionChunk, Observation, Outcome, Plan, Spec, Task


@runtime_checkable
class Demonstrator(Protocol):
    """Drives an environment that it knows from inside."""

    def act(self) -> Float[np.ndarray, " d"]:
        """Return what is right to do now: the label."""
        ...

    def perturb(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return what to execute in its place, so that recoveries are seen."""
        ...

    @property
    def subtask(self) -> int:
        """Index of the part of the task that the last ``act`` belongs to."""
        ...


class Recorder:
    """Keeps one run as an Episode; a watcher of the runner.

    Args:
        env: Asked for what only a simulation knows, at the moment of each row.
        cameras: Whose images to keep; no other is rendered.
        quality: What to call the way in which it is driven.
        goal: Key of the goal; the task's name if empty.
    """

    def __init__(
        self, env: Env, *, cameras: Sequence[str], quality: str = "rollout", goal: str = ""
    ) -> None:
        self.cameras = tuple(cameras)
        self._env: Any = env
        self._quality, self._goal = quality, goal
        self._rows: dict[str, list[Any]] = defaultdict(list)

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Forget the last episode and look at the start."""
        self._rows = defaultdict(list)
        self._seed, self._task, self._spec = seed, task, spec
        self._outcome: Outcome | None = None
        self._hash = self._env.state_hash() if hasattr(self._env, "state_hash") else ""
        self._look_inside()

    def _look_inside(self) -> None:
        if getattr(self._env, "environment_names", ()):
            self._inside = np.array(self._env.environment_state(), dtype=np.float32)
        if hasattr(self._env, "potential"):
            self._progress = float(self._env.potential())

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
        *,
        label: Float[np.ndarray, " d"] | None = None,
        subtask: int | None = None,
    ) -> None:
        """Keep one control step, after the robot took ``target``.

        Args:
            observation: What was seen before, with the images of ``cameras``.
            target: What was executed.
            chunk: The chunk that is followed.
            plan: What was asked for.
            label: What was right to do, if that is not ``target``.
            subtask: Index of the part of the task.
        """
        rows = self._rows
        rows["times"].append(float(observation.time))
        rows["states"].append(np.array(observation.state, copy=True))
        rows["executed"].append(np.array(target, copy=True))
        rows["actions"].append(np.array(target if label is None else label, copy=True))
        for camera in self.cameras:
            rows[f"image {camera}"].append(observation.images[camera])
        if subtask is not None:
            rows["subtask"].append(subtask)
        if hasattr(self, "_inside"):
            rows["environment"].append(self._inside)
        if hasattr(self, "_progress"):
            rows["progress"].append(self._progress)
        if hasattr(self._env, "success"):
            rows["reached"].append(bool(self._env.success()))
        self._look_inside()

    def end(self, record: EpisodeRecord) -> None:
        """Keep how the episode ended."""
        self._outcome = record.outcome

    def episode(
        self,
        *,
        outcome: Outcome | None = None,
        subtasks: Sequence[str] = (),
        setbacks: Sequence[Setback] = (),
    ) -> Episode:
        """Return what was kept.

        Args:
            outcome: How it ended, if ``end`` was not called.
            subtasks: Names of the parts of the task.
            setbacks: Stretches that brought the task no further.

        Raises:
            DatasetError: If not a single step was taken.
        """
        rows, outcome = self._rows, outcome or self._outcome
        if not rows["times"]:
            raise DatasetError(f"seed {self._seed}: not a single step was taken ({outcome})")
        return Episode(
            spec=self._spec,
            task=self._task,
            seed=self._seed,
            quality=self._quality,
            success=outcome is Outcome.SUCCESS,
            times=np.array(rows["times"]),
            states=np.stack(rows["states"]),
            actions=np.stack(rows["actions"]),
            images={camera: np.stack(rows[f"image {camera}"]) for camera in self.cameras},
            environment=np.stack(rows["environment"]) if rows["environment"] else None,
            environment_names=tuple(getattr(self._env, "environment_names", ())),
            executed=np.stack(rows["executed"]),
            progress=np.array(rows["progress"]) if rows["progress"] else None,
            reached=np.array(rows["reached"], dtype=bool) if rows["reached"] else None,
            subtask_index=np.array(rows["subtask"], np.int64) if rows["subtask"] else None,
            subtasks=tuple(subtasks) if rows["subtask"] else (),
            setbacks=tuple(setbacks),
            start_hash=self._hash,
            outcome=outcome,
            goal=self._goal,
        )


def demonstrate(
    env: Env,
    expert: Demonstrator,
    recorder: Recorder,
    *,
    task: Task,
    seed: int,
    subtasks: Sequence[str] = (),
) -> tuple[Episode, dict[str, float]]:
    """Let ``expert`` drive ``env``, which stands at its start, to the end of the episode.

    Returns:
        The episode, and the wall time [s] spent in ``render``, ``expert`` and ``physics``.
    """
    spent: dict[str, float] = {"render": 0.0, "expert": 0.0, "physics": 0.0}
    robot, plan = env.robot, Plan(task=task)
    recorder.begin(seed, task, robot.spec)
    observation = robot.observe()
    outcome = env.judge(observation)
    try:
        while outcome is None:
            watch = Stopwatch()
            seen = materialised(observation, recorder.cameras)
            spent["render"] += watch.elapsed
            watch = Stopwatch()
            label = expert.act()
            subtask = int(expert.subtask) if subtasks else None
            target = expert.perturb(label)
            spent["expert"] += watch.elapsed
            watch = Stopwatch()
            in_force = robot.command(target)
            robot.clock.wait()
            recorder.step(seen, in_force, None, plan, label=label, subtask=subtask)
            observation = robot.observe()
            outcome = env.judge(observation)
            spent["physics"] += watch.elapsed
    finally:
        robot.stop()
    setbacks = [
        Setback(start=int(s.start), end=int(s.end), kind=str(s.kind))
        for s in getattr(expert, "segments", ())
    ]
    return recorder.episode(outcome=outcome, subtasks=subtasks, setbacks=setbacks), spent
