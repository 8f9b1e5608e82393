"""A tiny stand-in for recorded frames: two one-jointed arms that move to a blob in the image."""

from dataclasses import dataclass

import numpy as np
import pytest

from robot.types import CameraSpec, Spec

SIZE = 32


@dataclass
class StandIn:
    images: dict[str, np.ndarray]
    states: np.ndarray
    actions: np.ndarray
    environment: np.ndarray | None
    episode: np.ndarray
    instruction_index: np.ndarray
    instructions: list[str]


def make_spec(*, size: int = SIZE) -> Spec:
    names = ("left_joint1", "left_gripper", "right_joint1", "right_gripper")
    units = ("rad", "opening", "rad", "opening")
    return Spec(
        robot="Toy+Toy",
        control="joint_position",
        rate=20.0,
        state_names=names,
        state_units=units,
        action_names=names,
        action_units=units,
        action_low=(-2.0, 0.0, -2.0, 0.0),
        action_high=(2.0, 1.0, 2.0, 1.0),
        cameras={
            "front": CameraSpec(height=size, width=size),
            "wrist": CameraSpec(height=size, width=size),
        },
    )


def make_frames(*, episodes: int = 12, steps: int = 24, seed: int = 0, size: int = SIZE) -> StandIn:
    """Both arms go straight to the blob's place, or away from it, as the instruction says."""
    rng = np.random.default_rng(seed)
    n = episodes * steps
    states = np.zeros((n, 4), np.float32)
    actions = np.zeros((n, 4), np.float32)
    images = {c: np.full((n, size, size, 3), 40, np.uint8) for c in ("front", "wrist")}
    environment = np.zeros((n, 2), np.float32)
    index = np.zeros(n, np.int64)
    for e in range(episodes):
        place = rng.uniform(-1, 1, size=2)
        sign = 1.0 if e % 2 == 0 else -1.0
        start = rng.uniform(-0.2, 0.2, size=2)
        for t in range(steps):
            i = e * steps + t
            share = np.array([t, t + 1]) / steps
            now, then = (start + s * (sign * place - start) for s in share)
            states[i] = [now[0], 1 - share[0], now[1], 1 - share[0]]
            actions[i] = [then[0], 1 - share[1], then[1], 1 - share[1]]
            for camera, (x, y) in (("front", place), ("wrist", place[::-1])):
                column, row = (int((v + 1) / 2 * (size - 8)) for v in (x, y))
                images[camera][i, row : row + 8, column : column + 8] = (220, 60, 60)
            environment[i] = place
            index[i] = e % 2
    return StandIn(
        images=images,
        states=states,
        actions=actions,
        environment=environment,
        episode=np.repeat(np.arange(episodes), steps),
        instruction_index=index,
        instructions=["move to the blob", "move away from the blob"],
    )


@pytest.fixture(scope="session")
def spec() -> Spec:
    return make_spec()


@pytest.fixture(scope="session")
def frames() -> StandIn:
    return make_frames()
