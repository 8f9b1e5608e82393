"""robosuite's two-arm tasks as environments: its models and start states, our own loop.

Axes: ``s`` state, ``d`` action, ``e`` privileged entries, ``h w 3`` an image. Angles [rad],
lengths [m]; a gripper's opening lies in [0, 1].
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np
from jaxtyping import Float, UInt8

from robot.errors import StaleFrame, UnknownName
from robot.types import CameraSpec, Images, Observation, Outcome, Spec, Task
from sim.mujoco import PhysicsClock, state_hash
from sim.scene import Scene
from sim.snapshot import Snapshot

HELD_STEPS = 5
"""For how many steps in a row a goal must hold."""


class _Cameras:
    def __init__(self, model: mujoco.MjModel, sizes: Mapping[str, tuple[int, int]]) -> None:
        self._model, self._sizes = model, sizes
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}

    def render(self, data: mujoco.MjData, name: str) -> UInt8[np.ndarray, "h w 3"]:
        size = self._sizes[name]
        if size not in self._renderers:
            self._renderers[size] = mujoco.Renderer(self._model, *size)
        option = mujoco.MjvOption()
        option.geomgroup[0] = 0
        self._renderers[size].update_scene(data, camera=name, scene_option=option)
        return self._renderers[size].render()

    def close(self) -> None:
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()


class _Images(Mapping[str, UInt8[np.ndarray, "h w 3"]]):
    def __init__(
        self, names: Sequence[str], render: Callable[[str], Any], moment: Callable[[], int]
    ) -> None:
        self._names, self._render, self._moment = names, render, moment
        self._taken = moment()
        self._images: dict[str, UInt8[np.ndarray, "h w 3"]] = {}

    def __getitem__(self, name: str) -> UInt8[np.ndarray, "h w 3"]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._images:
            if self._moment() != self._taken:
                raise StaleFrame(
                    f"camera {name} was asked for after the physics had moved on; "
                    "look at the image before the next command"
                )
            self._images[name] = self._render(name)
        return self._images[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class SimRobot:
    """The two arms of a scene as one robot.

    Args:
        scene: The physics in which they are.
        spec: What is shown and taken, cameras included.
        look: Returns the images of this moment.
        moved: Called after each change of the physics.
    """

    def __init__(
        self, scene: Scene, *, spec: Spec, look: Callable[[], Images], moved: Callable[[], None]
    ) -> None:
        self._scene, self._spec, self._look, self._moved = scene, spec, look, moved
        self._clock = PhysicsClock(scene.data)

    @property
    def spec(self) -> Spec:
        """What is shown and taken."""
        return self._spec

    @property
    def clock(self) -> PhysicsClock:
        """The physics' time: zero at reset, one period on with every command."""
        return self._clock

    def observe(self) -> Observation:
        """Return joint angles and openings; images render when first asked for."""
        return Observation(time=self._clock.now(), state=self._scene.state(), images=self._look())

    def command(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Follow ``target`` for one period and return it as the limits of the spec leave it.

        Raises:
            BadAction: If it has a wrong shape or is not finite; nothing moves.
            InfrastructureError: If the physics diverges.
        """
        taken = self._scene.advance(target)
        self._moved()
        return taken.copy()

    def stop(self) -> None:
        """Make where the arms are now the target in force."""
        self._scene.hold()


class TwoArmEnv:
    """One of robosuite's two-arm tasks with a goal.

    Args:
        task: ``lift``, ``peg``, ``handover`` or ``transport``.
        goal: Which of the task's goals is asked for; its first if None.
        robots: The left and the right robot. ``peg`` takes their grippers off.
        control: ``joint_position`` (absolute angles) or ``osc_pose`` (absolute tool pose in the
            world: position and rotation vector).
        cameras: Height and width of each camera's image.
        quality: ``fast`` or ``exact`` images.
        rate: Control steps a second [Hz].
        time_limit_s: After how many seconds an episode times out.

    Attributes:
        goal: What is asked for, as ``sim.tasks`` says it.
        task: The same in words.
        model, data: MuJoCo's.
        suite: robosuite's environment, for its object references.

    Raises:
        UnknownName: If no task, goal, robot, control, camera or quality is called so.
        ValueError: If the rate or the time limit makes no sense.
    """

    def __init__(
        self,
        task: str,
        goal: str | None = None,
        *,
        robots: Sequence[str] = ("Panda", "Panda"),
        control: str = "joint_position",
        cameras: Mapping[str, tuple[int, int]] | None = None,
        quality: str = "fast",
        rate: float = 20.0,
        time_limit_s: float = 10.0,
    ) -> None:
        if not time_limit_s * rate >= 1.0:
            raise ValueError(
                f"a time limit of {time_limit_s:g} s holds no control step at {rate:g} Hz; "
                f"give at least {1.0 / rate if rate > 0 else 0.05:g} s"
            )
        sizes = {name: (int(h), int(w)) for name, (h, w) in (cameras or {}).items()}
        self._scene = Scene(task=task, robots=robots, control=control, rate=rate)
        self.model, self.data, self.suite = self._scene.model, self._scene.data, self._scene.suite
        known = [self.model.camera(i).name for i in range(self.model.ncam)]
        for name in sizes:
            if name not in known:
                raise UnknownName("camera", name, known)
        self.spec = replace(
            self._scene.spec,
            cameras={
                n: CameraSpec(height=h, width=w, quality=quality) for n, (h, w) in sizes.items()
            },
        )
        self._cameras = _Cameras(self.model, sizes)
        self._horizon = round(time_limit_s * rate)
        self._steps = self._held = self._moment = 0
        self.robot = SimRobot(self._scene, spec=self.spec, look=self._look, moved=self._count_step)
        self.goal: Any = _goal(task, goal)
        self.task = Task(name=self.goal.name, instruction=self.goal.instruction)
        self._bodies = _bodies(self.suite, task)
        self.environment_names = tuple(
            f"{name}_{axis}"
            for name in self._bodies
            for axis in ("x", "y", "z", "qw", "qx", "qy", "qz")
        )
        self.reset(0)

    def reset(self, seed: int) -> Task:
        """Set the start state that robosuite's soft reset sets for ``seed``.

        Raises:
            ValueError: If the seed is negative or needs more than 32 bits.
        """
        self._scene.reset(seed)
        self._steps = self._held = 0
        self._moment += 1
        return self.task

    def judge(self, observation: Observation) -> Outcome | None:
        """Return success once the goal has held for five steps, a timeout at the horizon."""
        if self._held >= HELD_STEPS:
            return Outcome.SUCCESS
        return Outcome.TIMEOUT if self._steps >= self._horizon else None

    def success(self) -> bool:
        """Return whether the goal holds at this moment."""
        return bool(self.goal.success(self))

    def potential(self) -> float:
        """Return how near the goal is, in [0, 1], by what only a simulation knows."""
        return float(self.goal.potential(self))

    def state_hash(self) -> str:
        """Return the sha256 of the physics state."""
        return state_hash(self.model, self.data)

    def environment_state(self) -> Float[np.ndarray, " e"]:
        """Return position and quaternion of each object, in the order of the names."""
        ids = list(self._bodies.values())
        poses = np.concatenate([self.data.xpos[ids], self.data.xquat[ids]], axis=1)
        return poses.reshape(-1).astype(np.float32)

    def snapshot(self) -> Snapshot:
        """Return a copy of this moment."""
        return self._scene.snapshot(steps=self._steps, held=self._held)

    def restore(self, snapshot: Snapshot) -> None:
        """Put a moment back, bit by bit; also one taken from an equal environment.

        Raises:
            ValueError: If it is a moment of another model.
        """
        self._scene.restore(snapshot)
        self._steps, self._held = snapshot.steps, snapshot.held
        self._moment += 1

    def close(self) -> None:
        """Release the renderers; safe to call twice."""
        self._cameras.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _count_step(self) -> None:
        self._moment += 1
        self._steps += 1
        self._held = self._held + 1 if self.success() else 0

    def _look(self) -> Images:
        return _Images(
            tuple(self.spec.cameras),
            lambda name: self._cameras.render(self.data, name),
            lambda: self._moment,
        )


class _SuiteGoal:
    def __init__(self, task: str) -> None:
        self.name, self.instruction, self.subtasks = task, f"do the {task}", (task,)

    def success(self, env: TwoArmEnv) -> bool:
        return bool(env.suite._check_success())

    def potential(self, env: TwoArmEnv) -> float:
        return float(self.success(env))


def _goal(task: str, goal: str | None) -> Any:
    try:
        from sim.tasks import goal_for

        return goal_for(task, goal)
    except (ImportError, UnknownName):
        if goal is not None:
            raise
        return _SuiteGoal(task)


def _bodies(suite: Any, task: str) -> dict[str, int]:
    objects = [suite.peg, suite.hole] if task == "peg" else suite.model.mujoco_objects
    return {item.name: suite.sim.model.body_name2id(item.root_body) for item in objects}
