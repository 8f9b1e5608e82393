"""The one control loop, for simulated and real robots alike. Times [s] on the robot's clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from robot.agent import Agent
from robot.errors import BadAction, InfrastructureError
from robot.inference import materialised
from robot.limits import hold_target
from robot.protocols import Env, Inference, Planner, Robot
from robot.record import EpisodeRecord
from robot.types import Observation, Outcome, Plan, Task
from robot.watch import Watcher, cameras_of

__all__ = ["EpisodeRecord", "Runner"]


@dataclass(slots=True, kw_only=True)
class _Progress:
    """What is known of an episode that runs."""

    task: Task
    seed: int
    steps: int = 0
    started: float = 0.0
    now: float = 0.0
    state_hash: str = ""
    succeeded_at: float | None = None  # first step at which the goal held, since the start
    judged_at: float | None = None  # when the environment called it a success
    success_now: bool = False
    misses: int = 0
    error: str = ""


class Runner:
    """Runs episodes of one environment: observe, judge, act, command, wait.

    An environment may say more than an ``Env`` must: ``success()`` (the goal holds now) and
    ``state_hash()`` (proof of the start) go into the record where they exist.

    Args:
        env: The robot and its task.
        inference: Who answers with chunks.
        watchers: Who looks on; shown each step once the robot took its target.
        planner: Says what remains to be done; without one the plan is the task.
        plan_period_s: Time between two plans [s].
        execute: Steps to run of each chunk before asking again; None leaves it to its commit.
        run_on_s: How long to go on after success [s], to see whether it lasts.
        wrap: Puts limits around the robot, e.g. ``partial(Limited, max_velocity=...)``.
    """

    def __init__(
        self,
        env: Env,
        inference: Inference,
        *,
        watchers: Sequence[Watcher] = (),
        planner: Planner | None = None,
        plan_period_s: float = 1.0,
        execute: int | None = None,
        run_on_s: float = 0.0,
        wrap: Callable[[Robot], Robot] | None = None,
    ) -> None:
        self.env = env
        self.inference = inference
        self.robot = env.robot if wrap is None else wrap(env.robot)
        self.agent = Agent(inference, hold=partial(hold_target, self.robot), execute=execute)
        self._watchers = tuple(watchers)
        self._planner = planner
        self._plan_period_s = plan_period_s
        self._run_on_s = run_on_s

    def run(self, seed: int) -> EpisodeRecord:
        """Run the episode that ``seed`` names and return how it went.

        A target that no robot may follow (``BadAction``) ends it as a failure of the policy; a
        failure of the machinery (``InfrastructureError``, ``OSError``) as an error. Anything else
        is raised. The robot is stopped whatever happens.
        """
        progress = _Progress(task=Task(name="", instruction=""), seed=seed)
        try:
            outcome = self._episode(progress)
        except BadAction as error:
            outcome, progress.error = Outcome.FAILURE, f"BadAction: {error}"
        except (InfrastructureError, OSError) as error:
            outcome, progress.error = Outcome.ERROR, f"{type(error).__name__}: {error}"
        finally:
            self.robot.stop()
        record = self._record(progress, outcome)
        for watcher in self._watchers:
            watcher.end(record)
        return record

    def _episode(self, progress: _Progress) -> Outcome:
        progress.task = self.env.reset(progress.seed)
        progress.state_hash = str(_ask(self.env, "state_hash", ""))
        self.agent.reset(progress.seed)
        for watcher in self._watchers:
            watcher.begin(progress.seed, progress.task, self.robot.spec)
        self.robot.clock.wait()  # the grid of deadlines begins here, however long the reset took
        observation = self.robot.observe()
        progress.started = progress.now = float(observation.time)
        plan = Plan(task=progress.task)
        planned = -inf
        while (outcome := self._outcome(progress, observation)) is None:
            if self._planner is not None and progress.now - planned >= self._plan_period_s - 1e-6:
                plan = self._planner.plan(observation, progress.task, plan)
                planned = progress.now
            self._step(progress, observation, plan)
            progress.misses += self.robot.clock.wait()
            observation = self.robot.observe()
            progress.now = float(observation.time)
        return outcome

    def _step(self, progress: _Progress, observation: Observation, plan: Plan) -> None:
        target = self.agent.act(observation, plan)
        cameras = cameras_of(self._watchers)
        seen = materialised(observation, cameras) if cameras else observation
        in_force = self.robot.command(target)
        progress.steps += 1
        for watcher in self._watchers:
            watcher.step(seen, in_force, self.agent.chunk, plan)

    def _outcome(self, progress: _Progress, observation: Observation) -> Outcome | None:
        """Return how the episode ends here, or None if it goes on."""
        judged = self.env.judge(observation)
        progress.success_now = bool(_ask(self.env, "success", judged is Outcome.SUCCESS))
        if progress.success_now and progress.succeeded_at is None:
            progress.succeeded_at = progress.now - progress.started
        if progress.judged_at is None:
            if judged is not Outcome.SUCCESS:
                return judged
            progress.judged_at = progress.now
        lasted = progress.now - progress.judged_at >= self._run_on_s - 1e-6
        over = lasted or judged not in (None, Outcome.SUCCESS)
        return Outcome.SUCCESS if over else None

    def _record(self, progress: _Progress, outcome: Outcome) -> EpisodeRecord:
        ran = progress.steps > 0  # else the counters are those of the last episode
        return EpisodeRecord(
            outcome=outcome,
            task=progress.task,
            seed=progress.seed,
            steps=progress.steps,
            duration=progress.now - progress.started,
            success_once=progress.succeeded_at is not None or outcome is Outcome.SUCCESS,
            success_at_end=progress.success_now,
            time_to_success=progress.succeeded_at,
            state_hash=progress.state_hash,
            inferences=self.agent.inferences if ran else 0,
            latencies=tuple(self.inference.latencies) if ran else (),
            misses=progress.misses,
            starved=self.agent.starved if ran else 0,
            error=progress.error,
        )


def _ask(env: Env, name: str, otherwise: object) -> object:
    """Return what an optional method of the environment says, or ``otherwise`` without one."""
    method = getattr(env, name, None)
    return otherwise if method is None else method()
