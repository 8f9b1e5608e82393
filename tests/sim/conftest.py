"""robosuite's own loop as the reference, and a motion that touches nothing."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from sim.scene import Scene
from sim.suite import global_seed, make_suite


class Reference:
    """robosuite with its own controllers, stepping and resets, taking our targets."""

    def __init__(self, task: str, robots: tuple[str, str], control: str) -> None:
        self.suite: Any = make_suite(task=task, robots=robots, control=control)
        # Observables cost most of a step and change nothing in the physics.
        self.suite._observables.clear()
        self.model = self.suite.sim.model._model
        self.data = self.suite.sim.data._data

    def reset(self, seed: int) -> None:
        with global_seed(seed):
            self.suite.reset()

    def advance(self, target: np.ndarray, scene: Scene) -> None:
        action = np.array(target)
        for index in _grippers(scene):
            action[index] = -np.sign(target[index] - 0.5)
        self.suite.step(action)


@cache
def _pandas(task: str, control: str, copy: int) -> Scene:
    return Scene(task=task, robots=("Panda", "Panda"), control=control, rate=20.0)


@pytest.fixture(scope="session")
def pandas() -> Callable[..., Scene]:
    """Return what gives a scene with two Pandas at seed 0: built once, since that is slow."""

    def get(task: str, control: str = "joint_position", *, copy: int = 0) -> Scene:
        scene = _pandas(task, control, copy)
        scene.reset(0)
        return scene

    return get


@pytest.fixture
def robosuite_loop() -> Callable[[str, tuple[str, str], str], Reference]:
    return Reference


@pytest.fixture
def sway() -> Callable[..., np.ndarray]:
    return _sway


def _grippers(scene: Scene) -> list[int]:
    return [i for i, name in enumerate(scene.spec.action_names) if name.endswith("_gripper")]


def _sway(scene: Scene, *, steps: int, seed: int = 0) -> np.ndarray:
    """Return targets ``(t, d)`` that sway around the present ones, grippers opening and closing."""
    generator = np.random.default_rng(seed)
    size = 0.04 if scene.spec.control == "osc_pose" else 0.08
    phase = generator.uniform(0, 2 * np.pi, len(scene.target))
    time = np.arange(steps)[:, None]
    targets = scene.target + size * np.sin(0.05 * time + phase)
    targets[:, _grippers(scene)] = (time // 20) % 2
    return targets
