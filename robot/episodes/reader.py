"""Reads the episodes of a LeRobotDataset, v3.0 or v2.1, and never writes to it.

Axes: ``t`` rows, ``c`` entries of a column, ``h w 3`` an image.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Int, Shaped, UInt8

from robot.episodes import layout
from robot.episodes.episode import Episode, Key
from robot.episodes.sources import Summary, camera_name, read_info, read_spec, summaries
from robot.episodes.video import decode
from robot.errors import DatasetError, UnknownName
from robot.types import Spec


class EpisodeReader:
    """The finished episodes of a store, read when asked for.

    Args:
        root: Folder of the store.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    @cached_property
    def info(self) -> dict[str, Any]:
        """LeRobot's description of the store, as it was when first asked for."""
        return read_info(self.root)

    @cached_property
    def spec(self) -> Spec:
        """What its states and actions mean."""
        return read_spec(self.root, self.info)

    @cached_property
    def _summaries(self) -> list[Summary]:
        return summaries(self.root, self.info)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras recorded."""
        kinds = ("video", "image")
        return tuple(
            camera_name(n) for n, f in self.info["features"].items() if f["dtype"] in kinds
        )

    @property
    def environment_names(self) -> tuple[str, ...]:
        """Names of the privileged entries; empty if there are none."""
        return tuple(self.info["features"].get(layout.ENVIRONMENT, {}).get("names") or ())

    def __len__(self) -> int:
        """Return the number of finished episodes."""
        return len(self._summaries)

    def __iter__(self) -> Iterator[Episode]:
        """Read one episode after the other, with all cameras."""
        return (self.episode(i) for i in range(len(self)))

    def keys(self) -> list[Key]:
        """Return seed, goal and quality of each episode."""
        return [summary.key for summary in self._summaries]

    def summary(self, index: int) -> Summary:
        """Return what is known of episode ``index`` without its rows.

        Raises:
            DatasetError: If there is no such episode.
        """
        if not 0 <= index < len(self):
            raise DatasetError(f"{self.root} has no episode {index}; it has {len(self)}, from 0 on")
        return self._summaries[index]

    def episode(self, index: int, cameras: Sequence[str] | None = None) -> Episode:
        """Return episode ``index``.

        Args:
            index: Its number in the store.
            cameras: Only these cameras are decoded; all of them if None.

        Raises:
            DatasetError: If its rows or a video asked for are absent, damaged or too short.
            UnknownName: If a camera is not in the store.
        """
        summary = self.summary(index)
        wanted = self.cameras if cameras is None else tuple(cameras)
        for camera in wanted:
            if camera not in self.cameras:
                raise UnknownName("camera", camera, list(self.cameras))
        table = self._rows(summary)
        column = _Columns(table)
        subtask_index, subtasks = _subtasks(summary, column)
        reached = column.get(layout.REACHED)
        success = summary.success
        if success is None and reached is not None:
            success = bool(reached.any())
        times = column.get(layout.TIME)
        return Episode(
            spec=self.spec,
            task=summary.task,
            seed=summary.seed,
            quality=summary.quality,
            success=bool(success),
            times=(column["timestamp"] if times is None else times)[:, 0].astype(np.float64),
            states=column[layout.STATE],
            actions=column[layout.ACTION],
            images={camera: self._frames(summary, camera, table) for camera in wanted},
            environment=column.get(layout.ENVIRONMENT),
            environment_names=self.environment_names,
            executed=column.get(layout.EXECUTED),
            progress=_flat(column.get(layout.PROGRESS)),
            reached=_flat(reached),
            subtask_index=subtask_index,
            subtasks=subtasks,
            setbacks=summary.setbacks,
            start_hash=summary.start_hash,
            outcome=summary.outcome,
            goal=summary.goal,
        )

    def _rows(self, summary: Summary) -> pa.Table:
        try:
            table = pq.read_table(summary.rows, filters=[("episode_index", "==", summary.index)])
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(
                f"episode {summary.index}: {summary.rows} cannot be read ({error}); "
                "leave this episode out or restore the file"
            ) from error
        if table.num_rows != summary.length:
            raise DatasetError(
                f"episode {summary.index}: {summary.rows} holds {table.num_rows} of its "
                f"{summary.length} rows; leave this episode out or restore the file"
            )
        return table

    def _frames(
        self, summary: Summary, camera: str, table: pa.Table
    ) -> UInt8[np.ndarray, "t h w 3"]:
        if camera in summary.videos:
            path, start = summary.videos[camera]
            return decode(path, count=summary.length, start=start, rate=self.spec.rate)
        name = layout.IMAGE + camera if layout.IMAGE + camera in table.column_names else camera
        return np.stack([_picture(cell["bytes"]) for cell in table[name].to_pylist()])


def _picture(content: bytes) -> UInt8[np.ndarray, "h w 3"]:
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise DatasetError(f"an image of {len(content)} bytes cannot be decoded")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), dtype=np.uint8)


class _Columns:
    """Columns of numbers, ``(t, c)`` each."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def get(self, name: str) -> Shaped[np.ndarray, "t c"] | None:
        if name not in self._table.column_names:
            return None
        column = self._table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        flat = column.flatten() if pa.types.is_nested(column.type) else column
        return np.array(flat.to_numpy(zero_copy_only=False)).reshape(self._table.num_rows, -1)

    def __getitem__(self, name: str) -> Shaped[np.ndarray, "t c"]:
        found = self.get(name)
        if found is None:
            raise DatasetError(
                f"there is no column {name}; the store has {', '.join(self._table.column_names)}"
            )
        return found

    def texts(self, name: str) -> list[str] | None:
        return self._table[name].to_pylist() if name in self._table.column_names else None


def _subtasks(
    summary: Summary, column: _Columns
) -> tuple[Int[np.ndarray, " t"] | None, tuple[str, ...]]:
    texts = column.texts(layout.SUBTASK)
    if texts is None or not any(texts):
        return None, summary.subtasks
    names = summary.subtasks or tuple(dict.fromkeys(texts))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[text] for text in texts], dtype=np.int64), names


def _flat(rows: Shaped[np.ndarray, "t 1"] | None) -> Shaped[np.ndarray, " t"] | None:
    return None if rows is None else rows[:, 0]
