import json
import resource
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from smallworld import SPEC, folder_hash, make_episode, same_rows

from robot.episodes import EpisodeReader, EpisodeWriter, layout
from robot.errors import DatasetError, SpecMismatch
from robot.types import CameraSpec


def write(root: Path, *seeds: int) -> None:
    with EpisodeWriter(root, SPEC) as writer:
        for seed in seeds:
            writer.append(make_episode(seed))


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2)
    reader = EpisodeReader(tmp_path)
    assert len(reader) == 3
    for seed, found in enumerate(reader):
        wanted = make_episode(seed)
        assert same_rows(found, wanted)
        assert found.task == wanted.task
        assert found.spec == wanted.spec
        assert found.success == wanted.success
        assert found.outcome == wanted.outcome
        assert found.setbacks == wanted.setbacks
        assert found.start_hash == wanted.start_hash
        assert found.subtasks == wanted.subtasks
        assert np.array_equal(found.subtask_index, wanted.subtask_index)


def test_images_come_back_close_to_what_was_seen(tmp_path: Path) -> None:
    write(tmp_path, 3)
    found, wanted = EpisodeReader(tmp_path).episode(0), make_episode(3)
    for camera, frames in wanted.images.items():
        error = found.images[camera].astype(float) - frames
        assert 10 * np.log10(255**2 / np.mean(error**2)) > 30.0


def test_a_store_is_continued_after_its_last_episode(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    write(tmp_path, 2)
    reader = EpisodeReader(tmp_path)
    assert reader.keys() == [(0, "lift", "clean"), (1, "lift", "clean"), (2, "lift", "clean")]
    assert same_rows(reader.episode(2), make_episode(2))


def seeds_in(root: Path) -> list[int]:
    keys = EpisodeReader(root).keys()
    return [key[0] for key in keys]


def content(path: Path) -> object:
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return pq.read_table(path) if path.suffix == ".parquet" else path.read_bytes()


def test_a_continued_store_holds_the_same_as_one_written_at_once(tmp_path: Path) -> None:
    once, parts = tmp_path / "at once", tmp_path / "in parts"
    write(once, 0, 1, 2)
    write(parts, 0)
    write(parts, 1, 2)
    names = sorted(p.relative_to(once) for p in once.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(parts) for p in parts.rglob("*") if p.is_file())
    assert [n for n in names if content(once / n) != content(parts / n)] == []


def test_facts_of_more_episodes_than_one_file_holds_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "EPISODES_PER_META_FILE", 2)
    write(tmp_path, 0, 1, 2)
    write(tmp_path, 3, 4)
    assert len(list(tmp_path.glob("meta/episodes/*/*.parquet"))) == 3
    assert seeds_in(tmp_path) == [0, 1, 2, 3, 4]


def test_closed_store_has_exact_quantiles_over_all_rows(tmp_path: Path) -> None:
    write(tmp_path, *range(12))
    stats = json.loads((tmp_path / layout.STATS).read_text())
    rows = np.concatenate([e.actions for e in EpisodeReader(tmp_path)]).astype(np.float64)
    for name, level in (("q01", 0.01), ("q50", 0.5), ("q99", 0.99)):
        assert np.allclose(stats["action"][name], np.quantile(rows, level, axis=0), atol=1e-9)
    assert np.allclose(stats["action"]["std"], rows.std(axis=0), atol=1e-9)
    assert stats["action"]["count"] == [len(rows)]


def test_an_episode_that_is_not_finite_is_named_and_not_stored(tmp_path: Path) -> None:
    broken = make_episode(1)
    broken.states[2, 1] = np.nan
    with EpisodeWriter(tmp_path, SPEC) as writer:
        writer.append(make_episode(0))
        with pytest.raises(DatasetError, match=r"states is not finite in row 2 \(y\)"):
            writer.append(broken)
        writer.append(make_episode(2))
    assert seeds_in(tmp_path) == [0, 2]


def test_every_fault_of_an_episode_is_named_at_once(tmp_path: Path) -> None:
    good = make_episode(0, steps=6)
    bad = replace(
        good,
        states=good.states[:, :2],
        images={"back": good.images["top"]},
        subtasks=("a", "a"),
    )
    with pytest.raises(DatasetError) as caught, EpisodeWriter(tmp_path, SPEC) as writer:
        writer.append(bad)
    said = str(caught.value)
    assert all(words in said for words in ("states has shape", "camera back", "not all different"))


def test_an_episode_of_another_robot_is_refused(tmp_path: Path) -> None:
    other = replace(make_episode(1), spec=replace(SPEC, action_names=("x", "w")))
    with EpisodeWriter(tmp_path, SPEC) as writer:
        writer.append(make_episode(0))
        with pytest.raises(SpecMismatch, match="action_names"):
            writer.append(other)


def test_a_store_of_another_robot_is_not_continued(tmp_path: Path) -> None:
    write(tmp_path, 0)
    before = folder_hash(tmp_path)
    cameras = {**SPEC.cameras, "top": CameraSpec(height=16, width=24, quality="fast")}
    with pytest.raises(SpecMismatch, match="camera top"):
        EpisodeWriter(tmp_path, replace(SPEC, cameras=cameras)).open()
    assert folder_hash(tmp_path) == before


def test_an_episode_with_other_cameras_than_the_store_is_refused(tmp_path: Path) -> None:
    episode = make_episode(1)
    with EpisodeWriter(tmp_path, SPEC) as writer:
        writer.append(make_episode(0))
        with pytest.raises(DatasetError, match=r"observation\.images\.side"):
            writer.append(replace(episode, images={"top": episode.images["top"]}))


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(DatasetError, match=r"thesis\.tex"):
        EpisodeWriter(tmp_path, SPEC).open()
    assert (tmp_path / "thesis.tex").read_text() == "do not touch"


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with (
        EpisodeWriter(tmp_path, SPEC),
        pytest.raises(DatasetError, match="another process writes"),
    ):
        EpisodeWriter(tmp_path, SPEC).open()
    EpisodeWriter(tmp_path, SPEC).open()


def test_a_rate_that_lerobot_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(DatasetError, match=r"12\.5 Hz"):
        EpisodeWriter(tmp_path / "new", replace(SPEC, rate=12.5)).open()
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="cannot be written"):
        EpisodeWriter(tmp_path / "file" / "store", SPEC).open()


@contextmanager
def room_for_files_of(size: int) -> Generator[None]:
    """Let no file grow beyond ``size`` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [500, 4000, 9000])
def test_a_full_disk_is_told_at_once_and_finished_episodes_are_kept(
    tmp_path: Path, size: int
) -> None:
    with EpisodeWriter(tmp_path, SPEC) as writer:
        writer.append(make_episode(0))
        with (
            room_for_files_of(size),
            pytest.raises(DatasetError, match="1 finished episodes are kept"),
        ):
            writer.append(make_episode(1))
        with pytest.raises(DatasetError, match="open it again"):
            writer.append(make_episode(2))
    reader = EpisodeReader(tmp_path)
    assert len(reader) == 1
    assert same_rows(reader.episode(0), make_episode(0))
    write(tmp_path, 1)
    assert len(EpisodeReader(tmp_path)) == 2
