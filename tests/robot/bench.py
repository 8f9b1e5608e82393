"""Small real objects: a point-like arm, a task for it, and policies that reach or fail."""

from collections.abc import Iterator, Mapping

import numpy as np

from robot.clock import StepClock
from robot.errors import BadAction, StaleFrame
from robot.limits import check_target
from robot.types import ActionChunk, CameraSpec, Observation, Outcome, Plan, Spec, Task

GOAL = 0.5
TASK = Task(name="reach", instruction="reach the goal")
PLAN = Plan(task=TASK)


def make_spec(dof: int = 2, *, rate: float = 20.0) -> Spec:
    names = tuple(f"joint{i + 1}" for i in range(dof))
    return Spec(
        robot="PointArm",
        control="joint_position",
        rate=rate,
        state_names=names,
        state_units=("rad",) * dof,
        action_names=names,
        action_units=("rad",) * dof,
        action_low=(-1.0,) * dof,
        action_high=(1.0,) * dof,
        cameras={"top": CameraSpec(height=4, width=6)},
    )


class Frames(Mapping[str, np.ndarray]):
    """Renders when asked, and not after the arm has moved on."""

    def __init__(self, arm: "PointArm") -> None:
        self._arm, self._moment = arm, arm.moves

    def __getitem__(self, name: str) -> np.ndarray:
        if name != "top":
            raise KeyError(name)
        if self._arm.moves != self._moment:
            raise StaleFrame("the arm has moved on")
        self._arm.rendered += 1
        return np.full((4, 6, 3), self._arm.moves % 256, dtype=np.uint8)

    def __iter__(self) -> Iterator[str]:
        return iter(("top",))

    def __len__(self) -> int:
        return 1


class PointArm:
    """Joints that are where they are told to be at the end of each period."""

    def __init__(self, *, dof: int = 2, rate: float = 20.0) -> None:
        self.spec = make_spec(dof, rate=rate)
        self.clock = StepClock()
        self.place = np.zeros(dof)
        self.blocked = False
        self.moves = self.stopped = self.rendered = 0
        self.commands: list[np.ndarray] = []

    def observe(self) -> Observation:
        return Observation(time=self.clock.now(), state=self.place.copy(), images=Frames(self))

    def command(self, target: np.ndarray) -> np.ndarray:
        check_target(self.spec, target)
        taken = np.clip(target, self.spec.action_low, self.spec.action_high)
        self.commands.append(taken)
        if not self.blocked:
            self.place = taken.copy()
        self.moves += 1
        self.clock.advance(self.spec.period)
        return taken

    def stop(self) -> None:
        self.stopped += 1


class PointEnv:
    """All joints shall come near ``GOAL``; a seed decides the start."""

    def __init__(
        self, robot: PointArm | None = None, *, time_limit_s: float = 2.0, held_steps: int = 1
    ) -> None:
        self.robot = robot or PointArm()
        self.closed = 0
        self._time_limit_s, self._held_steps, self._held = time_limit_s, held_steps, 0

    def reset(self, seed: int) -> Task:
        dof = len(self.robot.spec.action_names)
        self.robot.place = np.random.default_rng(seed).uniform(-0.5, 0.0, size=dof)
        self.robot.clock.set(0.0)
        self._held = 0
        return TASK

    def success(self) -> bool:
        return bool(np.abs(self.robot.place - GOAL).max() < 0.05)

    def judge(self, observation: Observation) -> Outcome | None:
        self._held = self._held + 1 if self.success() else 0
        if self._held >= self._held_steps:
            return Outcome.SUCCESS
        late = float(observation.time) >= self._time_limit_s - 1e-6
        return Outcome.TIMEOUT if late else None

    def state_hash(self) -> str:
        return self.robot.place.tobytes().hex()

    def close(self) -> None:
        self.closed += 1


class Reach:
    """Goes to ``goal`` in a straight line of ``steps``, with noise between the ends."""

    cameras = ("top",)

    def __init__(
        self,
        goal: float = GOAL,
        *,
        steps: int = 8,
        period: float = 0.05,
        commit: int = 4,
        noise: float = 0.0,
        ahead: int = 1,
    ) -> None:
        self.goal, self.steps, self.period, self.commit = goal, steps, period, commit
        self.noise, self.ahead = noise, ahead
        self.asked: list[float] = []
        self.seeds: list[int] = []
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)
        self._rng = np.random.default_rng(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        self.asked.append(float(np.max(observation.time)))
        state = np.asarray(observation.state, dtype=np.float64)
        share = np.linspace(0.0, 1.0, self.steps + 1)[1:, None]
        way = state[..., None, :] + share * (self.goal - state[..., None, :])
        # All candidates are drawn, so that the first is the same whatever `count` is.
        drawn = self._rng.normal(size=(32, *way.shape)) * self.noise
        targets = np.clip(way + drawn, -1.0, 1.0)[:count]
        return ActionChunk(
            start=float(np.max(observation.time)),
            period=self.period,
            targets=targets,
            commit=np.full(targets.shape[:-2], self.commit),
        )


class Broken(Reach):
    """A policy whose weights are missing."""

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        raise RuntimeError("weights are missing")


class Drunk(Reach):
    """A policy that says NaN."""

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        chunk = super().propose(observation, plan, count)
        chunk.targets[..., 0, 0] = np.nan
        return chunk


def refuse(arm: PointArm) -> None:
    """Let every further command be refused."""

    def command(target: np.ndarray) -> np.ndarray:
        raise BadAction("this arm refuses")

    arm.command = command  # type: ignore[method-assign]
