"""An episode made ready to be stored: encoded where it was made, so that one writer can keep up.

Axes: ``t`` steps, ``c`` entries of a column.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from robot.episodes import layout
from robot.episodes.distribution import Stats, count_pixels, of_pixels, of_rows
from robot.episodes.episode import Episode, Key, Setback
from robot.episodes.video import encode
from robot.types import Spec

Columns = dict[str, Shaped[np.ndarray, "t c"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One episode as the writer stores it; a few ten kilobytes, cheap to send between processes.

    Attributes:
        spec: That of the episode.
        key: Seed, goal, quality.
        length: Number of rows.
        columns: Numbers by column, without those that depend on the place in the store.
        environment_names: Names of the privileged entries.
        subtask_index: Index into ``facts["subtasks"]``; None if the episode has no subtasks.
        videos: One mp4 for each camera.
        pixels: How often each value occurs, by camera.
        stats: Statistics of this episode by column.
        facts: What is known of the episode as a whole.
    """

    spec: Spec
    key: Key
    length: int
    columns: Columns
    environment_names: tuple[str, ...]
    subtask_index: Int[np.ndarray, " t"] | None
    videos: Mapping[str, bytes]
    pixels: dict[str, Int[np.ndarray, "3 256"]]
    stats: dict[str, Stats]
    facts: Mapping[str, Any]


def pack(episode: Episode) -> Packed:
    """Encode the frames and take the statistics of ``episode``.

    Raises:
        DatasetError: If it cannot be stored as it stands; every fault is named.
    """
    episode.check()
    rate = layout.whole_rate(episode.spec)
    columns = _columns(episode)
    pixels = {c: count_pixels(frames) for c, frames in episode.images.items()}
    stats = {name: of_rows(rows) for name, rows in columns.items()}
    for camera, counts in pixels.items():
        stats[layout.IMAGE + camera] = of_pixels(counts, frames=len(episode))
    return Packed(
        spec=episode.spec,
        key=episode.key,
        length=len(episode),
        columns=columns,
        environment_names=episode.environment_names if episode.environment is not None else (),
        subtask_index=episode.subtask_index,
        videos={c: encode(frames, rate=rate) for c, frames in episode.images.items()},
        pixels={layout.IMAGE + c: counts for c, counts in pixels.items()},
        stats=stats,
        facts=_facts(episode),
    )


def _columns(episode: Episode) -> Columns:
    reached = episode.reached
    if reached is None:
        reached = np.zeros(len(episode), dtype=bool)
        reached[-1] = episode.success
    executed = episode.actions if episode.executed is None else episode.executed
    steps = np.arange(len(episode), dtype=np.int64)
    found: dict[str, np.ndarray | None] = {
        layout.STATE: episode.states.astype(np.float32),
        layout.ACTION: episode.actions.astype(np.float32),
        layout.EXECUTED: executed.astype(np.float32),
        layout.ENVIRONMENT: episode.environment,
        layout.PROGRESS: episode.progress,
        layout.TIME: episode.times.astype(np.float64),
        layout.REACHED: reached.astype(bool),
        "timestamp": (steps / episode.spec.rate).astype(np.float32),
        "frame_index": steps,
    }
    for name in (layout.ENVIRONMENT, layout.PROGRESS):
        rows = found[name]
        if rows is not None:
            found[name] = rows.astype(np.float32)
    return {n: r.reshape(len(episode), -1) for n, r in found.items() if r is not None}


def _facts(episode: Episode) -> dict[str, Any]:
    seed, goal, quality = episode.key
    return {
        "task_name": episode.task.name,
        "instruction": episode.task.instruction,
        "seed": seed,
        "goal": goal,
        "quality": quality,
        "success": episode.success,
        "outcome": "" if episode.outcome is None else episode.outcome.value,
        "start_hash": episode.start_hash,
        "subtasks": list(episode.subtasks),
        "setbacks": json.dumps([asdict(s) for s in episode.setbacks]),
    }


def setbacks(text: str) -> tuple[Setback, ...]:
    """Return the setbacks that a store wrote as ``text``."""
    return tuple(Setback(**plain) for plain in json.loads(text))
