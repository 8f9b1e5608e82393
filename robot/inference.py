"""Policies that answer later: after so many seconds of the robot's clock, or when they are done.

Both are an ``Inference``; the runner cannot tell them apart. Times [s].
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from robot.clock import Stopwatch
from robot.protocols import Clock, Policy
from robot.types import ActionChunk, Observation, Plan

_RECENT = 8  # answers from which the latency to expect is taken


def materialised(observation: Observation, cameras: Sequence[str] | None = None) -> Observation:
    """Return the observation with its images rendered and copied, safe to keep.

    Args:
        observation: May render its images on first access.
        cameras: Only these; all if None.

    Raises:
        KeyError: If a camera is not there.
        StaleFrame: If the physics moved on before the images were asked for.
    """
    names = list(observation.images) if cameras is None else cameras
    return Observation(
        time=observation.time,
        state=np.array(observation.state, copy=True),
        images={name: np.array(observation.images[name], copy=True) for name in names},
    )


class Delayed:
    """Hands a chunk over ``latency_s`` after it was asked for, on the robot's own clock.

    The policy is asked at once and its answer is held back, so latency is a parameter of an
    evaluation and not a property of the machine that runs it. With a latency of 0 the answer
    is there within the same control step.

    Args:
        policy: Who answers.
        latency_s: How long an answer takes on the robot's clock [s].
        clock: The robot's clock; needed if the latency is not 0.

    Raises:
        ValueError: If the latency is negative, or not 0 without a clock.
    """

    def __init__(
        self, policy: Policy, latency_s: float = 0.0, *, clock: Clock | None = None
    ) -> None:
        if not latency_s >= 0.0:
            raise ValueError(f"a latency of {latency_s} s is no latency; give one >= 0")
        if latency_s > 0.0 and clock is None:
            raise ValueError(
                f"a latency of {latency_s} s needs the robot's clock; pass clock=env.robot.clock"
            )
        self.policy = policy
        self._latencies: list[float] = []
        self._latency_s = latency_s
        self._clock = clock
        self._due = 0.0
        self._answer: ActionChunk | Exception | None = None

    @property
    def latency_s(self) -> float:
        """How long an answer takes on the robot's clock [s]."""
        return self._latency_s

    @property
    def latencies(self) -> Sequence[float]:
        """Wall time of each answer since the last reset [s]."""
        return self._latencies

    @property
    def busy(self) -> bool:
        """Whether an answer is held back."""
        return self._answer is not None

    def reset(self, seed: int) -> None:
        """Drop what is under way and start the policy's episode."""
        self._answer = None
        self._latencies = []
        self.policy.reset(seed)

    def submit(self, observation: Observation, plan: Plan) -> None:
        """Ask for a chunk.

        Raises:
            RuntimeError: If one is under way already.
        """
        _refuse_second(busy=self.busy)
        self._due = self._now() + self._latency_s
        watch = Stopwatch()
        try:
            self._answer = self.policy.propose(observation, plan, 1)[0]
        except (
            Exception
        ) as error:  # whatever it is, poll() raises it: that is where errors come out
            self._answer = error
        self._latencies.append(watch.elapsed)

    def poll(self) -> ActionChunk | None:
        """Return the chunk once its time has come; raise what the policy raised."""
        # Physics clocks sum periods: a microsecond of slack keeps rounding from costing a step.
        if self._answer is None or self._now() < self._due - 1e-6:
            return None
        answer, self._answer = self._answer, None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Drop what is under way."""
        self._answer = None

    def _now(self) -> float:
        return 0.0 if self._clock is None else self._clock.now()


class Threaded:
    """Asks the policy in a thread of its own, while the robot goes on.

    Images that would render lazily are rendered before they are handed over, in the caller's
    thread: a renderer belongs to the thread that made it.

    Args:
        policy: Who answers; touched by the worker's thread alone.
        latency_s: Latency to expect before the first answer [s].
        clock: Not used; there so that every inference is built by the same call.
    """

    def __init__(
        self, policy: Policy, latency_s: float = 0.0, *, clock: Clock | None = None
    ) -> None:
        del clock
        self.policy = policy
        self._latencies: list[float] = []
        self._recent: deque[float] = deque([latency_s], maxlen=_RECENT)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="policy")
        self._answer: Future[tuple[ActionChunk, float]] | None = None

    @property
    def latency_s(self) -> float:
        """Longest of the last few answers [s]: how early to ask."""
        return max(self._recent)

    @property
    def latencies(self) -> Sequence[float]:
        """Wall time of each answer since the last reset [s]."""
        return self._latencies

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return self._answer is not None

    def reset(self, seed: int) -> None:
        """Drop what is under way, wait until the policy is free, and start its episode."""
        self._drop()
        self._latencies = []
        self._worker.submit(self.policy.reset, seed).result()

    def submit(self, observation: Observation, plan: Plan) -> None:
        """Ask for a chunk.

        Raises:
            RuntimeError: If one is under way already.
        """
        _refuse_second(busy=self.busy)
        cameras: Sequence[str] | None = getattr(self.policy, "cameras", None)
        self._answer = self._worker.submit(self._propose, materialised(observation, cameras), plan)

    def poll(self) -> ActionChunk | None:
        """Return the chunk if it has come, else None; raise what the policy raised."""
        if self._answer is None or not self._answer.done():
            return None
        answer, self._answer = self._answer, None
        chunk, latency = answer.result()
        self._latencies.append(latency)
        self._recent.append(latency)
        return chunk

    def close(self) -> None:
        """Drop what is under way and end the thread; safe to call twice."""
        self._drop()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _propose(self, observation: Observation, plan: Plan) -> tuple[ActionChunk, float]:
        watch = Stopwatch()
        chunk = self.policy.propose(observation, plan, 1)[0]
        return chunk, watch.elapsed

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None


def _refuse_second(*, busy: bool) -> None:
    if busy:
        raise RuntimeError("a request is under way; poll() until it has come, or reset()")
