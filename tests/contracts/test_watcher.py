"""What every Watcher must do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot.episodes.recorder import Recorder
from robot.inference import Delayed
from robot.report.film import FilmMaker
from robot.runner import Runner
from robot.types import Outcome
from robot.watch import Decisions, Heartbeat, Recording, View, Watcher
from tests.robot.bench import PointEnv, Reach

Make = Callable[[Path, PointEnv], Any]
WATCHERS: dict[str, Make] = {
    "recording": lambda folder, env: Recording(cameras=["top"]),
    "decisions": lambda folder, env: Decisions(),
    "view": lambda folder, env: View(lambda image, time: None, "top"),
    "heartbeat": lambda folder, env: Heartbeat(folder / "alive"),
    "film": lambda folder, env: FilmMaker(lambda: np.zeros((16, 16, 3), dtype=np.uint8), rate=20.0),
    "recorder": lambda folder, env: Recorder(env, cameras=("top",)),
}


@pytest.fixture(params=WATCHERS.values(), ids=WATCHERS.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def test_it_is_a_watcher(make: Make, tmp_path: Path) -> None:
    assert isinstance(make(tmp_path, PointEnv()), Watcher)


def test_it_changes_nothing_of_what_happens(make: Make, tmp_path: Path) -> None:
    alone, watched = PointEnv(), PointEnv()
    first = Runner(alone, Delayed(Reach(noise=0.1))).run(2)
    watcher = make(tmp_path, watched)
    second = Runner(watched, Delayed(Reach(noise=0.1)), watchers=[watcher]).run(2)
    assert (first.outcome, first.steps) == (second.outcome, second.steps)
    assert np.stack(alone.robot.commands) == pytest.approx(
        np.stack(watched.robot.commands), abs=0.0
    )


def test_it_watches_one_episode_after_another(make: Make, tmp_path: Path) -> None:
    env = PointEnv()
    runner = Runner(env, Delayed(Reach()), watchers=[make(tmp_path, env)])
    assert [runner.run(seed).outcome for seed in (0, 1)] == [Outcome.SUCCESS] * 2
