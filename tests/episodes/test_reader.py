import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from smallworld import SPEC, folder_hash, make_episode, picture

import robot.episodes.reader
from robot.episodes import EpisodeReader, EpisodeWriter
from robot.episodes.video import encode
from robot.errors import DatasetError, UnknownName

BOTTLE = Path(__file__).parents[3] / "shared/data/g1_pick_bottle"
needs_bottle = pytest.mark.skipif(not BOTTLE.exists(), reason="../shared/data is absent")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with EpisodeWriter(tmp_path / "store", SPEC) as writer:
        for seed in range(3):
            writer.append(make_episode(seed))
    return tmp_path / "store"


def write_rows(path: Path, index: int, first: int, count: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(index)
    states, actions = draw.normal(size=(2, count, 2)).astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "observation.state": pa.FixedSizeListArray.from_arrays(states.ravel(), 2),
            "action": pa.FixedSizeListArray.from_arrays(actions.ravel(), 2),
            "timestamp": (np.arange(count) / 10).astype(np.float32),
            "episode_index": np.full(count, index),
            "index": first + np.arange(count),
            "task_index": np.zeros(count, np.int64),
        }
    )
    tables = [pq.read_table(path), table] if path.exists() else [table]
    pq.write_table(pa.concat_tables(tables), path)
    return {"states": states, "actions": actions}


def write_info(root: Path, **more: object) -> None:
    vector = {"dtype": "float32", "shape": [2], "names": [["elbow", "wrist"]]}
    video = {"dtype": "video", "shape": [16, 16, 3], "names": ["height", "width", "channels"]}
    info = {
        "fps": 10,
        "robot_type": "other",
        "total_episodes": 2,
        "total_frames": 12,
        "chunks_size": 1000,
        "features": {"observation.state": vector, "action": vector, "observation.images.c": video},
        **more,
    }
    (root / "meta").mkdir(exist_ok=True)
    (root / "meta/info.json").write_text(json.dumps(info))


def frames_of(index: int, count: int) -> np.ndarray:
    return np.stack([picture(16, 16, 30 * index + 5 * i) for i in range(count)])


def test_a_store_of_version_2_1_is_read(tmp_path: Path) -> None:
    write_info(
        tmp_path,
        codebase_version="v2.1",
        data_path="data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        video_path="videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    )
    lines = [{"episode_index": i, "tasks": ["wave"], "length": 6} for i in range(2)]
    (tmp_path / "meta/episodes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    videos = tmp_path / "videos/chunk-000/observation.images.c"
    videos.mkdir(parents=True)
    rows = {}
    for i in range(2):
        path = tmp_path / f"data/chunk-000/episode_{i:06d}.parquet"
        rows[i] = write_rows(path, i, 6 * i, 6)
        (videos / f"episode_{i:06d}.mp4").write_bytes(encode(frames_of(i, 6), rate=10))
    reader = EpisodeReader(tmp_path)
    episode = reader.episode(1)
    assert len(reader) == 2
    assert reader.spec.state_names == ("elbow", "wrist")
    assert episode.task.instruction == "wave"
    assert episode.outcome is None
    assert np.array_equal(episode.states, rows[1]["states"])
    assert np.abs(episode.images["c"].astype(int) - frames_of(1, 6)).mean() < 5.0


def test_episodes_that_share_files_are_told_apart(tmp_path: Path) -> None:
    """Others' v3.0 stores put many episodes into one parquet and one mp4."""
    write_info(
        tmp_path,
        codebase_version="v3.0",
        data_path="data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        video_path="videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    )
    lengths = (5, 7)
    videos = tmp_path / "videos/observation.images.c/chunk-000/file-000.mp4"
    videos.parent.mkdir(parents=True)
    joined = np.concatenate([frames_of(i, n) for i, n in enumerate(lengths)])
    videos.write_bytes(encode(joined, rate=10))
    path = tmp_path / "data/chunk-000/file-000.parquet"
    rows = [write_rows(path, i, 5 * i, n) for i, n in enumerate(lengths)]
    facts = [
        {
            "episode_index": i,
            "tasks": ["wave"],
            "length": n,
            "data/chunk_index": 0,
            "data/file_index": 0,
            "videos/observation.images.c/chunk_index": 0,
            "videos/observation.images.c/file_index": 0,
            "videos/observation.images.c/from_timestamp": 0.5 * i,
        }
        for i, n in enumerate(lengths)
    ]
    (tmp_path / "meta/episodes/chunk-000").mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist(facts), tmp_path / "meta/episodes/chunk-000/file-000.parquet"
    )
    for i, episode in enumerate(EpisodeReader(tmp_path)):
        assert np.array_equal(episode.actions, rows[i]["actions"])
        assert np.abs(episode.images["c"].astype(int) - frames_of(i, lengths[i])).mean() < 5.0


@needs_bottle
def test_a_real_store_of_version_2_1_is_read_and_not_changed() -> None:
    before = {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in BOTTLE.rglob("*")}
    reader = EpisodeReader(BOTTLE)
    episode = reader.episode(7, cameras=())
    assert len(reader) == 16
    assert episode.states.shape == (reader.summary(7).length, 26)
    assert reader.spec.state_names[3] == "kLeftElbow"
    assert reader.spec.cameras["cam_high"].height == 480
    assert {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in BOTTLE.rglob("*")} == before


@needs_bottle
@pytest.mark.parametrize("index", [0, 3, 6, 9])
def test_a_missing_video_is_an_error_for_images_only(index: int) -> None:
    reader = EpisodeReader(BOTTLE)
    assert len(reader.episode(index, cameras=())) == reader.summary(index).length
    with pytest.raises(DatasetError, match=rf"no video .*{index:06d}\.mp4"):
        reader.episode(index)


@needs_bottle
@pytest.mark.slow
def test_a_real_video_is_decoded_to_its_last_frame() -> None:
    reader = EpisodeReader(BOTTLE)
    shortest = min((1, 2, 4, 5), key=lambda i: reader.summary(i).length)
    images = reader.episode(shortest).images["cam_high"]
    assert images.shape == (reader.summary(shortest).length, 480, 640, 3)
    assert images[-1].std() > 10.0


def test_only_cameras_asked_for_are_decoded_each_once(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    original = robot.episodes.reader.decode

    def counted(path: Path, **how: float) -> np.ndarray:
        opened.append(path.parts[-3])
        return original(path, **how)

    monkeypatch.setattr(robot.episodes.reader, "decode", counted)
    episode = EpisodeReader(store).episode(1, cameras=["side"])
    assert opened == ["observation.images.side"]
    assert list(episode.images) == ["side"]


def test_reading_changes_nothing(store: Path) -> None:
    before = folder_hash(store)
    assert len(list(EpisodeReader(store))) == 3
    assert folder_hash(store) == before


def test_an_unknown_camera_offers_the_known_ones(store: Path) -> None:
    with pytest.raises(UnknownName, match="side"):
        EpisodeReader(store).episode(0, cameras=["slide"])


def test_a_number_beyond_the_last_episode_is_refused(store: Path) -> None:
    with pytest.raises(DatasetError, match="no episode 3; it has 3"):
        EpisodeReader(store).episode(3)


def test_a_truncated_video_is_named(store: Path) -> None:
    path = store / "videos/observation.images.top/chunk-000/file-001.mp4"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DatasetError, match=r"file-001\.mp4"):
        EpisodeReader(store).episode(1)
    assert len(EpisodeReader(store).episode(1, cameras=["side"])) > 0


def test_a_video_with_too_few_frames_is_named(store: Path) -> None:
    path = store / "videos/observation.images.top/chunk-000/file-001.mp4"
    path.write_bytes(encode(make_episode(1).images["top"][:-2], rate=20))
    with pytest.raises(DatasetError, match="was cut short"):
        EpisodeReader(store).episode(1)


def test_a_truncated_table_is_named(store: Path) -> None:
    path = store / "data/chunk-000/file-002.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match=r"episode 2: .*file-002\.parquet cannot be read"):
        EpisodeReader(store).episode(2)


def test_a_folder_without_a_dataset_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="not a LeRobot dataset"):
        len(EpisodeReader(tmp_path))


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    write_info(tmp_path, codebase_version="v1.6")
    with pytest.raises(DatasetError, match=r"format v1\.6"):
        len(EpisodeReader(tmp_path))
