"""Small real objects for stores: episodes that follow from a seed, an environment, an expert.

Everything is importable, since spawned workers build it by name.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot.episodes import Episode, Setback
from robot.errors import InfrastructureError
from robot.types import ActionChunk, CameraSpec, Observation, Outcome, Plan, Spec, Task

SPEC = Spec(
    robot="point",
    control="joint_position",
    rate=20.0,
    state_names=("x", "y", "z"),
    state_units=("m",) * 3,
    action_names=("x", "y"),
    action_units=("m",) * 2,
    action_low=(-10.0,) * 2,
    action_high=(10.0,) * 2,
    cameras={"top": CameraSpec(height=16, width=24), "side": CameraSpec(height=16, width=16)},
)
SUBTASKS = ("reach", "lift")


def picture(height: int, width: int, shift: int) -> np.ndarray:
    rows, columns = np.mgrid[0:height, 0:width]
    wave = np.stack([rows * 7 + shift * 3, columns * 5 + shift, (rows + columns) * 4], axis=-1)
    return (128 + 90 * np.sin(wave / 40.0)).astype(np.uint8)


def make_episode(seed: int, *, goal: str = "lift", steps: int | None = None) -> Episode:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(4, 9)) if steps is None else steps
    sizes = {name: (camera.height, camera.width) for name, camera in SPEC.cameras.items()}
    return Episode(
        spec=SPEC,
        task=Task(name=goal, instruction=f"{goal} the pot"),
        seed=seed,
        quality="clean",
        success=bool(seed % 2),
        times=np.arange(count) * 0.05 + 1e-4 * seed,
        states=draw.normal(size=(count, 3)),
        actions=draw.normal(size=(count, 2)),
        images={
            n: np.stack([picture(h, w, seed + i) for i in range(count)])
            for n, (h, w) in sizes.items()
        },
        environment=draw.normal(size=(count, 2)),
        environment_names=("pot_x", "pot_y"),
        executed=draw.normal(size=(count, 2)),
        progress=np.linspace(0, 1, count),
        subtask_index=np.minimum(np.arange(count) // 3, 1),
        subtasks=SUBTASKS,
        setbacks=(Setback(start=1, end=3, kind="pause"),),
        start_hash=f"hash {seed}",
        outcome=Outcome.SUCCESS if seed % 2 else Outcome.TIMEOUT,
        goal=goal,
    )


def same_rows(found: Episode, wanted: Episode) -> bool:
    """Whether all numbers are those that were stored, as float32."""
    pairs = [
        (found.states, wanted.states),
        (found.actions, wanted.actions),
        (found.environment, wanted.environment),
        (found.executed, wanted.executed),
        (found.progress, wanted.progress),
    ]
    return bool(
        found.key == wanted.key
        and np.array_equal(found.times, wanted.times)
        and all(np.array_equal(a, np.asarray(b, dtype=np.float32)) for a, b in pairs)
    )


def folder_hash(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


class StepTime:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self) -> int:
        return 0


class SmallRobot:
    """A point that moves at most 0.25 a step; counts the frames it had to draw."""

    def __init__(self) -> None:
        self.spec, self.clock = SPEC, StepTime()
        self.place, self.goal = np.zeros(2), np.zeros(2)
        self.drawn: list[str] = []

    def observe(self) -> Observation:
        return Observation(
            time=self.clock.time,
            state=np.array([*self.place, self.goal[0]]),
            images=_Drawn(self),
        )

    def command(self, target: np.ndarray) -> np.ndarray:
        in_force = np.clip(target, -10.0, 10.0)
        self.place = self.place + np.clip(in_force - self.place, -0.25, 0.25)
        self.clock.time += SPEC.period
        return in_force

    def stop(self) -> None:
        return


class _Drawn(dict):
    def __init__(self, robot: SmallRobot) -> None:
        super().__init__(dict.fromkeys(SPEC.cameras))
        self._robot = robot

    def __getitem__(self, name: str) -> np.ndarray:
        self._robot.drawn.append(name)
        camera = SPEC.cameras[name]
        return picture(camera.height, camera.width, int(40 * self._robot.place[0]))


@dataclass
class SmallGoal:
    subtasks: tuple[str, ...] = SUBTASKS


class SmallEnv:
    environment_names = ("goal_x", "goal_y")

    def __init__(self) -> None:
        self.robot, self.goal = SmallRobot(), SmallGoal()

    def reset(self, seed: int) -> Task:
        draw = np.random.default_rng(seed)
        self.robot.place, self.robot.goal = draw.normal(size=2), draw.normal(size=2)
        self.robot.clock.time = 0.0
        return Task(name="reach", instruction="reach the square")

    def success(self) -> bool:
        return bool(np.linalg.norm(self.robot.place - self.robot.goal) < 0.3)

    def potential(self) -> float:
        return float(np.exp(-np.linalg.norm(self.robot.place - self.robot.goal)))

    def environment_state(self) -> np.ndarray:
        return self.robot.goal.copy()

    def judge(self, observation: Observation) -> Outcome | None:
        if self.success():
            return Outcome.SUCCESS
        return Outcome.TIMEOUT if self.robot.clock.time > 0.79 else None

    def state_hash(self) -> str:
        return hashlib.sha256(np.concatenate([self.robot.place, self.robot.goal])).hexdigest()

    def close(self) -> None:
        return


class OtherEnv(SmallEnv):
    def __init__(self) -> None:
        super().__init__()
        self.robot.spec = replace(SPEC, action_names=("x", "w"))


@dataclass
class Fragile:
    """Makes environments whose given seeds kill the worker the first ``times``."""

    folder: Path
    seeds: tuple[int, ...]
    times: int = 1
    deadly: bool = True

    def __call__(self) -> SmallEnv:
        return _Fragile(self)


class _Fragile(SmallEnv):
    def __init__(self, plan: Fragile) -> None:
        super().__init__()
        self._plan = plan

    def reset(self, seed: int) -> Task:
        marks = len(list(self._plan.folder.glob(f"{seed}-*")))
        if seed in self._plan.seeds and marks < self._plan.times:
            (self._plan.folder / f"{seed}-{marks}").touch()
            if self._plan.deadly:
                os._exit(3)
            raise InfrastructureError("the renderer is gone")
        return super().reset(seed)


@dataclass(frozen=True)
class _Stretch:
    start: int
    end: int
    kind: str


class SmallExpert:
    """Walks to the goal; ``failing`` walks away. Noise is added to what is executed only."""

    def __init__(self, env: SmallEnv, *, quality: str, seed: int) -> None:
        self._env, self._quality = env, quality
        self._draw = np.random.default_rng([seed, len(quality)])
        self.subtask = 0
        self.segments = [_Stretch(0, 2, "pause")]

    def act(self) -> np.ndarray:
        away = self._env.robot.goal - self._env.robot.place
        self.subtask = int(np.linalg.norm(away) < 1.0)
        return self._env.robot.place + (-away if self._quality == "failing" else away)

    def perturb(self, target: np.ndarray) -> np.ndarray:
        return target + self._draw.normal(scale=0.02, size=2)


class Interrupted(SmallExpert):
    """Stands for a user who presses Ctrl-C in the episode of seed 3."""

    def __init__(self, env: SmallEnv, *, quality: str, seed: int) -> None:
        if seed == 3:
            raise KeyboardInterrupt
        super().__init__(env, quality=quality, seed=seed)


class Walker:
    """A policy that walks to where the state says the goal's x is."""

    spec = SPEC
    cameras = ()

    def reset(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        state = np.asarray(observation.state)
        way = np.array([state[2], state[1]]) + self._draw.normal(scale=0.1, size=(count, 1, 2))
        return ActionChunk(
            start=float(observation.time),
            period=SPEC.period,
            targets=np.repeat(way, 4, axis=1),
            commit=np.full(count, 4),
        )


def append_nothing(env: SmallEnv, *, quality: str, seed: int) -> SmallExpert:
    raise AssertionError("no episode should be run")
