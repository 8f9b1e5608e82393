from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from smallworld import SPEC, folder_hash, make_episode

import robot.episodes.cache as cache
from robot.episodes import EpisodeReader, EpisodeWriter
from robot.episodes.cache import frames
from robot.errors import DatasetError, SpecMismatch, UnknownName


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "Console", lambda **how: Console(quiet=True))


def write(root: Path, *seeds: int, goal: str = "lift") -> Path:
    with EpisodeWriter(root, SPEC) as writer:
        for seed in seeds:
            writer.append(make_episode(seed, goal=goal))
    return root


def test_frames_of_several_stores_follow_each_other(tmp_path: Path) -> None:
    roots = [write(tmp_path / "a", 0, 1), write(tmp_path / "b", 5, goal="slide")]
    found = frames(roots)
    wanted = [make_episode(0), make_episode(1), make_episode(5, goal="slide")]
    assert len(found) == sum(map(len, wanted))
    for number, episode in enumerate(wanted):
        rows = slice(found.starts[number], found.starts[number] + found.lengths[number])
        assert np.array_equal(found.states[rows], episode.states.astype(np.float32))
        assert np.array_equal(found.actions[rows], episode.actions.astype(np.float32))
        assert np.array_equal(found.environment[rows], episode.environment.astype(np.float32))
        assert np.array_equal(found.frame[rows], np.arange(len(episode)))
        assert set(found.episode[rows]) == {number}
        assert set(found.success[rows]) == {episode.success}
        assert np.array_equal(found.subtask[rows], episode.subtask_index)
        text = found.instructions[found.instruction_index[rows][0]]
        assert text == episode.task.instruction
    assert found.seeds.tolist() == [0, 1, 5]
    assert found.stores.tolist() == [0, 0, 1]
    assert found.goals == ("lift", "slide")
    assert found.environment_names == ("pot_x", "pot_y")


def test_images_are_those_of_the_reader(tmp_path: Path) -> None:
    root = write(tmp_path / "a", 0, 1)
    found = frames(root, cameras=["side"])
    assert list(found.images) == ["side"]
    first = EpisodeReader(root).episode(0).images["side"]
    assert np.array_equal(found.images["side"][: len(first)], first)
    assert isinstance(found.images["side"], np.memmap)


def test_the_order_of_frames_does_not_depend_on_who_stored_first(tmp_path: Path) -> None:
    one, other = frames(write(tmp_path / "a", 0, 1, 2)), frames(write(tmp_path / "b", 2, 0, 1))
    assert np.array_equal(one.states, other.states)
    assert np.array_equal(one.images["top"], other.images["top"])
    assert other.places.tolist() == [1, 2, 0]


def test_frames_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "a", 0)
    first = frames(root)

    def never(*what: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(cache, "_build", never)
    assert frames(root).path == first.path


def test_a_store_that_grew_has_other_frames(tmp_path: Path) -> None:
    root = write(tmp_path / "a", 0)
    before = frames(root)
    write(root, 1)
    after = frames(root)
    assert after.path != before.path
    assert len(after) > len(before)


def test_several_may_ask_at_once(tmp_path: Path) -> None:
    root = write(tmp_path / "a", 0, 1, 2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: frames(root), range(4)))
    assert len({f.path for f in found}) == 1
    assert all(np.array_equal(f.states, found[0].states) for f in found)


def test_an_interrupted_build_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "a", 0)

    def interrupted(*what: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            frames(root)
    assert len(frames(root)) == len(make_episode(0))


def test_the_store_is_not_touched(tmp_path: Path) -> None:
    root = write(tmp_path / "a", 0)
    before = folder_hash(root)
    frames(root)
    assert folder_hash(root) == before


def test_stores_of_different_robots_are_not_mixed(tmp_path: Path) -> None:
    other = replace(SPEC, action_names=("x", "w"))
    write(tmp_path / "a", 0)
    with EpisodeWriter(tmp_path / "b", other) as writer:
        writer.append(replace(make_episode(0), spec=other))
    with pytest.raises(SpecMismatch, match="action_names"):
        frames([tmp_path / "a", tmp_path / "b"])


def test_a_camera_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="top"):
        frames(write(tmp_path / "a", 0), cameras=["tap"])


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="give another folder"):
        frames(write(tmp_path / "a", 0), out=tmp_path / "file")
