"""Who looks on while the loop runs: records, views, heartbeats, decisions.

A watcher is shown every control step and decides nothing. One that needs images says so in an
attribute ``cameras``: the runner renders those before the robot moves on, since a simulator's
images cannot be rendered afterwards. Axes: ``t`` control steps, ``d`` action, ``s`` state.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, UInt8

from robot.clock import Stopwatch
from robot.record import EpisodeRecord
from robot.types import ActionChunk, Decision, Observation, Plan, Spec, Task


@runtime_checkable
class Watcher(Protocol):
    """Looks on; an optional attribute ``cameras`` names the images that ``step`` needs."""

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Start an episode; what was kept of the last one is forgotten or stored by now."""
        ...

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """See one control step.

        Args:
            observation: What was seen at its start.
            target: The target in force, after limits.
            chunk: The chunk that is followed; None before the first one.
            plan: What was asked for.
        """
        ...

    def end(self, record: EpisodeRecord) -> None:
        """See how the episode ended."""
        ...


def cameras_of(watchers: Sequence[Watcher]) -> list[str]:
    """Return the cameras that the watchers need now, each once."""
    wanted = (name for watcher in watchers for name in getattr(watcher, "cameras", ()))
    return list(dict.fromkeys(wanted))


class Recording:
    """Keeps one episode as arrays.

    Args:
        cameras: Whose images to keep.

    Attributes:
        times, states, targets: One entry for each control step.
        images: Frames by camera, one for each control step.
        record: How the episode ended; None while it runs.
    """

    def __init__(self, cameras: Sequence[str] = ()) -> None:
        self.cameras = tuple(cameras)
        self._clear()

    def _clear(self) -> None:
        self.times: list[float] = []
        self.states: list[Float[np.ndarray, " s"]] = []
        self.targets: list[Float[np.ndarray, " d"]] = []
        self.images: dict[str, list[UInt8[np.ndarray, "h w 3"]]] = {c: [] for c in self.cameras}
        self.record: EpisodeRecord | None = None

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Forget the last episode."""
        self._clear()

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """Keep one control step."""
        self.times.append(float(observation.time))
        self.states.append(np.array(observation.state, copy=True))
        self.targets.append(np.array(target, copy=True))
        for camera in self.cameras:
            self.images[camera].append(observation.images[camera])

    def end(self, record: EpisodeRecord) -> None:
        """Keep how the episode ended."""
        self.record = record


class Decisions:
    """Keeps how each chunk was chosen, with the time at which it came into force.

    Attributes:
        times: Time of the control step that first followed the chunk [s].
        starts: Time of the observation that the chunk answers [s].
        decisions: Scores, choice, latency and fallback of each; None where nothing was chosen.
    """

    def __init__(self) -> None:
        self.begin(0, Task(name="", instruction=""), None)

    def begin(self, seed: int, task: Task, spec: Spec | None) -> None:
        """Forget the last episode."""
        self.times: list[float] = []
        self.starts: list[float] = []
        self.decisions: list[Decision | None] = []
        self._last: ActionChunk | None = None

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """Keep the decision of a chunk that is new."""
        if chunk is None or chunk is self._last:
            return
        self._last = chunk
        self.times.append(float(observation.time))
        self.starts.append(chunk.start)
        self.decisions.append(chunk.decision)

    def end(self, record: EpisodeRecord) -> None:
        """Nothing remains to be done."""

    @property
    def fallbacks(self) -> dict[str, int]:
        """How often a value did not decide, by reason."""
        reasons = [d.fallback for d in self.decisions if d is not None and d.fallback]
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


class View:
    """Shows one camera's image at each control step.

    Args:
        show: Called with an image and the time [s]; a window, a stream or a video writer.
        camera: Whose image.
        every: Show only each so many control steps.
    """

    def __init__(
        self, show: Callable[[UInt8[np.ndarray, "h w 3"], float], None], camera: str, every: int = 1
    ) -> None:
        self._show = show
        self._camera = camera
        self._every = max(1, every)
        self._step = 0

    @property
    def cameras(self) -> tuple[str, ...]:
        """The camera, at the steps that are shown."""
        return (self._camera,) if self._step % self._every == 0 else ()

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Start to count."""
        self._step = 0

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """Show the image if it is this step's turn."""
        if self.cameras:
            self._show(observation.images[self._camera], float(observation.time))
        self._step += 1

    def end(self, record: EpisodeRecord) -> None:
        """Nothing remains to be done."""


class Heartbeat:
    """Touches a file while the loop is alive: who watches it can tell a slow run from a hung one.

    Args:
        path: The file; its content is the seed and the time [s] on the robot's clock.
        every_s: Wall time between two beats [s].
    """

    def __init__(self, path: str | Path, every_s: float = 1.0) -> None:
        self._path = Path(path)
        self._every_s = every_s
        self._seed = 0
        self._since: Stopwatch | None = None

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Beat once."""
        self._seed = seed
        self._beat(0.0)

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """Beat if the last one is long enough ago."""
        if self._since is None or self._since.elapsed >= self._every_s:
            self._beat(float(observation.time))

    def end(self, record: EpisodeRecord) -> None:
        """Beat once more."""
        self._beat(record.duration)

    def _beat(self, moment: float) -> None:
        self._path.write_text(f"{self._seed} {moment:.3f}\n", encoding="utf-8")
        self._since = Stopwatch()
