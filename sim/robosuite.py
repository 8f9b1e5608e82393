"""robosuite's two-arm tasks as environments: its models and start states, our own loop.

Axes: ``s`` state, ``d`` action, ``e`` privileged entries, ``h w 3`` an image. Angles [rad],
lengths [m]; a gripper's opening lies in [0, 1].
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Self

import numpy as np
from jaxtyping import Float

from robot.clock import StepClock
from robot.types import CameraSpec, Images, Observation, Outcome, Spec, Task
from sim.cameras import Cameras, Quality
from sim.mujoco import state_hash
from sim.scene import Scene
from sim.sensing import LazyImages
from sim.snapshot import Snapshot
from sim.tasks import Goal, goal_for

HELD_STEPS = 5
"""For how many steps in a row a goal must hold."""


NO_CAMERAS: Mapping[str, tuple[int, int]] = MappingProxyType({})


class SimRobot:
    """The two arms of a scene as one robot.

    Args:
        scene: The physics in which they are.
        spec: What is shown and taken, cameras included.
        clock: Physics time: zero at reset, one period on with every command.
        look: Returns the images of this moment.
        moved: Called after each command that was followed.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        spec: Spec,
        clock: StepClock,
        look: Callable[[], Images],
        moved: Callable[[], None],
    ) -> None:
        self._scene, self._spec, self._clock, self._look = scene, spec, clock, look
        self._moved = moved

    @property
    def spec(self) -> Spec:
        """What is shown and taken."""
        return self._spec

    @property
    def clock(self) -> StepClock:
        """The physics' time: zero at reset, one period on with every command."""
        return self._clock

    @property
    def target(self) -> Float[np.ndarray, " d"]:
        """The target in force; after a reset or a stop, where the arms are."""
        return self._scene.target.copy()

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
        time_limit_s: After how many seconds an episode times out; the goal's own if None.
        instruction: Words that the policy is told instead of the goal's; the goal is judged all
            the same, so that wrong words show whether the policy listens.

    Attributes:
        goal: What is judged, as ``sim.tasks`` says it.
        task: What is asked for, in words.
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
        cameras: Mapping[str, tuple[int, int]] = NO_CAMERAS,
        quality: Quality = "fast",
        rate: float = 20.0,
        time_limit_s: float | None = None,
        instruction: str | None = None,
    ) -> None:
        self.goal: Goal = goal_for(task, goal)
        words = self.goal.instruction if instruction is None else instruction
        self.task = Task(name=self.goal.name, instruction=words)
        self._horizon = _steps(time_limit_s, self.goal, rate=rate)
        self._scene = Scene(task=task, robots=robots, control=control, rate=rate)
        self.model, self.data, self.suite = self._scene.model, self._scene.data, self._scene.suite
        sizes = {name: (int(height), int(width)) for name, (height, width) in cameras.items()}
        self._cameras = Cameras(self.model, sizes, quality)
        self.spec = replace(
            self._scene.spec,
            cameras={
                name: CameraSpec(height=height, width=width, quality=quality)
                for name, (height, width) in sizes.items()
            },
        )
        self._clock = StepClock()
        self._steps = self._held = self._moment = 0
        self.robot = SimRobot(
            self._scene, spec=self.spec, clock=self._clock, look=self._look, moved=self._count
        )
        self.reset(0)

    def reset(self, seed: int) -> Task:
        """Set the start state that robosuite's soft reset sets for ``seed``.

        Raises:
            ValueError: If the seed is negative or needs more than 32 bits.
        """
        self._scene.reset(seed)
        self._stand(steps=0, held=0)
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

    @property
    def environment_names(self) -> tuple[str, ...]:
        """One name for each entry of ``environment_state``."""
        return self.goal.environment_names

    def environment_state(self) -> Float[np.ndarray, " e"]:
        """Return the poses of the objects, as the goal lists them: privileged."""
        return self.goal.environment_state(self)

    def snapshot(self) -> Snapshot:
        """Return a copy of this moment."""
        return self._scene.snapshot(steps=self._steps, held=self._held)

    def restore(self, snapshot: Snapshot) -> None:
        """Put a moment back, bit by bit; also one taken from an equal environment.

        Raises:
            ValueError: If it is a moment of another model.
        """
        self._scene.restore(snapshot)
        self._stand(steps=snapshot.steps, held=snapshot.held)

    def close(self) -> None:
        """Release the renderers; safe to call twice."""
        self._cameras.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _count(self) -> None:
        self._stand(steps=self._steps + 1, held=self._held + 1 if self.success() else 0)

    def _stand(self, *, steps: int, held: int) -> None:
        self._steps, self._held = steps, held
        self._clock.set(steps * self.spec.period)
        self._moment += 1

    def _look(self) -> LazyImages:
        return LazyImages(
            tuple(self.spec.cameras),
            partial(self._cameras.render, self.data),
            lambda: self._moment,
        )


def _steps(time_limit_s: float | None, goal: Goal, *, rate: float) -> int:
    if time_limit_s is None:
        return round(goal.time_limit * rate / 20.0)
    if not time_limit_s * rate >= 1.0:
        raise ValueError(
            f"a time limit of {time_limit_s:g} s holds no control step at {rate:g} Hz; "
            f"give at least {1.0 / rate:g} s"
        )
    return round(time_limit_s * rate)
