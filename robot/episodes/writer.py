"""Writes a LeRobotDataset v3.0 that is whole after every episode.

One parquet and one mp4 per camera for each episode, then the facts about it; ``meta/info.json`` is
replaced last and says how many episodes there are. What an interrupted episode left behind lies
beyond that number: readers do not look at it, and the next writer removes it. The reasons are in
``docs/decisions/0010-episode-writer.md``.
"""

import io
import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from robot.episodes import layout, tables
from robot.episodes.distribution import Distribution
from robot.episodes.durable import drop_partial, only_writer, put
from robot.episodes.episode import Episode, Key
from robot.episodes.packing import Packed, pack
from robot.episodes.recovery import Recovered, recover
from robot.errors import DatasetError, SpecMismatch
from robot.types import Spec


class EpisodeWriter:
    """Appends episodes to a store; opens at ``with`` or at the first episode.

    Args:
        root: Folder of the store; created, or continued if ambidex wrote it.
        spec: What all its episodes speak of.
    """

    def __init__(self, root: str | Path, spec: Spec) -> None:
        self.root = Path(root)
        self.spec = spec
        self._stack = ExitStack()
        self._store: Recovered | None = None
        self._broken = ""

    def __enter__(self) -> Self:
        """Open the store and remove what a crash left in it."""
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    def open(self) -> None:
        """Create the store, or continue it after its last finished episode.

        Raises:
            DatasetError: If the folder cannot be written, holds something else, or another
                process writes to it.
            SpecMismatch: If it holds episodes of another robot.
        """
        if self._store is not None:
            return
        layout.whole_rate(self.spec)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with ExitStack() as stack:
                stack.enter_context(only_writer(self.root))
                drop_partial(self.root)
                self._store = self._recover()
                self._stack = stack.pop_all()
        except OSError as error:
            raise DatasetError(
                f"{self.root} cannot be written ({error.strerror or error}); "
                "choose another folder, or make room and run again"
            ) from error

    def _recover(self) -> Recovered:
        if not (self.root / layout.SPEC).exists():
            strange = [p.name for p in self.root.iterdir() if not p.name.startswith(".")]
            if strange and (strange != ["meta"] or any((self.root / "meta").iterdir())):
                raise DatasetError(
                    f"{self.root} holds {', '.join(sorted(strange)[:4])} but was not written by "
                    "ambidex, so nothing is added to it; choose an empty folder"
                )
            put(self.root, layout.SPEC, _json(self.spec.to_dict()))
        stored = Spec.from_dict(json.loads((self.root / layout.SPEC).read_text()))
        differences = self.spec.differences(stored)
        if differences:
            raise SpecMismatch("the new episodes", str(self.root), differences)
        return recover(self.root)

    def close(self) -> None:
        """Bring all quantiles up to date and let go of the store; safe to call twice."""
        store, self._store = self._store, None
        try:
            if store is not None and store.episodes and not self._broken:
                put(self.root, layout.STATS, _json(store.distribution.stats(exact=True)))
                drop_partial(self.root)
        finally:
            self._stack.close()

    def __len__(self) -> int:
        """Return the number of finished episodes."""
        return self._opened().episodes

    def keys(self) -> list[Key]:
        """Return seed, goal and quality of each finished episode."""
        return list(self._opened().keys)

    def _opened(self) -> Recovered:
        self.open()
        if self._store is None:
            raise DatasetError(f"{self.root} is closed; open it again")
        return self._store

    def append(self, episode: Episode | Packed) -> int:
        """Store ``episode`` and return its number; when this returns, it outlives a crash.

        Raises:
            DatasetError: If the episode cannot be stored as it stands, does not fit the others,
                or the disk is full or not writable. Finished episodes stay as they are.
        """
        store = self._opened()
        if self._broken:
            raise DatasetError(f"{self.root} failed before ({self._broken}); open it again")
        packed = pack(episode) if isinstance(episode, Episode) else episode
        described = self._described(store, packed)
        try:
            self._store_episode(store, packed, described)
        except BaseException as error:
            # What is in memory may be ahead of the disk now; the disk is right.
            self._broken = getattr(error, "strerror", None) or type(error).__name__
            if not isinstance(error, OSError):
                raise
            raise DatasetError(
                f"episode {packed.key} could not be stored in {self.root} ({self._broken}); "
                f"the {store.episodes} finished episodes are kept. Make room or choose another "
                "folder, and run again to go on from there"
            ) from error
        return store.episodes - 1

    def _described(self, store: Recovered, packed: Packed) -> dict[str, layout.Feature]:
        """Return the columns of the store, after a check that the episode has the same."""
        differences = self.spec.differences(packed.spec)
        if differences:
            raise SpecMismatch(f"episode {packed.key}", str(self.root), differences)
        described = layout.features(
            self.spec, cameras=tuple(packed.videos), environment=packed.environment_names
        )
        if layout.PROGRESS not in packed.columns:
            del described[layout.PROGRESS]
        if store.described and store.described != described:
            ours, theirs = set(store.described), set(described)
            named = sorted(ours ^ theirs) or [
                n for n in described if described[n] != store.described[n]
            ]
            raise DatasetError(
                f"episode {packed.key} does not fit {self.root}: they differ in the columns "
                f"{', '.join(named)}; record them alike or choose another folder"
            )
        return described

    def _store_episode(
        self, store: Recovered, packed: Packed, described: dict[str, layout.Feature]
    ) -> None:
        index, cameras = store.episodes, tuple(packed.videos)
        task = store.number("task", packed.facts["instruction"])
        columns, texts = _placed(store, packed, index=index, task=task)
        for camera in cameras:
            put(self.root, layout.video_file(camera, index), packed.videos[camera])
        rows = tables.rows_table(columns, described=described, subtask=texts)
        put(self.root, layout.rows_file(index), tables.to_bytes(rows))
        facts = tables.facts_row(
            packed.facts,
            packed.stats,
            index=index,
            length=packed.length,
            first=store.frames,
            cameras=cameras,
            rate=layout.whole_rate(self.spec),
        )
        number, full = divmod(index, layout.EPISODES_PER_META_FILE)
        recent = tables.facts_table(facts)
        if full and store.recent is not None:
            recent = pa.concat_tables([store.recent, recent]).combine_chunks()
        put(self.root, layout.facts_file(number), tables.to_bytes(recent))
        self._store_names(store)
        store.distribution.add(columns, packed.pixels)
        self._store_distribution(store.distribution)
        total = store.frames + packed.length
        content = layout.info(
            self.spec, described, episodes=index + 1, frames=total, tasks=len(store.names["task"])
        )
        put(self.root, layout.INFO, _json(content))
        store.described, store.recent = described, recent
        store.episodes, store.frames = index + 1, total
        store.keys.append(packed.key)

    def _store_names(self, store: Recovered) -> None:
        for kind, file in (("task", layout.TASKS), ("subtask", layout.SUBTASKS)):
            if len(store.names[kind]) > store.stored_names[kind]:
                table = tables.names_table(store.names[kind], kind=kind)
                put(self.root, file, tables.to_bytes(table))
                store.stored_names[kind] = len(store.names[kind])

    def _store_distribution(self, distribution: Distribution) -> None:
        put(self.root, layout.STATS, _json(distribution.stats()))
        if distribution.pixels:
            buffer = io.BytesIO()
            np.save(buffer, np.stack([distribution.pixels[c] for c in sorted(distribution.pixels)]))
            put(self.root, layout.PIXEL_COUNTS, buffer.getvalue())


def _placed(
    store: Recovered, packed: Packed, *, index: int, task: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return all columns, with those that depend on the place in the store, and subtask texts."""
    length = packed.length
    local = packed.subtask_index
    names = packed.facts["subtasks"]
    texts = [""] * length if local is None else [names[i] for i in local]
    numbers = [store.number("subtask", text) for text in texts]
    own = {
        layout.SUBTASK_INDEX: np.asarray(numbers),
        "episode_index": np.full(length, index),
        "index": np.arange(store.frames, store.frames + length),
        "task_index": np.full(length, task),
    }
    return packed.columns | {n: c.astype(np.int64)[:, None] for n, c in own.items()}, texts


def _json(content: dict[str, Any]) -> bytes:
    # Without line breaks the fast encoder is used; this runs after every episode.
    return json.dumps(content, allow_nan=False).encode()
