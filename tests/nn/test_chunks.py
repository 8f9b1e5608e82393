from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot.errors import DatasetError
from robot.nn.augment import random_shift
from robot.nn.chunks import ChunkSampler


@dataclass
class Source:
    """Frames whose numbers say where they are: action = state = episode + frame / 1000."""

    episode: np.ndarray
    instructions: list[str] = field(default_factory=lambda: ["a", "b"])
    environment: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = len(self.episode)
        frame = np.concatenate([np.arange(c) for c in np.bincount(self.episode)])
        self.states = (self.episode + frame / 1000)[:, None].astype(np.float32)
        self.actions = self.states.copy()
        self.instruction_index = self.episode % 2
        self.images = {"front": np.repeat(self.episode.astype(np.uint8), 12).reshape(n, 2, 2, 3)}


def source(*lengths: int, **changes: object) -> Source:
    return Source(np.repeat(np.arange(len(lengths)), lengths), **changes)  # pyright: ignore


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    steps=st.integers(1, 8),
    seed=st.integers(0, 100),
)
def test_chunks_stay_inside_their_episode(lengths: list[int], steps: int, seed: int) -> None:
    sampler = ChunkSampler([source(*lengths)], steps=steps, cameras=["front"], held_out=0.0)
    drawn = sampler.draw(np.random.default_rng(seed), 20)
    for i in range(20):
        start = drawn.state[i, 0]
        episode = int(start)
        left = lengths[episode] - round((start - episode) * 1000)
        assert (drawn.actions[i].astype(int) == episode).all()
        assert drawn.valid[i].sum() == min(left, steps)
        known = drawn.actions[i, drawn.valid[i], 0]
        np.testing.assert_allclose(known, start + np.arange(len(known)) / 1000, atol=1e-5)
        np.testing.assert_array_equal(
            drawn.actions[i, len(known) :, 0], [known[-1]] * (steps - len(known))
        )
        assert (drawn.images["front"][i] == episode).all()


def test_training_never_sees_held_out_episodes() -> None:
    sampler = ChunkSampler([source(*[5] * 20)], steps=2, cameras=[], held_out=0.2)
    rng = np.random.default_rng(0)
    seen = {int(s) for s in sampler.draw(rng, 400).state[:, 0]}
    hidden = {int(s) for s in sampler.draw(rng, 400, held_out=True).state[:, 0]}
    assert len(hidden) == 4
    assert not seen & hidden


def test_several_datasets_keep_order_words_and_missing_quantities() -> None:
    first = source(3, 3, environment=np.ones((6, 2), np.float32))
    second = source(4, 4, instructions=["b", "c"])
    sampler = ChunkSampler([first, second], steps=1, cameras=["front"], held_out=0.0)
    assert sampler.instructions == ("a", "b", "c")
    rows = np.array([[1, 5], [0, 1], [1, 0], [0, 4]])
    drawn = sampler.at(rows)
    np.testing.assert_allclose(drawn.state[:, 0], [1.001, 0.001, 0.0, 1.001], atol=1e-6)
    assert drawn.instruction.tolist() == [2, 0, 1, 1]
    assert np.isnan(drawn.environment[[0, 2]]).all()
    assert (drawn.environment[[1, 3]] == 1).all()


def test_only_kept_frames_are_moments() -> None:
    keep = np.array([True, False, False, True, False, False])
    sampler = ChunkSampler([source(3, 3)], steps=2, cameras=[], held_out=0.0, keep=[keep])
    starts = sampler.draw(np.random.default_rng(0), 50).state[:, 0]
    assert set(starts.tolist()) == {0.0, 1.0}


def test_a_missing_camera_and_no_frames_are_refused() -> None:
    with pytest.raises(DatasetError, match="camera side"):
        ChunkSampler([source(3)], steps=2, cameras=["side"])
    with pytest.raises(DatasetError, match="no frame is left"):
        ChunkSampler([source(3)], steps=2, cameras=[], keep=[np.zeros(3, bool)])


def test_scattered_episodes_are_refused() -> None:
    mixed = source(2, 2)
    mixed.episode = np.array([0, 1, 0, 1])
    with pytest.raises(DatasetError, match="rebuild the cache"):
        ChunkSampler([mixed], steps=2, cameras=[])


def test_random_shift_moves_the_picture_and_repeats_its_border() -> None:
    pictures = np.arange(8 * 8, dtype=np.uint8).reshape(1, 8, 8, 1).repeat(3, axis=3)
    moved = random_shift(pictures.repeat(400, axis=0), most=2, rng=np.random.default_rng(0))
    assert moved.shape == (400, 8, 8, 3)
    centres = {tuple(divmod(int(m[4, 4, 0]), 8)) for m in moved}
    assert centres == {(r, c) for r in range(2, 7) for c in range(2, 7)}
    assert random_shift(pictures, most=0, rng=np.random.default_rng(0)) is pictures
