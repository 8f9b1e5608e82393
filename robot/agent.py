"""Chunks in, perhaps late; one target a control period out.

Axes: ``d`` action dimensions. Times [s] on the robot's clock.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
from jaxtyping import Float

from robot.errors import BadAction
from robot.protocols import Inference
from robot.types import ActionChunk, Observation, Plan


class Agent:
    """Follows the newest chunk by time, asks for the next one early, and holds when starved.

    A chunk is asked for again once its trusted steps, less those that an answer is known to
    take, have run. Until the answer comes the rest of the old chunk is followed; past its end
    the last target is held and ``starved`` rises.

    Args:
        inference: Who answers.
        hold: Target that holds the robot where an observation shows it; used until the first
            chunk comes.
        execute: Steps to run of each chunk before asking again; None leaves it to ``commit``.

    Raises:
        ValueError: If ``execute`` is less than 1.
    """

    def __init__(
        self,
        inference: Inference,
        *,
        hold: Callable[[Observation], Float[np.ndarray, " d"]],
        execute: int | None = None,
    ) -> None:
        if execute is not None and execute < 1:
            raise ValueError(f"execute={execute} would never move; give at least 1, or null")
        self._inference = inference
        self._hold = hold
        self._execute = execute
        self.chunk: ActionChunk | None = None
        self.starved = 0
        self.inferences = 0
        self._last: Float[np.ndarray, " d"] | None = None

    def reset(self, seed: int) -> None:
        """Forget the last episode."""
        self._inference.reset(seed)
        self.chunk = None
        self.starved = 0
        self.inferences = 0
        self._last = None

    def act(self, observation: Observation, plan: Plan) -> Float[np.ndarray, " d"]:
        """Return the target for the control step that begins with ``observation``.

        Raises:
            BadAction: If a chunk holds something that is no number, or several candidates.
        """
        now = float(observation.time)
        self._receive()
        if not self._inference.busy and self._due(now):
            self._inference.submit(observation, plan)
            self._receive()  # an answer without latency is used in the same step
        if self.chunk is not None and 0 <= self.chunk.index(now) < self.chunk.steps:
            self._last = np.asarray(self.chunk.at(now), dtype=np.float64)
        else:
            self.starved += 1
            if self._last is None:
                self._last = np.asarray(self._hold(observation), dtype=np.float64)
        return self._last

    def _receive(self) -> None:
        chunk = self._inference.poll()
        if chunk is None:
            return
        if chunk.targets.ndim != 2:
            raise BadAction(
                f"inference handed over a chunk of shape {chunk.targets.shape}; "
                "it must choose one candidate, (t, d)"
            )
        if not np.isfinite(chunk.targets).all():
            raise BadAction(
                f"a chunk that starts at {chunk.start:.3f} s holds NaN or infinity; "
                "look at the policy's statistics and weights"
            )
        self.chunk = chunk
        self.inferences += 1

    def _due(self, now: float) -> bool:
        if self.chunk is None:
            return True
        trusted = int(self.chunk.commit) if self._execute is None else self._execute
        trusted = max(1, min(trusted, self.chunk.steps))
        early = ceil(self._inference.latency_s / self.chunk.period - 1e-6)
        return self.chunk.index(now) >= trusted - early
