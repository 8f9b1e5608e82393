from pathlib import Path

import av
import numpy as np
import pytest
from smallworld import picture

from robot.episodes.video import KEY_FRAMES, decode, encode
from robot.errors import DatasetError


def clip(count: int) -> np.ndarray:
    return np.stack([picture(32, 32, 4 * i) for i in range(count)])


@pytest.mark.parametrize("count", [1, 2, 23])
def test_every_frame_comes_back_in_order(tmp_path: Path, count: int) -> None:
    frames = clip(count)
    (tmp_path / "clip.mp4").write_bytes(encode(frames, rate=20))
    found = decode(tmp_path / "clip.mp4", count=count, rate=20)
    distance = np.abs(found[:, None].astype(int) - frames[None]).mean(axis=(2, 3, 4))
    assert distance.argmin(axis=1).tolist() == list(range(count))
    assert distance.diagonal().max() < 4.0


@pytest.mark.parametrize("first", [0, 1, 7, 22])
def test_decoding_can_begin_anywhere(tmp_path: Path, first: int) -> None:
    (tmp_path / "clip.mp4").write_bytes(encode(clip(23), rate=20))
    whole = decode(tmp_path / "clip.mp4", count=23, rate=20)
    part = decode(tmp_path / "clip.mp4", count=23 - first, start=first / 20, rate=20)
    assert np.array_equal(part, whole[first:])


def test_a_key_frame_is_never_far(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(encode(clip(23), rate=20))
    with av.open(str(tmp_path / "clip.mp4")) as container:
        keys = [i for i, frame in enumerate(container.decode(video=0)) if frame.key_frame]
        assert container.streams.video[0].average_rate == 20
    assert keys == list(range(0, 23, KEY_FRAMES))


def test_the_same_frames_give_the_same_bytes_whatever_was_encoded_before() -> None:
    draw = np.random.default_rng(0)
    sizes = [(16, 16), (32, 32), (48, 80), (16, 24)]
    clips = [np.stack([picture(h, w, 4 * i) for i in range(6)]) for h, w in sizes]
    found: dict[int, set[bytes]] = {number: set() for number in range(len(clips))}
    for number in draw.integers(len(clips), size=60):
        found[int(number)].add(encode(clips[number], rate=20))
    assert [len(kinds) for kinds in found.values()] == [1, 1, 1, 1]


def test_odd_sizes_are_refused() -> None:
    with pytest.raises(DatasetError, match="15x32"):
        encode(clip(2)[:, :15], rate=20)
