"""Collect sibling labels: run a policy, and at each decision try all candidates.

Episodes go on with candidates chosen in several ways (``behaviours``), so that labels cover the
states of the plain policy, of a random choice and of a good one. A seed that is in the store is not
run again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from jaxtyping import Float
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from robot.errors import AmbidexError, InfrastructureError
from robot.executor import Executor, Local
from robot.inference import materialised
from robot.protocols import Env, Policy
from robot.siblings import Oracle, Siblings, SiblingWriter, Trial, joined
from robot.types import ActionChunk, Observation, Outcome, Plan

log = structlog.get_logger(__name__)

BEHAVIOURS: Mapping[str, float] = {"first": 0.4, "random": 0.3, "best": 0.3}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingBench:
    """Collects one episode of labels a call; made in the worker that needs it.

    Attributes:
        env: Makes the environment.
        policy: Makes the policy.
        oracle: Called with ``env=`` and ``policy=``: what tries candidates.
        out: Folder of the store.
        count: Candidates at each decision.
        behaviours: Odds of going on with the ``first``, a ``random`` or the ``best`` candidate.
        settings: How labels are made, kept in the store.
    """

    env: Callable[[], Env]
    policy: Callable[[], Policy]
    oracle: Callable[..., Oracle]
    out: Path
    count: int
    behaviours: Mapping[str, float]
    settings: Mapping[str, Any]

    def __call__(self) -> "_Collector":
        """Return what collects."""
        return _Collector(self)


class _Collector:
    def __init__(self, bench: SiblingBench) -> None:
        self._bench = bench
        self._env, self._policy = bench.env(), bench.policy()
        self._oracle = bench.oracle(env=self._env, policy=self._policy)
        self._writer = SiblingWriter(
            bench.out,
            spec=self._env.robot.spec,
            settings=bench.settings,
            environment_names=getattr(self._env, "environment_names", ()),
        )

    def close(self) -> None:
        self._env.close()

    def __call__(self, seed: int) -> dict[str, Any]:
        """Run the episode of ``seed``, store its labels and return notes on it."""
        env, rng = self._env, np.random.default_rng([seed, 0x51B])
        names = list(self._bench.behaviours)
        odds = np.array([self._bench.behaviours[name] for name in names])
        behaviour = str(rng.choice(names, p=odds / odds.sum()))
        task = env.reset(seed)
        self._policy.reset(seed)
        self._oracle.reset(seed)
        plan, found, step, outcome = Plan(task=task), list[Siblings](), 0, None
        while outcome is None:
            observation = env.robot.observe()
            chunk = self._policy.propose(observation, plan, self._bench.count)
            seen = materialised(observation)
            trial = self._oracle.try_out(observation, plan, chunk)
            if not np.isfinite(trial.scores).all():
                raise InfrastructureError(f"seed {seed}: a candidate has no score at step {step}")
            choice = _choose(behaviour, trial, rng)
            found.append(self._group(seen, plan, chunk, trial, choice, step, seed))
            for target in chunk.targets[choice, : int(np.asarray(chunk.commit)[choice])]:
                env.robot.command(target)
                step += 1
                outcome = env.judge(env.robot.observe())
                if outcome is not None:
                    break
        env.robot.stop()
        notes = {
            "task": task.name,
            "seed": seed,
            "behaviour": behaviour,
            "outcome": outcome.value,
            "steps": step,
            "decisions": len(found),
        }
        self._writer.append(episode_name(task.name, seed), joined(found), notes=notes)
        return notes

    def _group(
        self,
        seen: Observation,
        plan: Plan,
        chunk: ActionChunk,
        trial: Trial,
        choice: int,
        step: int,
        seed: int,
    ) -> Siblings:
        privileged = getattr(self._env, "environment_state", None)
        environment = np.zeros(0) if privileged is None else privileged()
        return Siblings(
            images={name: pixels[None] for name, pixels in seen.images.items()},
            state=_single(seen.state),
            targets=_single(chunk.targets),
            scores=_single(trial.scores),
            success=_single(trial.success),
            steps=_single(trial.steps),
            potential=_single(trial.potential),
            before=_single(trial.before),
            choice=np.array([choice], dtype=np.int64),
            environment=_single(environment),
            step=np.array([step], dtype=np.int64),
            seed=np.array([seed], dtype=np.int64),
            instruction=np.zeros(1, dtype=np.int64),
            instructions=(plan.task.instruction,),
        )


def _single(values: Any) -> Float[np.ndarray, "1 ..."]:
    return np.asarray(values, dtype=np.float32)[None]


def _choose(behaviour: str, trial: Trial, rng: np.random.Generator) -> int:
    if behaviour == "first":
        return 0
    if behaviour == "random":
        return int(rng.integers(len(trial.scores)))
    return int(np.argmax(trial.scores))


def episode_name(task: str, seed: int) -> str:
    """Return the folder of one episode in a store."""
    return f"{task}-{seed:08d}"


def collect_siblings(
    *,
    env: Callable[[], Env],
    policy: Callable[[], Policy],
    oracle: Callable[..., Oracle],
    out: Path,
    seeds: Iterable[int],
    count: int = 8,
    behaviours: Mapping[str, float] | None = None,
    settings: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    retries: int = 2,
    console: Console | None = None,
) -> dict[str, Any]:
    """Label candidates of a policy in one episode a seed; factories must be picklable.

    Args:
        env: Makes the environment.
        policy: Makes the policy.
        oracle: Called with ``env=`` and ``policy=``: what tries candidates.
        out: Folder of the store; episodes that are there are kept.
        seeds: Start states.
        count: Candidates at each decision.
        behaviours: Odds of going on with the ``first``, a ``random`` or the ``best`` candidate.
        settings: What else decides the labels (checkpoint, oracle), kept and compared on resume.
        executor: Where episodes run; two local processes by default.
        retries: Further attempts at an episode after an infrastructure error.
        console: Where progress is shown.

    Returns:
        ``episodes``, ``decisions``, ``successes`` of this run, ``kept`` from before and ``errors``.

    Raises:
        AmbidexError: If a behaviour is unknown, there is nothing to rank, or every episode fails.
        DatasetError: If ``out`` holds labels made in another way.
    """
    odds = dict(BEHAVIOURS if behaviours is None else behaviours)
    unknown = [name for name in odds if name not in BEHAVIOURS]
    if unknown or count < 2 or not sum(odds.values()) > 0:
        raise AmbidexError(
            f"cannot label {count} candidates under the behaviours {odds}; give at least 2 "
            f"candidates and odds for {', '.join(BEHAVIOURS)}"
        )
    bench = SiblingBench(
        env=env,
        policy=policy,
        oracle=oracle,
        out=Path(out),
        count=count,
        behaviours=odds,
        settings={"count": count, "behaviours": odds, **(settings or {})},
    )
    wanted = list(dict.fromkeys(int(seed) for seed in seeds))
    there = {int(p.name.rsplit("-", 1)[1]) for p in Path(out).glob("[!.]*-*") if p.is_dir()}
    missing = [seed for seed in wanted if seed not in there]
    told = {"episodes": 0, "decisions": 0, "successes": 0, "errors": 0}
    told["kept"] = len(wanted) - len(missing)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    crew = (executor or Local()).open(bench, retries=retries)
    with crew as workers, Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("sibling labels", total=len(wanted), completed=told["kept"])
        for done in workers.run(missing):
            if done.error:
                told["errors"] += 1
                log.warning("episode lost", seed=done.job, error=done.error)
            else:
                told["episodes"] += 1
                told["decisions"] += done.result["decisions"]
                told["successes"] += done.result["outcome"] == Outcome.SUCCESS.value
            progress.update(bar, advance=1, description=f"{told['decisions']} decisions")
    if missing and not told["episodes"]:
        raise AmbidexError(f"none of {len(missing)} episodes could be labelled; see the log above")
    return told
