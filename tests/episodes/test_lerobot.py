"""LeRobot's own class reads what is written here."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from smallworld import SPEC, make_episode

from robot.episodes import EpisodeReader, EpisodeWriter

pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with EpisodeWriter(folder, SPEC) as writer:
        for seed in SEEDS:
            writer.append(make_episode(seed, goal="slide" if seed == 2 else "lift"))
    return folder


@pytest.fixture
def lerobot(tmp_path: Path) -> Generator[Any]:
    """Return the class, with its cache in a folder that goes away and no network."""
    import datasets
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield LeRobotDataset


def test_all_rows_and_episodes_are_there(lerobot: Any, root: Path) -> None:
    dataset = lerobot("ambidex/small", root=root, video_backend="pyav")
    assert len(dataset) == sum(len(make_episode(seed)) for seed in SEEDS)
    assert dataset.num_episodes == 4
    assert dataset.fps == 20
    assert len(dataset.hf_dataset) == len(dataset)


def test_a_row_holds_numbers_images_task_and_subtask(lerobot: Any, root: Path) -> None:
    dataset = lerobot("ambidex/small", root=root, video_backend="pyav")
    number = sum(len(make_episode(seed)) for seed in (0, 1)) + 3
    row, wanted = dataset[number], make_episode(2, goal="slide")
    assert np.array_equal(row["observation.state"], wanted.states[3].astype(np.float32))
    assert np.array_equal(row["action"], wanted.actions[3].astype(np.float32))
    assert row["task"] == "slide the pot"
    assert row["subtask"] == "lift"
    assert int(row["subtask_index"]) == 1
    assert float(row["timestamp"]) == pytest.approx(0.15)
    image = row["observation.images.top"]
    assert tuple(image.shape) == (3, 16, 24)
    assert np.abs(image.permute(1, 2, 0).numpy() * 255 - wanted.images["top"][3]).mean() < 5.0


def test_episodes_can_be_chosen_by_number_with_neighbouring_rows(lerobot: Any, root: Path) -> None:
    ahead = {"action": [0.0, 0.05, 0.10], "observation.images.side": [-0.05, 0.0]}
    dataset = lerobot(
        "ambidex/small", root=root, episodes=[1, 3], delta_timestamps=ahead, video_backend="pyav"
    )
    first, last = make_episode(1), make_episode(3)
    assert len(dataset) == len(first) + len(last)
    row = dataset[len(first) + 1]
    assert np.array_equal(row["action"], last.actions[1:4].astype(np.float32))
    assert not row["action_is_pad"].any()
    assert row["observation.images.side"].shape[0] == 2
    assert dataset[0]["observation.images.side_is_pad"].tolist() == [True, False]
    assert dataset[len(dataset) - 1]["action_is_pad"].tolist() == [False, True, True]


def test_episodes_can_be_chosen_by_what_is_known_of_them(lerobot: Any, root: Path) -> None:
    dataset = lerobot(
        "ambidex/small",
        root=root,
        video_backend="pyav",
        episode_filter=lambda facts: facts["success"] and facts["seed"] > 1,
    )
    assert dataset.episodes == [3]


def test_success_is_told_row_by_row(lerobot: Any, root: Path) -> None:
    dataset = lerobot("ambidex/small", root=root, episodes=[1], video_backend="pyav")
    reached = [bool(dataset[i]["next.success"]) for i in range(len(dataset))]
    assert reached == [False] * (len(dataset) - 1) + [True]


def test_statistics_hold_exact_quantiles_in_lerobots_shapes(lerobot: Any, root: Path) -> None:
    stats = lerobot("ambidex/small", root=root, video_backend="pyav").meta.stats
    rows = np.concatenate([episode.states for episode in EpisodeReader(root)])
    assert np.allclose(stats["observation.state"]["q99"], np.quantile(rows, 0.99, axis=0))
    names = {"min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"}
    for camera in ("top", "side"):
        found = stats[f"observation.images.{camera}"]
        assert set(found) == names
        assert found["mean"].shape == (3, 1, 1)
        assert 0.0 <= found["min"].min() <= found["q50"].max() <= found["max"].max() <= 1.0
    assert names == set(stats["action"])


def test_no_privileged_column_is_taken_for_an_observation(lerobot: Any, root: Path) -> None:
    from lerobot.utils.feature_utils import dataset_to_policy_features

    features = lerobot("ambidex/small", root=root, video_backend="pyav").features
    assert "privileged.environment" in features
    assert set(dataset_to_policy_features(features)) == {
        "observation.state",
        "action",
        "observation.images.top",
        "observation.images.side",
    }


def test_lerobot_can_drop_an_episode_into_a_copy(lerobot: Any, root: Path, tmp_path: Path) -> None:
    from lerobot.datasets.dataset_tools import delete_episodes

    dataset = lerobot("ambidex/small", root=root, video_backend="pyav")
    shorter = delete_episodes(
        dataset, [0], output_dir=tmp_path / "shorter", repo_id="ambidex/shorter"
    )
    assert shorter.num_episodes == 3
    wanted = make_episode(1).actions.astype(np.float32)
    assert np.array_equal(EpisodeReader(tmp_path / "shorter").episode(0).actions, wanted)
