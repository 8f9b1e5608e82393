"""One worker's bench: environments, policies and values, built once and run trial by trial.

Whatever happens here is told apart: a policy that raises makes an ``error`` that names the policy;
anything else that raises is machinery and is raised as ``InfrastructureError``, so that the
executor tries again on a fresh bench. Neither is ever a failure of the policy.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robot.errors import AmbidexError, InfrastructureError, SpecMismatch
from robot.inference import Delayed
from robot.protocols import Env, Policy
from robot.runner import EpisodeRecord, Runner
from robot.trials import Arm, Check, EnvFactory, PolicyFactory, Result, Trial
from robot.types import ActionChunk, Decision, Observation, Outcome, Plan, Spec
from robot.watch import Decisions

Picture = Callable[[], np.ndarray]
Viewer = Callable[[Any], Picture]
Steer = Callable[..., Policy]


class SeedsNotEffective(AmbidexError):
    """A reset does not start where its seed says, so no rate could be believed."""


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """Makes a bench in the process that needs it; every entry must be picklable.

    Attributes:
        tasks: Makes the environment of each task.
        policy: Makes the policy that all arms share.
        arms: What is compared.
        steer: Called with ``policy=``, ``value=`` and ``count=``: the policy that chooses.
        latency_s: Time from observation to chunk on the robot's clock [s].
        viewer: Called with the environment; returns what takes a picture ``h w 3`` for the report.
    """

    tasks: Mapping[str, EnvFactory]
    policy: PolicyFactory
    arms: Mapping[str, Arm]
    steer: Steer | None = None
    latency_s: float = 0.0
    viewer: Viewer | None = None

    def __call__(self) -> "Bench":
        """Return a bench; nothing is built before its first trial."""
        return Bench(self)


class Bench:
    """Runs trials one after another; ``close`` releases the environments."""

    def __init__(self, plan: BenchPlan) -> None:
        self._plan = plan
        self._envs: dict[str, Env] = {}
        self._policies: dict[int, Policy] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._simulated: set[str] = set()

    def __call__(self, job: Trial | Check) -> Any:
        """Run one trial, or check one task."""
        return self._check(job) if isinstance(job, Check) else self._run(job)

    def close(self) -> None:
        """Release what was opened; safe to call twice."""
        for env in self._envs.values():
            env.close()
        self._envs.clear()

    def _env(self, task: str) -> Env:
        if task not in self._envs:
            self._envs[task] = self._plan.tasks[task]()
        return self._envs[task]

    def _policy(self, arm: Arm) -> Policy:
        make = arm.policy or self._plan.policy
        if id(make) not in self._policies:
            self._policies[id(make)] = make()
            torch = sys.modules.get("torch")
            if torch is not None:
                # Sums differ with the number of threads; every executor uses one.
                torch.set_num_threads(1)
        return self._policies[id(make)]

    def _value(self, name: str, task: str) -> Any:
        if (name, task) not in self._values:
            arm = self._plan.arms[name]
            value = arm.value() if arm.value is not None else None
            if isinstance(value, partial):
                self._simulated.add(name)
                value = value(env=self._env(task), policy=self._policy(arm))
            self._values[name, task] = value
        return self._values[name, task]

    def _steered(self, trial: Trial) -> Policy:
        arm = self._plan.arms[trial.arm]
        policy, value = self._policy(arm), self._value(trial.arm, trial.task)
        if value is None:
            if trial.judge and trial.judge in self._plan.arms:
                return _Judged(policy, self._value(trial.judge, trial.task))
            return policy
        if self._plan.steer is None:
            raise AmbidexError(
                f"arm {trial.arm!r} has a value but nothing steers by it; "
                "give `steer` (policies.steer.BestOf)"
            )
        return self._plan.steer(policy=policy, value=value, count=arm.count)

    def _check(self, check: Check) -> dict[str, Any]:
        env = self._env(check.task)
        spec = env.robot.spec
        if check.policy_spec is not None:
            _compare("the checkpoint", check.policy_spec, check.policy_cameras, check.task, spec)
        hashes = self._prove_seeds(env, check)
        for name in check.arms:
            policy = self._policy(self._plan.arms[name])
            known = getattr(policy, "spec", None)
            if isinstance(known, Spec):
                cameras = getattr(policy, "cameras", None)
                _compare(f"the policy of arm {name!r}", known, cameras, check.task, spec)
            self._steered(Trial(arm=name, task=check.task, seed=check.seeds[0]))
            value = self._value(name, check.task)
            known, cameras = getattr(value, "spec", None), getattr(value, "cameras", None)
            if isinstance(known, Spec):
                _compare(f"the value of arm {name!r}", known, cameras, check.task, spec)
        simulated = sorted(self._simulated)
        return {"spec": spec.to_dict(), "starts": hashes, "simulated": simulated}

    def _prove_seeds(self, env: Env, check: Check) -> dict[str, str]:
        first, second = check.seeds
        hashes: list[str] = []
        for seed in (first, second, first):
            env.reset(seed)
            hashes.append(_state_hash(env))
        if hashes[0] != hashes[2]:
            raise SeedsNotEffective(
                f"{check.task}: seed {first} was set twice and gave two different start states "
                f"({hashes[0][:12]} and {hashes[2][:12]}); nothing was reported. "
                "Its reset must draw everything from the seed"
            )
        if hashes[0] == hashes[1]:
            raise SeedsNotEffective(
                f"{check.task}: seeds {first} and {second} give the same start state "
                f"({hashes[0][:12]}), so its seed has no effect; nothing was reported. "
                "Its reset must place something by the seed"
            )
        return {str(first): hashes[0], str(second): hashes[1]}

    def _run(self, trial: Trial) -> Result:
        env = self._env(trial.task)
        policy = _Accountable(self._steered(trial))
        arm, log, film = self._plan.arms[trial.arm], Decisions(), None
        watchers: list[Any] = [log]
        if trial.film:
            from robot.report.film import FilmMaker

            film = FilmMaker(self._picture(env), rate=env.robot.spec.rate)
            watchers.append(film)
        latency_s = self._plan.latency_s if arm.latency_s is None else arm.latency_s
        inference = Delayed(policy, latency_s=latency_s, clock=env.robot.clock)
        record = None
        try:
            runner = Runner(env, inference, watchers=watchers, execute=arm.execute)
            record = runner.run(trial.seed)
        except Exception as error:
            if policy.fault is None:
                raise InfrastructureError(f"{trial}: {type(error).__name__}: {error}") from error
        finally:
            inference.close()
        if record is None or record.outcome is Outcome.ERROR:
            if policy.fault is None:
                raise InfrastructureError(f"{trial}: {record.error if record else 'no record'}")
            return _policy_error(trial, policy.fault)
        result = _result(trial, record, log)
        return replace(result, film=film.finish()) if film else result

    def _picture(self, env: Env) -> Picture:
        if self._plan.viewer is not None:
            return self._plan.viewer(env)

        def largest() -> np.ndarray:
            images = env.robot.observe().images
            if not images:
                raise InfrastructureError("no camera and no viewer to film an episode with")
            cameras = env.robot.spec.cameras
            return images[max(images, key=lambda name: cameras[name].height)]

        return largest


def _compare(
    name: str, spec: Spec, cameras: tuple[str, ...] | None, task: str, robot: Spec
) -> None:
    differences = spec.differences(robot, cameras=cameras)
    if differences:
        raise SpecMismatch(name, f"the robot of task {task!r}", differences)


def _state_hash(env: Env) -> str:
    state_hash = getattr(env, "state_hash", None)
    if state_hash is None:
        raise SeedsNotEffective(
            f"{type(env).__name__} has no state_hash(), so nothing proves that a seed sets the "
            "start; give the environment one"
        )
    return str(state_hash())


def _policy_error(trial: Trial, fault: Exception) -> Result:
    return Result(
        arm=trial.arm,
        task=trial.task,
        seed=trial.seed,
        outcome=Outcome.ERROR,
        error=f"{type(fault).__name__}: {fault}",
        fault="policy",
    )


def _result(trial: Trial, record: EpisodeRecord, log: Decisions) -> Result:
    chosen = zip(log.starts, log.decisions, strict=True)
    return Result(
        arm=trial.arm,
        task=trial.task,
        seed=trial.seed,
        outcome=record.outcome,
        start=record.state_hash,
        instruction=record.task.instruction,
        steps=record.steps,
        duration=round(float(record.duration), 6),
        success_once=bool(record.success_once),
        success_at_end=bool(record.success_at_end),
        time_to_success=record.time_to_success,
        inferences=record.inferences,
        latencies=tuple(float(v) for v in record.latencies),
        fallbacks=log.fallbacks,
        error=record.error,
        decisions=tuple((t, replace(d, targets=None)) for t, d in chosen if d is not None),
    )


class _Accountable:
    """A policy that remembers what it raised, so that its faults are not laid on the machinery."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.fault: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def reset(self, seed: int) -> None:
        try:
            self._policy.reset(seed)
        except Exception as error:
            self._blame(error)
            raise

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        try:
            return self._policy.propose(observation, plan, count)
        except Exception as error:
            self._blame(error)
            raise

    def _blame(self, error: Exception) -> None:
        if not isinstance(error, InfrastructureError):
            self.fault = error


class _Judged:
    """A policy whose proposal a value scores without choosing: for the curve under a film."""

    def __init__(self, policy: Policy, value: Any) -> None:
        self._policy, self._value = policy, value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def reset(self, seed: int) -> None:
        self._policy.reset(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        chunk = self._policy.propose(observation, plan, count)
        scores = np.asarray(self._value.score(observation, plan, chunk), dtype=np.float32)
        return replace(chunk, decision=Decision(scores=scores, choice=0, latency=0.0))
