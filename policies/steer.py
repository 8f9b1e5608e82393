"""Steering: a value chooses among the chunks that a policy proposes.

Axes: ``n`` candidates, ``t`` steps, ``d`` action dimensions. A value that is late, raises, gives
anything but finite numbers, or cannot tell candidates apart never decides: the first candidate
runs, which is the chunk of the run without steering, and a counter rises.
"""

from collections import Counter
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from robot.clock import Stopwatch
from robot.errors import InfrastructureError
from robot.protocols import ActionValue, Policy
from robot.types import ActionChunk, Decision, Observation, Plan

LATE, NAN, CONSTANT, ERROR = "late", "nan", "constant", "error"
FALLBACKS = (LATE, NAN, CONSTANT, ERROR)


class RandomValue:
    """Scores that mean nothing: random-of-N, the control of every steered evaluation."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """Let all scores from here on follow from ``seed``."""
        self._rng = np.random.default_rng([seed, 0x5EED])

    def score(
        self, observation: Observation, plan: Plan, chunk: ActionChunk
    ) -> Float[np.ndarray, " n"]:
        """Return one random number for each candidate."""
        return self._rng.random(chunk.targets.shape[0])


class BestOf:
    """A policy that draws candidates of another and runs the one with the best score.

    Args:
        policy: Who proposes.
        value: Who scores; without one, the policy's first candidate runs.
        count: How many candidates are drawn; 1 is the plain policy and asks no value.
        deadline_s: Wall time the value has for its scores [s]; None waits for it.
        temperature: None takes the best score; else candidates are drawn with odds
            ``exp(score / temperature)``, in the unit of the score.
        keep_targets: Whether decisions hold the targets of all candidates.

    Attributes:
        decisions: Choices made since the last reset, those of fallbacks included.
        fallbacks: How often the first candidate ran since the last reset, by reason.
        last_error: What the value last raised, or empty.

    Raises:
        ValueError: If the count, the deadline or the temperature is not positive.
    """

    def __init__(
        self,
        policy: Policy,
        value: ActionValue | None = None,
        count: int = 1,
        *,
        deadline_s: float | None = None,
        temperature: float | None = None,
        keep_targets: bool = True,
    ) -> None:
        if count < 1:
            raise ValueError(f"the best of {count} candidates does not exist; give count >= 1")
        for name, limit in (("deadline_s", deadline_s), ("temperature", temperature)):
            if limit is not None and not limit > 0.0:
                raise ValueError(f"{name} is {limit}; give a positive number, or none at all")
        self.policy, self.value, self.count = policy, value, count
        self.deadline_s, self.temperature = deadline_s, temperature
        self.keep_targets = keep_targets
        self._worker: _Worker | None = None
        self._begin(0)

    def __getattr__(self, name: str) -> Any:
        # What the policy tells of itself (spec, cameras, period) holds for the steered one too.
        if name.startswith("_") or name == "policy":
            raise AttributeError(name)
        return getattr(self.policy, name)

    def reset(self, seed: int) -> None:
        """Forget the last episode; policy, value and choice follow from ``seed``."""
        self.policy.reset(seed)
        reset_value = getattr(self.value, "reset", None)
        if reset_value is not None:
            reset_value(seed)
        self._begin(seed)

    def _begin(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 0xC401CE])
        self.decisions = 0
        self.fallbacks: Counter[str] = Counter()
        self.last_error = ""

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        """Return the ``count`` best candidates, best first.

        Raises:
            ValueError: If more are asked for than are drawn.
        """
        value = self.value
        if value is None or self.count == 1:
            return self.policy.propose(observation, plan, count)
        if count > self.count:
            raise ValueError(
                f"{count} candidates are asked of a policy that draws {self.count} and ranks them; "
                "raise its count"
            )
        watch = Stopwatch()
        candidates = self.policy.propose(observation, plan, self.count)
        if candidates.targets.ndim != 3:
            raise ValueError(
                f"candidates of shape {candidates.targets.shape} come from a batch of "
                "observations; steer one robot at a time"
            )
        scores, fallback = self._scores(value, observation, plan, candidates)
        order = np.arange(self.count) if fallback else self._order(scores)
        self.decisions += 1
        if fallback:
            self.fallbacks[fallback] += 1
        decision = Decision(
            scores=scores,
            choice=int(order[0]),
            latency=watch.elapsed,
            fallback=fallback,
            targets=candidates.targets if self.keep_targets else None,
        )
        return ActionChunk(
            start=candidates.start,
            period=candidates.period,
            targets=candidates.targets[order[:count]],
            commit=np.asarray(candidates.commit)[order[:count]],
            decision=decision,
        )

    def _scores(
        self, value: ActionValue, observation: Observation, plan: Plan, candidates: ActionChunk
    ) -> tuple[Float[np.ndarray, " n"], str]:
        """Return scores, NaN where there is none, and why they must not decide (or empty)."""
        n = self.count
        none = np.full(n, np.nan)

        def compute() -> Any:
            return value.score(observation, plan, candidates)

        try:
            if self.deadline_s is None:
                raw = compute()
            else:
                self._worker = self._worker or _Worker()
                raw = self._worker.call(compute, within=self.deadline_s)
            if raw is None:
                return none, LATE
            scores = np.array(raw, dtype=np.float64)
            if scores.shape != (n,):
                raise ValueError(f"scores of shape {scores.shape} came for {n} candidates")
        except InfrastructureError:
            raise  # machinery, not the value: the episode is to be run again
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {error}"
            return none, ERROR
        scores[~np.isfinite(scores)] = np.nan
        known = scores[~np.isnan(scores)]
        if len(known) < 2 or known.min() == known.max():
            return scores, NAN if len(known) < n else CONSTANT
        return scores, ""

    def _order(self, scores: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return candidates from the first choice to the last; NaN is last, ties keep order."""
        if self.temperature is not None:
            # The greatest of scores with Gumbel noise is a draw from their softmax.
            scores = scores + self.temperature * self._rng.gumbel(size=len(scores))
        return np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")


class _Worker:
    """One thread that scores, so that a slow value cannot hold up the loop.

    While a late answer is still being computed, every further call is late at once.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._last: _Job | None = None
        Thread(target=self._work, daemon=True, name="value").start()

    def call[T](self, compute: Callable[[], T], *, within: float) -> T | None:
        """Return what ``compute`` returns, or None if it takes longer than ``within`` [s]."""
        if self._last is not None and not self._last.done.is_set():
            return None
        job = self._last = _Job(compute)
        self._jobs.put(job)
        if not job.done.wait(within):
            return None
        if job.error is not None:
            raise job.error
        return job.result

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job.result = job.compute()
            except Exception as error:
                job.error = error
            finally:
                job.done.set()


class _Job:
    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute, self.done = compute, Event()
        self.result: Any = None
        self.error: Exception | None = None
