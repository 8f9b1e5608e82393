"""Where things lie in a LeRobotDataset v3.0, and what its columns are called.

Privileged columns have names that LeRobot takes neither for an observation nor for an action, so
that no policy trained with it sees them by accident.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from robot.episodes.video import PIXELS
from robot.errors import DatasetError
from robot.types import Spec

VERSION = "v3.0"
FILES_PER_CHUNK = 1000
EPISODES_PER_META_FILE = 50

INFO = "meta/info.json"
STATS = "meta/stats.json"
TASKS = "meta/tasks.parquet"
SUBTASKS = "meta/subtasks.parquet"
SPEC = "meta/ambidex_spec.json"
PIXEL_COUNTS = "meta/ambidex_pixels.npy"

STATE, ACTION, IMAGE = "observation.state", "action", "observation.images."
EXECUTED, ENVIRONMENT, PROGRESS = "executed", "privileged.environment", "privileged.progress"
TIME, REACHED = "robot_time", "next.success"
SUBTASK_INDEX, SUBTASK = "subtask_index", "subtask"

Feature = dict[str, Any]


def _place(index: int) -> str:
    return f"chunk-{index // FILES_PER_CHUNK:03d}/file-{index % FILES_PER_CHUNK:03d}"


def rows_file(index: int) -> str:
    """Return the file of the rows of episode ``index``."""
    return f"data/{_place(index)}.parquet"


def video_file(camera: str, index: int) -> str:
    """Return the file of the frames of one camera in episode ``index``."""
    return f"videos/{IMAGE}{camera}/{_place(index)}.mp4"


def facts_file(number: int) -> str:
    """Return file ``number`` of the facts about episodes."""
    return f"meta/episodes/{_place(number)}.parquet"


def whole_rate(spec: Spec) -> int:
    """Return the rate as LeRobot stores it.

    Raises:
        DatasetError: If the rate is not a whole number.
    """
    if spec.rate != int(spec.rate) or spec.rate <= 0:
        raise DatasetError(
            f"a rate of {spec.rate:g} Hz cannot be stored: LeRobot needs a whole number of frames "
            "a second; choose another control rate"
        )
    return int(spec.rate)


def _column(dtype: str, names: Sequence[str] | None = None) -> Feature:
    shape = [1] if names is None else [len(names)]
    return {"dtype": dtype, "shape": shape, "names": None if names is None else list(names)}


def features(
    spec: Spec, *, cameras: Sequence[str], environment: Sequence[str]
) -> dict[str, Feature]:
    """Return LeRobot's description of every column.

    Args:
        spec: Names of states and actions, sizes of cameras.
        cameras: The cameras recorded.
        environment: Names of the privileged entries; no such column if empty.

    Raises:
        DatasetError: If a camera is not in the spec or its name cannot be part of a path.
    """
    found: dict[str, Feature] = {
        STATE: _column("float32", spec.state_names),
        ACTION: _column("float32", spec.action_names),
        EXECUTED: _column("float32", spec.action_names),
    }
    for camera in cameras:
        if camera not in spec.cameras or "/" in camera:
            known = ", ".join(spec.cameras) or "none"
            raise DatasetError(f"camera {camera!r} cannot be recorded; the spec has {known}")
        found[IMAGE + camera] = _video(spec, camera)
    if environment:
        found[ENVIRONMENT] = _column("float32", environment)
    found |= {
        PROGRESS: _column("float32"),
        TIME: _column("float64"),
        REACHED: _column("bool"),
        SUBTASK_INDEX: _column("int64"),
        SUBTASK: _column("string"),
        "timestamp": _column("float32"),
        "frame_index": _column("int64"),
        "episode_index": _column("int64"),
        "index": _column("int64"),
        "task_index": _column("int64"),
    }
    return found


def _video(spec: Spec, camera: str) -> Feature:
    height, width = spec.cameras[camera].height, spec.cameras[camera].width
    return {
        "dtype": "video",
        "shape": [height, width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": height,
            "video.width": width,
            "video.codec": "h264",
            "video.pix_fmt": PIXELS,
            "video.fps": whole_rate(spec),
            "video.channels": 3,
            "is_depth_map": False,
            "has_audio": False,
        },
    }


def info(
    spec: Spec, columns: Mapping[str, Feature], *, episodes: int, frames: int, tasks: int
) -> dict[str, Any]:
    """Return the content of ``meta/info.json``, the commit point of the store."""
    return {
        "codebase_version": VERSION,
        "robot_type": spec.robot,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": FILES_PER_CHUNK,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": whole_rate(spec),
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": dict(columns),
    }
