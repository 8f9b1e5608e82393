"""All frames of one or several stores as memory-mapped arrays, built once.

Axes: ``n`` frames of all episodes in order, ``s`` state, ``d`` action, ``e`` environment state,
``m`` episodes, ``h w 3`` an image. A cache is named by a hash of what it was built from, written
under a temporary name and renamed, so that any number of processes may ask for it at once.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from rich.console import Console
from rich.progress import track

from robot.episodes import layout
from robot.episodes.episode import Episode
from robot.episodes.reader import EpisodeReader
from robot.errors import DatasetError, SpecMismatch, UnknownName
from robot.types import Spec

FORMAT = 1
"""Raised when the content of a cache changes meaning."""


_NUMBERS = ("episode", "frame", "instruction_index", "subtask", "quality_index", "goal_index")
_EPISODES = ("starts", "lengths", "seeds", "stores", "places")
_ARRAYS = ("states", "actions", "executed", "progress", "reached", "success", *_NUMBERS, *_EPISODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Every frame of some stores, episodes by key; the arrays are read-only maps of files.

    Attributes:
        path: Folder of the cache.
        spec: What states and actions mean.
        images: Frames by camera.
        states, actions, executed: In the units of the spec.
        environment: Privileged state of the objects; no columns if there is none.
        environment_names: One name for each of its entries.
        progress: Privileged progress of the goal; NaN where it was not recorded.
        reached: Whether the goal held after the step.
        episode: Number of the episode of each frame, counted over all stores.
        frame: Number of the frame within its episode.
        instruction_index: Index into ``instructions``.
        subtask: Index into ``subtasks``; -1 where there is none.
        success: Whether the frame's episode reached its goal.
        quality_index: Index into ``qualities``.
        goal_index: Index into ``goals``.
        starts, lengths: First frame and number of frames of each episode.
        seeds: Seed of each episode.
        stores, places: Which store each episode is from, and its number there.
        instructions, subtasks, qualities, goals: The texts.
    """

    path: Path
    spec: Spec
    images: Mapping[str, UInt8[np.ndarray, "n h w 3"]]
    states: Float[np.ndarray, "n s"]
    actions: Float[np.ndarray, "n d"]
    executed: Float[np.ndarray, "n d"]
    environment: Float[np.ndarray, "n e"]
    environment_names: tuple[str, ...]
    progress: Float[np.ndarray, " n"]
    reached: Bool[np.ndarray, " n"]
    episode: Int[np.ndarray, " n"]
    frame: Int[np.ndarray, " n"]
    instruction_index: Int[np.ndarray, " n"]
    subtask: Int[np.ndarray, " n"]
    success: Bool[np.ndarray, " n"]
    quality_index: Int[np.ndarray, " n"]
    goal_index: Int[np.ndarray, " n"]
    starts: Int[np.ndarray, " m"]
    lengths: Int[np.ndarray, " m"]
    seeds: Int[np.ndarray, " m"]
    stores: Int[np.ndarray, " m"]
    places: Int[np.ndarray, " m"]
    instructions: tuple[str, ...]
    subtasks: tuple[str, ...]
    qualities: tuple[str, ...]
    goals: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.states)


def frames(
    roots: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    cameras: Sequence[str] | None = None,
    *,
    console: Console | None = None,
) -> Frames:
    """Return all frames of ``roots``, decoding them if that was not done before.

    Args:
        roots: One store or several, in this order.
        out: Where caches are kept; beside the first store, in ``<name>.frames``, if None.
        cameras: Only these cameras; all if None.
        console: Where progress is shown.

    Raises:
        DatasetError: If a store cannot be read, holds no episode, or the disk is full.
        SpecMismatch: If the stores speak of different robots.
        UnknownName: If a store lacks a camera.
    """
    listed = [roots] if isinstance(roots, (str, Path)) else list(roots)
    readers = [EpisodeReader(Path(root)) for root in listed]
    if not readers or not all(len(reader) for reader in readers):
        raise DatasetError(f"there are no finished episodes in {', '.join(map(str, listed))}")
    wanted = readers[0].cameras if cameras is None else tuple(cameras)
    _check(readers, wanted)
    first = readers[0].root.resolve()
    home = first.parent / f"{first.name}.frames" if out is None else Path(out)
    path = home / _key(readers, wanted)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _turn(home / f".{path.name}.lock"):
            if not path.exists():
                _build(path, readers, wanted, console or Console(stderr=True))
    except OSError as error:
        raise DatasetError(
            f"the frames cannot be kept in {home} ({error.strerror or error}); "
            "make room there or give another folder as out"
        ) from error
    return _open(path, readers[0].spec, wanted)


def _check(readers: Sequence[EpisodeReader], cameras: Sequence[str]) -> None:
    for reader in readers:
        for camera in cameras:
            if camera not in reader.cameras:
                raise UnknownName(f"camera of {reader.root}", camera, list(reader.cameras))
        differences = readers[0].spec.differences(reader.spec, cameras=cameras)
        if readers[0].environment_names != reader.environment_names:
            differences.append(
                f"privileged entries: {readers[0].environment_names} against "
                f"{reader.environment_names}"
            )
        if differences:
            raise SpecMismatch(str(readers[0].root), str(reader.root), differences)


def _key(readers: Sequence[EpisodeReader], cameras: Sequence[str]) -> str:
    """Return a hash of the stores: of the facts about every episode and the size of every file."""
    digest = hashlib.sha256(json.dumps([FORMAT, list(cameras)]).encode())
    for reader in readers:
        digest.update((reader.root / layout.INFO).read_bytes())
        for path in sorted(reader.root.glob("meta/episodes*/**/*.parquet")):
            digest.update(path.read_bytes())
        for path in sorted(reader.root.glob("meta/*.jsonl")):
            digest.update(path.read_bytes())
        for index in range(len(reader)):
            summary = reader.summary(index)
            files = [summary.rows, *(v[0] for c, v in summary.videos.items() if c in cameras)]
            sizes = [f.stat().st_size if f.exists() else -1 for f in files]
            digest.update(json.dumps([str(f.relative_to(reader.root)) for f in files]).encode())
            digest.update(json.dumps(sizes).encode())
    return digest.hexdigest()[:24]


@contextmanager
def _turn(lock: Path) -> Generator[None]:
    """Let one process build while the others wait."""
    handle = os.open(lock, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _order(reader: EpisodeReader) -> list[int]:
    """Return the episodes by key: their order in the store depends on who was faster."""
    keys = reader.keys()
    return sorted(range(len(reader)), key=lambda i: (keys[i], i))


class _Texts:
    """Gives each text a number."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.found.setdefault(text, len(self.found))


def _build(
    path: Path, readers: Sequence[EpisodeReader], cameras: Sequence[str], console: Console
) -> None:
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    order = [(n, i) for n, reader in enumerate(readers) for i in _order(reader)]
    lengths = [readers[n].summary(i).length for n, i in order]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    arrays = _allocate(partial, readers[0], cameras, count=int(np.sum(lengths)))
    texts = {n: _Texts() for n in ("instructions", "subtasks", "qualities", "goals")}
    seeds: list[int] = []
    shown = track(order, "decoding frames", console=console, transient=True)
    for number, (store, index) in enumerate(shown):
        episode = readers[store].episode(index, cameras=cameras)
        rows = slice(int(starts[number]), int(starts[number]) + lengths[number])
        for name, values in _rows(episode, number, texts).items():
            arrays[name][rows] = values
        seeds.append(episode.seed)
    for array in arrays.values():
        array.flush()
    stores, places = zip(*order, strict=True)
    own = (starts, lengths, seeds, stores, places)
    for name, values in zip(_EPISODES, own, strict=True):
        np.save(partial / f"{name}.npy", np.asarray(values, dtype=np.int64))
    content: dict[str, Any] = {name: list(kind.found) for name, kind in texts.items()}
    content["environment_names"] = list(readers[0].environment_names)
    (partial / "texts.json").write_text(json.dumps(content))
    partial.rename(path)


def _allocate(
    folder: Path, reader: EpisodeReader, cameras: Sequence[str], *, count: int
) -> dict[str, np.memmap]:
    states, actions = len(reader.spec.state_names), len(reader.spec.action_names)
    shapes: dict[str, tuple[type, tuple[int, ...]]] = {
        "states": (np.float32, (states,)),
        "actions": (np.float32, (actions,)),
        "executed": (np.float32, (actions,)),
        "environment": (np.float32, (len(reader.environment_names),)),
        "progress": (np.float32, ()),
        "reached": (np.bool_, ()),
        "success": (np.bool_, ()),
    }
    shapes |= dict.fromkeys(_NUMBERS, (np.int32, ()))
    for camera in cameras:
        size = reader.spec.cameras[camera]
        shapes[f"image {camera}"] = (np.uint8, (size.height, size.width, 3))
    return {
        name: np.lib.format.open_memmap(
            folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(count, *shape)
        )
        for name, (dtype, shape) in shapes.items()
        if 0 not in shape
    }


def _rows(episode: Episode, number: int, texts: Mapping[str, _Texts]) -> dict[str, Any]:
    """Return the values of one episode by array."""
    index = episode.subtask_index
    names = [texts["subtasks"].number(name) for name in episode.subtasks]
    found: dict[str, Any] = {
        "states": episode.states,
        "actions": episode.actions,
        "executed": episode.actions if episode.executed is None else episode.executed,
        "progress": np.nan if episode.progress is None else episode.progress,
        "reached": False if episode.reached is None else episode.reached,
        "success": episode.success,
        "episode": number,
        "frame": np.arange(len(episode)),
        "instruction_index": texts["instructions"].number(episode.task.instruction),
        "subtask": -1 if index is None else np.array(names)[index],
        "quality_index": texts["qualities"].number(episode.quality),
        "goal_index": texts["goals"].number(episode.key[1]),
    }
    if episode.environment is not None:
        found["environment"] = episode.environment
    return found | {f"image {camera}": images for camera, images in episode.images.items()}


def _open(path: Path, spec: Spec, cameras: Sequence[str]) -> Frames:
    texts = json.loads((path / "texts.json").read_text())

    def load(name: str) -> Any:
        return np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)

    found: dict[str, Any] = {name: load(name) for name in _ARRAYS}
    found |= {name: tuple(values) for name, values in texts.items()}
    found["images"] = {camera: load(f"image {camera}") for camera in cameras}
    bare = np.zeros((len(found["states"]), 0), np.float32)
    there = (path / "environment.npy").exists()
    return Frames(path=path, spec=spec, environment=load("environment") if there else bare, **found)
