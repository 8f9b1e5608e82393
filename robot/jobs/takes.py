"""One take: an episode driven by an expert or a policy, encoded where it was made.

Times are wall seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot.clock import Stopwatch
from robot.episodes import Key, Packed, pack
from robot.episodes.recorder import Demonstrator, Recorder, demonstrate
from robot.errors import AmbidexError, InfrastructureError
from robot.inference import Delayed
from robot.protocols import Env, Policy
from robot.runner import Runner
from robot.types import Outcome, Spec

EnvFactory = Callable[[], Env]
ExpertFactory = Callable[..., Demonstrator]
PolicyFactory = Callable[[], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One episode to run."""

    seed: int
    task: str
    quality: str

    @property
    def key(self) -> Key:
        """As in the store."""
        return (self.seed, self.task, self.quality)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One episode, ready to be stored, and what it cost."""

    packed: Packed
    success: bool
    spent: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TakeBench:
    """Runs episodes in a worker; every entry must be picklable.

    Attributes:
        tasks: Makes the environment of each task.
        expert: Called with an environment, ``quality=`` and ``seed=``; or None.
        policy: Makes the policy whose rollouts are kept; or None.
        cameras: Whose images are kept; all of the environment's if None.
        latency_s: Time from the policy's observation to its chunk on the robot's clock [s].
    """

    tasks: Mapping[str, EnvFactory]
    expert: ExpertFactory | None
    policy: PolicyFactory | None
    cameras: Sequence[str] | None
    latency_s: float

    def __call__(self) -> "_Worker":
        """Return what runs episodes; nothing is built before the first."""
        return _Worker(self)


class _Worker:
    def __init__(self, bench: TakeBench) -> None:
        self._bench = bench
        self._envs: dict[str, Env] = {}
        self._policy: Policy | None = None

    def close(self) -> None:
        for env in self._envs.values():
            env.close()
        self._envs.clear()

    def __call__(self, job: Job | str) -> Made | Spec:
        """Run one episode; or tell the spec of the task named."""
        if isinstance(job, str):
            return self._env(job).robot.spec
        env = self._env(job.task)
        cameras = self._bench.cameras
        recorder = Recorder(
            env,
            cameras=tuple(env.robot.spec.cameras) if cameras is None else cameras,
            quality=job.quality,
            goal=job.task,
        )
        run = self._roll_out if self._bench.policy else self._demonstrate
        episode, spent = run(env, recorder, job)
        watch = Stopwatch()
        packed = pack(episode)
        spent["encode"] = watch.elapsed
        return Made(packed=packed, success=episode.success, spent=spent)

    def _env(self, task: str) -> Env:
        if task not in self._envs:
            self._envs[task] = self._bench.tasks[task]()
        return self._envs[task]

    def _demonstrate(self, env: Env, recorder: Recorder, job: Job) -> Any:
        make = self._bench.expert
        if make is None:
            raise AmbidexError("nobody drives: give an expert or a policy")
        watch = Stopwatch()
        task = env.reset(job.seed)
        expert = make(env, quality=job.quality, seed=job.seed)
        reset = watch.elapsed
        subtasks = tuple(getattr(getattr(env, "goal", None), "subtasks", ()))
        episode, spent = demonstrate(
            env, expert, recorder, task=task, seed=job.seed, subtasks=subtasks
        )
        return episode, {"reset": reset, **spent}

    def _roll_out(self, env: Env, recorder: Recorder, job: Job) -> Any:
        if self._policy is None and self._bench.policy is not None:
            self._policy = self._bench.policy()
        if self._policy is None:
            raise AmbidexError("nobody drives: give an expert or a policy")
        watch = Stopwatch()
        inference = Delayed(self._policy, self._bench.latency_s, clock=env.robot.clock)
        record = Runner(env, inference, watchers=[recorder]).run(job.seed)
        if record.outcome is Outcome.ERROR or not record.steps:
            raise InfrastructureError(record.error or "the episode had no step")
        thought = float(np.sum(record.latencies))
        return recorder.episode(), {"policy": thought, "run": watch.elapsed - thought}
