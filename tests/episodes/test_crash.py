"""What is finished outlives the writer, wherever it is stopped."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from smallworld import SPEC, make_episode, same_rows

from robot.episodes import EpisodeReader, EpisodeWriter, layout, recovery, writer
from robot.episodes.distribution import count_pixels

KILLABLE = Path(__file__).with_name("killable.py")


class Cut(BaseException):
    """The process ends here."""


def all_readable(root: Path) -> int:
    """Return how many episodes there are, after each was compared with what was stored."""
    reader = EpisodeReader(root)
    for seed, found in enumerate(reader):
        wanted = make_episode(seed)
        assert same_rows(found, wanted), f"episode {seed} differs"
        assert {c: f.shape for c, f in found.images.items()} == {
            c: f.shape for c, f in wanted.images.items()
        }
    return len(reader)


def append_until_cut(root: Path, *, finished: int, puts: int) -> bool:
    """Append one episode, cut off before file number ``puts``; return whether it got that far."""
    left = puts

    def cut_off(root: Path, name: str, content: bytes) -> None:
        nonlocal left
        if left == 0:
            # As a kill leaves it: begun under a temporary name, or not at all.
            (root / ".partial").mkdir(exist_ok=True)
            (root / ".partial" / "begun").write_bytes(content[: len(content) // 2])
            raise Cut
        left -= 1
        original(root, name, content)

    original = writer.put
    with EpisodeWriter(root, SPEC) as store:
        for seed in range(len(store), finished):
            store.append(make_episode(seed))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "put", cut_off)
            try:
                store.append(make_episode(finished))
            except Cut:
                return True
    return False


@pytest.mark.parametrize("finished", [1, 2])
def test_a_writer_cut_off_before_any_of_its_files_leaves_finished_episodes_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: int
) -> None:
    # With two episodes a file of facts, the second case begins a new one.
    monkeypatch.setattr(layout, "EPISODES_PER_META_FILE", 2)
    puts = 0
    while append_until_cut(tmp_path, finished=finished, puts=puts):
        assert all_readable(tmp_path) == finished
        puts += 1
    assert puts >= 7
    assert all_readable(tmp_path) == finished + 1


def test_leftovers_of_a_crash_are_gone_once_the_store_is_opened(tmp_path: Path) -> None:
    assert append_until_cut(tmp_path, finished=1, puts=5)
    assert (tmp_path / layout.rows_file(1)).exists()
    with EpisodeWriter(tmp_path, SPEC) as store:
        assert len(store) == 1
    assert not (tmp_path / layout.rows_file(1)).exists()
    assert not list(tmp_path.glob("videos/*/*/file-001.mp4"))
    assert not (tmp_path / ".partial").exists()


def test_pixels_are_counted_again_when_their_file_ran_ahead(tmp_path: Path) -> None:
    with EpisodeWriter(tmp_path, SPEC) as store:
        store.append(make_episode(0))
    frames = make_episode(0).images
    wanted = {layout.IMAGE + camera: count_pixels(frames[camera]) for camera in frames}
    counts = np.load(tmp_path / layout.PIXEL_COUNTS)
    np.save(tmp_path / layout.PIXEL_COUNTS, 2 * counts)
    found = recovery.recover(tmp_path).distribution.pixels
    assert set(found) == set(wanted)
    for camera, count in found.items():
        # The videos are lossy, so values move a little; their number does not.
        values = np.arange(256)
        assert count.sum() == wanted[camera].sum()
        assert np.allclose(count @ values, wanted[camera] @ values, rtol=0.02)


@pytest.mark.slow
def test_kill_9_at_ten_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    draw = np.random.default_rng(9)
    known = 0
    for _ in range(10):
        with subprocess.Popen(
            [sys.executable, str(KILLABLE), str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"open {known}\n"
            said = [process.stdout.readline() for _ in range(draw.integers(1, 4))]
            time.sleep(draw.uniform(0.0, 0.15))
            process.kill()
            said += process.stdout.read().splitlines()
        total = all_readable(tmp_path)
        # One more may be stored than was told, never one less.
        assert known + len(said) <= total <= known + len(said) + 1
        known = total
    keys = EpisodeReader(tmp_path).keys()
    assert [key[0] for key in keys] == list(range(known))
