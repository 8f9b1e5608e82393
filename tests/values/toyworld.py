"""A tiny world of sibling labels: two one-jointed arms that should go to a blob in the image."""

from pathlib import Path

import numpy as np

from robot.siblings import Siblings, SiblingWriter
from robot.types import CameraSpec, Spec

SIZE, STEPS, COUNT = 32, 4, 6
NAMES = ("left_joint1", "left_gripper", "right_joint1", "right_gripper")
SPEC = Spec(
    robot="Toy+Toy",
    control="joint_position",
    rate=20.0,
    state_names=NAMES,
    state_units=("rad", "opening", "rad", "opening"),
    action_names=NAMES,
    action_units=("rad", "opening", "rad", "opening"),
    action_low=(-2.0, 0.0, -2.0, 0.0),
    action_high=(2.0, 1.0, 2.0, 1.0),
    cameras={"front": CameraSpec(height=SIZE, width=SIZE)},
)
TEXTS = ("go to the blob", "keep away from the blob")


def encode(texts: object) -> np.ndarray:
    """Each instruction is a direction of its own."""
    return np.stack([np.eye(384, dtype=np.float32)[TEXTS.index(t)] for t in list(texts)])  # type: ignore[call-overload]


def make_siblings(rng: np.random.Generator, *, groups: int, seed: int, text: int = 0) -> Siblings:
    """The score is the nearness of the chunk's end to the blob, plus what the state is worth."""
    place = rng.uniform(-1, 1, size=(groups, 2))
    images = np.full((groups, SIZE, SIZE, 3), 40, np.uint8)
    for image, (x, y) in zip(images, place, strict=True):
        column, row = (int((v + 1) / 2 * (SIZE - 8)) for v in (x, y))
        image[row : row + 8, column : column + 8] = (220, 60, 60)
    state = rng.uniform(-1, 1, size=(groups, 4))
    targets = rng.uniform(-1, 1, size=(groups, COUNT, 1, 4)) * np.linspace(0.5, 1.0, STEPS)[:, None]
    ends = targets[:, :, -1, [0, 2]]
    near = 1.0 - np.linalg.norm(ends - place[:, None], axis=-1) / 3.0
    scores = (near if text == 0 else 1.0 - near) + state[:, :1]
    return Siblings(
        images={"front": images},
        state=state.astype(np.float32),
        targets=targets.astype(np.float32),
        scores=scores.astype(np.float32),
        success=(scores > 0.8).astype(np.float32),
        steps=np.full((groups, COUNT), 4.0, np.float32),
        potential=scores.astype(np.float32),
        before=np.zeros(groups, np.float32),
        choice=np.zeros(groups, np.int64),
        environment=place.astype(np.float32),
        step=np.arange(groups),
        seed=np.full(groups, seed),
        instruction=np.zeros(groups, np.int64),
        instructions=(TEXTS[text],),
    )


def make_store(root: Path, *, episodes: int, groups: int = 8, text: int = 0) -> Path:
    writer = SiblingWriter(root, spec=SPEC, settings={}, environment_names=("x", "y"))
    rng = np.random.default_rng(text)
    for seed in range(episodes):
        writer.append(
            f"toy-{seed:08d}",
            make_siblings(rng, groups=groups, seed=seed, text=text),
            notes={"seed": seed},
        )
    return root
