"""What a store holds when it is opened for writing, leftovers of a crash removed.

``meta/info.json`` says how many episodes are finished. An interrupted writer leaves at most one
more, in part, since each episode is committed before the next begins.
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Int

from robot.episodes import layout, tables
from robot.episodes.distribution import Distribution, count_pixels
from robot.episodes.durable import put
from robot.episodes.episode import Key
from robot.episodes.video import decode
from robot.errors import DatasetError


def _no_names() -> dict[str, list[str]]:
    return {"task": [], "subtask": []}


@dataclass(slots=True, kw_only=True)
class Recovered:
    """A store as its writer sees it; changes with every finished episode.

    Attributes:
        episodes, frames: How many are finished.
        described: LeRobot's description of its columns; empty in a new store.
        names: Texts of tasks and subtasks, in the order of their numbers.
        stored_names: How many of each are on disk.
        recent: The facts in the last file of facts.
        keys: Seed, goal and quality of each episode.
        distribution: Of all rows so far.
    """

    episodes: int = 0
    frames: int = 0
    described: dict[str, layout.Feature] = field(default_factory=dict[str, layout.Feature])
    names: dict[str, list[str]] = field(default_factory=_no_names)
    stored_names: dict[str, int] = field(default_factory=lambda: {"task": 0, "subtask": 0})
    recent: pa.Table | None = None
    keys: list[Key] = field(default_factory=list[Key])
    distribution: Distribution = field(default_factory=Distribution)

    def number(self, kind: str, text: str) -> int:
        """Return the number of a task or subtask; a new one gets the next."""
        if text not in self.names[kind]:
            self.names[kind].append(text)
        return self.names[kind].index(text)


def recover(root: Path) -> Recovered:
    """Return what ``root`` holds and remove what lies beyond its finished episodes.

    Raises:
        DatasetError: If a finished episode cannot be read.
    """
    if not (root / layout.INFO).exists():
        _drop_files(root, 0)
        return Recovered()
    info = json.loads((root / layout.INFO).read_text())
    store = Recovered(
        episodes=info["total_episodes"],
        frames=info["total_frames"],
        described=info["features"],
    )
    _drop_files(root, store.episodes)
    for kind, file in (("task", layout.TASKS), ("subtask", layout.SUBTASKS)):
        table = pq.read_table(root / file)
        store.names[kind] = table[kind].to_pylist()
        store.stored_names[kind] = len(store.names[kind])
    _read_facts(root, store)
    _read_distribution(root, store)
    return store


def _drop_files(root: Path, finished: int) -> None:
    """Remove rows and videos of the episode that was under way."""
    (root / layout.rows_file(finished)).unlink(missing_ok=True)
    for folder in (root / "videos").glob("*"):
        camera = folder.name.removeprefix(layout.IMAGE)
        (root / layout.video_file(camera, finished)).unlink(missing_ok=True)
    if finished % layout.EPISODES_PER_META_FILE == 0:
        number = finished // layout.EPISODES_PER_META_FILE
        (root / layout.facts_file(number)).unlink(missing_ok=True)


def _read_facts(root: Path, store: Recovered) -> None:
    last = (store.episodes - 1) // layout.EPISODES_PER_META_FILE
    for number in range(last + 1):
        table = pq.read_table(root / layout.facts_file(number))
        rows = table.select(["episode_index", "seed", "goal", "quality"]).to_pylist()
        finished = [row for row in rows if row["episode_index"] < store.episodes]
        store.keys += [(row["seed"], row["goal"], row["quality"]) for row in finished]
        if number == last:
            store.recent = table.slice(0, len(finished))
            if len(finished) < len(rows):
                put(root, layout.facts_file(number), tables.to_bytes(store.recent))
    if len(store.keys) != store.episodes:
        raise DatasetError(
            f"{root} has facts about {len(store.keys)} of {store.episodes} finished episodes; "
            "its meta/episodes folder was changed: restore it or choose another folder"
        )


def _read_distribution(root: Path, store: Recovered) -> None:
    numbers = [
        name
        for name, feature in store.described.items()
        if feature["dtype"] not in ("video", "string")
    ]
    for index in range(store.episodes):
        table = pq.read_table(root / layout.rows_file(index), columns=numbers)
        columns = {
            name: np.stack(table[name].to_numpy()).reshape(table.num_rows, -1) for name in numbers
        }
        store.distribution.add(columns, {})
    store.distribution.pixels = _pixels(root, store)


def _pixels(root: Path, store: Recovered) -> dict[str, Int[np.ndarray, "3 256"]]:
    cameras = sorted(n for n, feature in store.described.items() if feature["dtype"] == "video")
    if not cameras:
        return {}
    sizes = [store.frames * int(np.prod(store.described[c]["shape"][:2])) for c in cameras]
    try:
        counts = np.load(io.BytesIO((root / layout.PIXEL_COUNTS).read_bytes()), allow_pickle=False)
    except (OSError, ValueError):
        counts = np.zeros((0, 3, 256), dtype=np.int64)
    # They may be one episode ahead if the writer was cut off; then the videos are counted again.
    fits = len(counts) == len(cameras) and all(
        int(count.sum()) == 3 * size for count, size in zip(counts, sizes, strict=True)
    )
    if not fits:
        return {camera: _counted(root, store, camera) for camera in cameras}
    return dict(zip(cameras, counts, strict=True))


def _counted(root: Path, store: Recovered, camera: str) -> Int[np.ndarray, "3 256"]:
    total = np.zeros((3, 256), dtype=np.int64)
    rate = store.described[camera]["info"]["video.fps"]
    for index in range(store.episodes):
        length = pq.read_metadata(root / layout.rows_file(index)).num_rows
        path = root / layout.video_file(camera.removeprefix(layout.IMAGE), index)
        total += count_pixels(decode(path, count=length, rate=rate))
    return total
