"""The roles of the system. An implementation joins the contract tests of its role.

Axes: ``*b`` batch, ``t`` steps, ``d`` action dimensions. Nothing is registered: objects are wrapped
around each other, and meet in ``configs/`` by ``_target_``.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from robot.types import ActionChunk, Observation, Outcome, Plan, Spec, Task


@runtime_checkable
class Clock(Protocol):
    """A robot's time: physics steps, or a fixed grid of wall deadlines."""

    def now(self) -> float:
        """Return the time [s]; it never goes back."""
        ...

    def wait(self) -> int:
        """Sleep to the next control deadline; return how many deadlines were missed before it."""
        ...


@runtime_checkable
class Robot(Protocol):
    """Something that shows an observation and follows absolute targets."""

    @property
    def spec(self) -> Spec:
        """What is shown and taken."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock on which all its times are told."""
        ...

    def observe(self) -> Observation:
        """Return what is seen now; images may render on first access."""
        ...

    def command(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Follow ``target`` for one period and return the target in force (after limits).

        Raises:
            BadAction: If the target has a wrong shape or is not finite; nothing moves.
        """
        ...

    def stop(self) -> None:
        """Hold still, now; safe to call twice and in any state."""
        ...


@runtime_checkable
class Env(Protocol):
    """A robot with a task that can be set up and judged."""

    @property
    def robot(self) -> Robot:
        """The robot in it."""
        ...

    def reset(self, seed: int) -> Task:
        """Set the start that ``seed`` names, and return what is asked for."""
        ...

    def judge(self, observation: Observation) -> Outcome | None:
        """Return how the episode ended, or None while it goes on."""
        ...

    def close(self) -> None:
        """Release renderers and devices; safe to call twice."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Proposes chunks of actions."""

    def reset(self, seed: int) -> None:
        """Forget the last episode; all randomness from here on follows from ``seed``."""
        ...

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        """Return ``count`` candidates on the first axis of ``targets`` and ``commit``.

        A batched observation (``*b``) gives targets ``(count, *b, t, d)``. The first candidate
        is the same whatever ``count`` is, so that a run without steering is the N=1 of a run
        with it.
        """
        ...


@runtime_checkable
class Planner(Protocol):
    """Says what remains to be done and where to go next, at its own slow rate."""

    def plan(self, observation: Observation, task: Task, previous: Plan | None) -> Plan:
        """Return the plan from here on."""
        ...


@runtime_checkable
class StateValue(Protocol):
    """How good it is to be here."""

    def value(self, observation: Observation, plan: Plan) -> Float[np.ndarray, "*b"]:
        """Return one score for each observation; higher is better."""
        ...


@runtime_checkable
class ValueStream(Protocol):
    """Judges one recording or run, moment after moment; its memory does not grow with it."""

    def push(self, observation: Observation) -> Float[np.ndarray, " b"]:
        """Return one score for each of ``b`` moments that follow those pushed before.

        State and images have one leading axis ``b``. A score depends on this moment and on those
        before it only; how moments are grouped into calls changes nothing.
        """
        ...


@runtime_checkable
class SequenceValue(Protocol):
    """How well a task goes, judged from what was seen so far: the same live as on a recording."""

    @property
    def cameras(self) -> tuple[str, ...]:
        """Cameras whose images it needs, in the names of the dataset."""
        ...

    @property
    def unit(self) -> str:
        """What a score is: ``progress``, ``-seconds to go``, ``return`` ..."""
        ...

    def begin(self, plan: Plan, *, rate_hz: float) -> ValueStream:
        """Return a stream for one recording or run at this rate of moments [Hz]."""
        ...


@runtime_checkable
class ActionValue(Protocol):
    """How good it is to do this here."""

    def score(
        self, observation: Observation, plan: Plan, chunk: ActionChunk
    ) -> Float[np.ndarray, "*b"]:
        """Return one score for each candidate chunk (first axis); higher is better."""
        ...


@runtime_checkable
class Inference(Protocol):
    """A policy that answers later."""

    def reset(self, seed: int) -> None:
        """Drop what is under way and forget the last episode."""
        ...

    def submit(self, observation: Observation, plan: Plan) -> None:
        """Ask for a chunk; at most one request is under way.

        Raises:
            RuntimeError: If one is under way already.
        """
        ...

    def poll(self) -> ActionChunk | None:
        """Return the chunk asked for if it has come, else None; raise what the policy raised."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        ...

    @property
    def latency_s(self) -> float:
        """How long an answer is expected to take on the robot's clock [s]."""
        ...

    @property
    def latencies(self) -> Sequence[float]:
        """Wall time of each answer since the last reset [s]."""
        ...

    def close(self) -> None:
        """Release threads and processes; safe to call twice."""
        ...
