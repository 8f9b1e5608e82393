"""A tiny world for evaluations: a point that shall reach a goal, in plain numpy.

Everything is importable, since spawned workers build it by name.
"""

import hashlib
import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from robot.errors import InfrastructureError
from robot.trials import Arm
from robot.types import ActionChunk, CameraSpec, Decision, Observation, Outcome, Plan, Spec, Task

SPEC = Spec(
    robot="point",
    control="joint_position",
    rate=20.0,
    state_names=("x", "y"),
    state_units=("m", "m"),
    action_names=("x", "y"),
    action_units=("m", "m"),
    action_low=(-10.0, -10.0),
    action_high=(10.0, 10.0),
    cameras={"top": CameraSpec(height=32, width=48)},
)


class StepTime:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self) -> int:
        return 0


class PointRobot:
    def __init__(self) -> None:
        self.spec = SPEC
        self.clock = StepTime()
        self.place = np.zeros(2)
        self.goal = np.zeros(2)

    def observe(self) -> Observation:
        image = np.full((32, 48, 3), 230, dtype=np.uint8)
        for (x, y), colour in ((self.goal, (40, 160, 40)), (self.place, (200, 40, 40))):
            row, column = int(np.clip(16 - 5 * y, 1, 30)), int(np.clip(24 + 5 * x, 1, 46))
            image[row - 1 : row + 2, column - 1 : column + 2] = colour
        return Observation(time=self.clock.time, state=self.place.copy(), images={"top": image})

    def command(self, target: np.ndarray) -> np.ndarray:
        self.place = self.place + np.clip(target - self.place, -0.25, 0.25)
        self.clock.time += SPEC.period
        return target

    def stop(self) -> None:
        return


class PointEnv:
    """``blind`` ignores its seed; ``drifting`` never starts twice in the same place."""

    def __init__(self, *, blind: bool = False, drifting: bool = False) -> None:
        self.robot = PointRobot()
        self.closed = 0
        self._blind, self._drifting, self._resets = blind, drifting, 0

    def reset(self, seed: int) -> Task:
        self._resets += 1
        noise = np.random.default_rng([0 if self._blind else seed, self._drifting * self._resets])
        self.robot.place = noise.normal(size=2)
        self.robot.goal = noise.normal(size=2)
        self.robot.clock.time = 0.0
        return Task(name="reach", instruction="reach the green square")

    def success(self) -> bool:
        return bool(np.linalg.norm(self.robot.place - self.robot.goal) < 0.3)

    def judge(self, observation: Observation) -> Outcome | None:
        if self.success():
            return Outcome.SUCCESS
        return Outcome.TIMEOUT if self.robot.clock.time > 0.99 else None

    def state_hash(self) -> str:
        state = np.concatenate([self.robot.place, self.robot.goal])
        return hashlib.sha256(state.tobytes()).hexdigest()

    def close(self) -> None:
        self.closed += 1


class Wander:
    """Proposes random places near the one it is at; all chance follows from the episode's seed."""

    spec = SPEC
    cameras = ("top",)

    def reset(self, seed: int) -> None:
        self._noise = np.random.default_rng(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        ways = self._noise.normal(scale=0.9, size=(64, 1, 2))[:count]
        targets = np.repeat(np.asarray(observation.state) + ways, 4, axis=1)
        return ActionChunk(
            start=float(observation.time),
            period=SPEC.period,
            targets=targets.astype(np.float32),
            commit=np.full(count, 4),
        )


class Broken(Wander):
    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        raise ValueError("weights are missing")


class Wide(Wander):
    spec = replace(SPEC, state_names=("x", "z"))


class Nearness:
    """Knows the goal, which only a privileged value may."""

    def __init__(self, env: PointEnv, policy: Wander) -> None:
        self._env = env

    def score(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> np.ndarray:
        return -np.linalg.norm(chunk.targets[..., -1, :] - self._env.robot.goal, axis=-1)


class Outwards:
    def score(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> np.ndarray:
        return np.linalg.norm(chunk.targets[..., -1, :], axis=-1)


@dataclass
class Choose:
    """The steered policy, as small as it can be."""

    policy: Wander
    value: Nearness
    count: int

    def reset(self, seed: int) -> None:
        self.policy.reset(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        chunk = self.policy.propose(observation, plan, self.count)
        scores = np.asarray(self.value.score(observation, plan, chunk))
        choice = int(np.argmax(scores))
        decision = Decision(scores=scores, choice=choice, latency=0.001)
        return replace(
            chunk,
            targets=chunk.targets[choice][None],
            commit=chunk.commit[choice][None],
            decision=decision,
        )


def near() -> object:
    return partial(Nearness)


def blind_env() -> PointEnv:
    return PointEnv(blind=True)


def drifting_env() -> PointEnv:
    return PointEnv(drifting=True)


@dataclass
class CrashOnce:
    """Makes an environment whose given seeds raise, or kill the worker, the first ``times``."""

    folder: Path
    seeds: tuple[int, ...]
    times: int = 1
    deadly: bool = False

    def __call__(self) -> PointEnv:
        return _Fragile(self)


class _Fragile(PointEnv):
    def __init__(self, plan: CrashOnce) -> None:
        super().__init__()
        self._plan = plan

    def reset(self, seed: int) -> Task:
        task = super().reset(seed)
        marks = list(self._plan.folder.glob(f"{seed}-*"))
        if seed in self._plan.seeds and len(marks) < self._plan.times:
            (self._plan.folder / f"{seed}-{len(marks)}").touch()
            if self._plan.deadly:
                os._exit(3)
            raise InfrastructureError("the renderer is gone")
        return task


class Fading(PointEnv):
    """Heeds its seed at first, and no more after five resets."""

    def reset(self, seed: int) -> Task:
        self._drifting = self._resets >= 5
        return super().reset(seed)


@dataclass
class Slow:
    """A world in which a control step takes ``pause_s`` of wall time."""

    pause_s: float

    def __call__(self) -> PointEnv:
        return _Paused(self.pause_s)


class _Paused(PointEnv):
    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self._pause_s = pause_s

    def judge(self, observation: Observation) -> Outcome | None:
        time.sleep(self._pause_s)
        return super().judge(observation)


@dataclass
class Impatient:
    """Makes a policy that stands for a user who presses Ctrl-C in episode ``at``."""

    at: int

    def __call__(self) -> Wander:
        return _Interrupted(self.at)


class _Interrupted(Wander):
    def __init__(self, at: int) -> None:
        self._left = at

    def reset(self, seed: int) -> None:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        super().reset(seed)


ARMS = {"plain": Arm(), "best": Arm(count=8, value=near), "out": Arm(count=8, value=Outwards)}
