"""Where each episode of a store lies: LeRobotDataset v3.0 (ours and others') and v2.1.

Nothing here writes. What a store does not tell is said plainly: the seed is then the episode's
number, the quality ``unknown``, the outcome None.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from robot.episodes import layout
from robot.episodes.episode import Key, Setback
from robot.episodes.packing import setbacks
from robot.errors import DatasetError
from robot.types import CameraSpec, Outcome, Spec, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is known of one episode without its rows.

    Attributes:
        index: Its number in the store.
        length: Number of rows.
        rows: File that holds its rows.
        videos: For each camera the file of its frames and where in it they begin [s].
        success: Whether the goal was reached; None if the store does not tell.
        rest: As in ``Episode``.
    """

    index: int
    length: int
    rows: Path
    videos: Mapping[str, tuple[Path, float]]
    task: Task
    seed: int
    goal: str
    quality: str = "unknown"
    success: bool | None = None
    outcome: Outcome | None = None
    start_hash: str = ""
    subtasks: tuple[str, ...] = ()
    setbacks: tuple[Setback, ...] = field(default=())

    @property
    def key(self) -> Key:
        """Seed, goal and quality."""
        return (self.seed, self.goal, self.quality)


def read_info(root: Path) -> dict[str, Any]:
    """Return ``meta/info.json``.

    Raises:
        DatasetError: If it is absent, cannot be read, or is of a version not read here.
    """
    path = root / layout.INFO
    try:
        info = json.loads(path.read_text())
    except FileNotFoundError:
        raise DatasetError(
            f"{root} is not a LeRobot dataset, or holds no finished episode: there is no {path}"
        ) from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read ({error})") from error
    version = str(info.get("codebase_version", "none"))
    if not version.startswith(("v3.", "v2.1")):
        raise DatasetError(
            f"{root} has LeRobot's format {version}; v2.1 and v3.0 are read. Convert it with "
            "lerobot's own conversion script"
        )
    return info


def summaries(root: Path, info: Mapping[str, Any]) -> list[Summary]:
    """Return what is known of each finished episode of ``root``.

    Raises:
        DatasetError: If the store's own lists contradict each other.
    """
    read = _read_v3 if str(info["codebase_version"]).startswith("v3") else _read_v21
    found = read(root, info)
    total = int(info["total_episodes"])
    if len(found) < total:
        raise DatasetError(
            f"{root} lists {len(found)} of the {total} episodes that {layout.INFO} speaks of; "
            "its meta folder is damaged"
        )
    # An interrupted writer may have listed one more than it finished.
    return found[:total]


def video_keys(info: Mapping[str, Any]) -> list[str]:
    """Return the columns that are videos."""
    return [n for n, feature in info["features"].items() if feature["dtype"] == "video"]


def camera_name(key: str) -> str:
    """Return the camera's name without LeRobot's prefix."""
    return key.removeprefix(layout.IMAGE)


def _read_v3(root: Path, info: Mapping[str, Any]) -> list[Summary]:
    found: list[Summary] = []
    for path in sorted((root / "meta/episodes").glob("*/*.parquet")):
        names = [n for n in pq.read_schema(path).names if not n.startswith("stats/")]
        for row in pq.read_table(path, columns=names).to_pylist():
            found.append(_summary_v3(root, info, row))
    return sorted(found, key=lambda s: s.index)


def _summary_v3(root: Path, info: Mapping[str, Any], row: Mapping[str, Any]) -> Summary:
    videos: dict[str, tuple[Path, float]] = {}
    for key in video_keys(info):
        chunk, file = row[f"videos/{key}/chunk_index"], row[f"videos/{key}/file_index"]
        path = info["video_path"].format(video_key=key, chunk_index=chunk, file_index=file)
        videos[camera_name(key)] = (root / path, float(row[f"videos/{key}/from_timestamp"]))
    rows = info["data_path"].format(
        chunk_index=row["data/chunk_index"], file_index=row["data/file_index"]
    )
    instruction = row["tasks"][0] if row["tasks"] else ""
    outcome = row.get("outcome")
    return Summary(
        index=row["episode_index"],
        length=row["length"],
        rows=root / rows,
        videos=videos,
        task=Task(name=row.get("task_name") or instruction, instruction=instruction),
        seed=_or(row.get("seed"), row["episode_index"]),
        goal=row.get("goal") or instruction,
        quality=row.get("quality") or "unknown",
        success=row.get("success"),
        outcome=Outcome(outcome) if outcome else None,
        start_hash=row.get("start_hash") or "",
        subtasks=tuple(row.get("subtasks") or ()),
        setbacks=setbacks(row.get("setbacks") or "[]"),
    )


def _or(value: Any, otherwise: int) -> int:
    return otherwise if value is None else int(value)


def _read_v21(root: Path, info: Mapping[str, Any]) -> list[Summary]:
    found: list[Summary] = []
    for line in (root / "meta/episodes.jsonl").read_text().splitlines():
        row = json.loads(line)
        index = row["episode_index"]
        place = {"episode_chunk": index // info["chunks_size"], "episode_index": index}
        instruction = row["tasks"][0] if row["tasks"] else ""
        videos = {
            camera_name(key): (root / info["video_path"].format(video_key=key, **place), 0.0)
            for key in video_keys(info)
        }
        found.append(
            Summary(
                index=index,
                length=row["length"],
                rows=root / info["data_path"].format(**place),
                videos=videos,
                task=Task(name=instruction, instruction=instruction),
                seed=index,
                goal=instruction,
            )
        )
    return sorted(found, key=lambda s: s.index)


def read_spec(root: Path, info: Mapping[str, Any]) -> Spec:
    """Return the spec that ambidex stored, or what the description of columns tells.

    Raises:
        DatasetError: If the store has no states or no actions.
    """
    if (root / layout.SPEC).exists():
        return Spec.from_dict(json.loads((root / layout.SPEC).read_text()))
    features = info["features"]
    missing = [n for n in (layout.STATE, layout.ACTION) if n not in features]
    if missing:
        raise DatasetError(
            f"{root} has no column {' and no '.join(missing)} (it has {', '.join(features)})"
        )
    states, actions = (_names(features[n], n) for n in (layout.STATE, layout.ACTION))
    cameras = {
        camera_name(n): CameraSpec(height=f["shape"][0], width=f["shape"][1], quality="real")
        for n, f in features.items()
        if f["dtype"] in ("video", "image")
    }
    return Spec(
        robot=info.get("robot_type") or "unknown",
        control="unknown",
        rate=float(info["fps"]),
        state_names=states,
        state_units=("unknown",) * len(states),
        action_names=actions,
        action_units=("unknown",) * len(actions),
        action_low=(-math.inf,) * len(actions),
        action_high=(math.inf,) * len(actions),
        cameras=cameras,
    )


def _names(feature: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """Return one name for each entry; LeRobot stores a list, a list of lists or a mapping."""
    width = int(feature["shape"][0])
    names: Any = feature.get("names")
    if isinstance(names, Mapping):
        names = list(names.values())
    flat: list[str] = []
    for name in names or []:
        flat += [str(n) for n in name] if isinstance(name, list) else [str(name)]
    return tuple(flat) if len(flat) == width else tuple(f"{column}_{i}" for i in range(width))
