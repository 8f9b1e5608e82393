"""Frames to H.264 and back, each frame once and in order.

Axes: ``t`` frames, ``h w 3`` an image.
"""

import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.error import FFmpegError
from av.video.reformatter import Interpolation
from jaxtyping import UInt8

from robot.errors import DatasetError

CODEC, PIXELS, KEY_FRAMES = "libx264", "yuv420p", 5

# Looking ahead, x264 reads memory that it did not set, and the same frames then give other bytes.
_OPTIONS = {
    "crf": "10",
    "g": str(KEY_FRAMES),
    "bf": "0",
    "preset": "veryfast",
    "x264-params": "sync-lookahead=0:rc-lookahead=0:mbtree=0",
}


def encode(frames: UInt8[np.ndarray, "t h w 3"], *, rate: int) -> bytes:
    """Return an mp4 of ``frames``, a key frame in five, none reordered.

    Args:
        frames: Height and width must be even, since colour is stored at half resolution.
        rate: Frames a second.

    Raises:
        DatasetError: If height or width is odd, or the encoder lost a frame.
    """
    count, height, width = frames.shape[:3]
    if height % 2 or width % 2:
        raise DatasetError(
            f"frames of {height}x{width} cannot be stored as video: both sides must be even"
        )
    buffer = io.BytesIO()
    stored = 0
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream(CODEC, rate=Fraction(rate), options=dict(_OPTIONS))
        stream.height, stream.width, stream.pix_fmt = height, width, PIXELS
        # Starting threads costs more than encoding a small picture.
        stream.codec_context.thread_count = 1
        for picture in (*(_halved(frame) for frame in frames), None):
            packets = stream.encode(picture)
            stored += len(packets)
            container.mux(packets)
    if stored != count:
        raise DatasetError(f"the video encoder kept {stored} of {count} frames")
    return buffer.getvalue()


def _halved(frame: UInt8[np.ndarray, "h w 3"]) -> av.VideoFrame:
    """Return ``frame`` with colour at half resolution, each value the mean of its four pixels."""
    whole = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
    return whole.reformat(format=PIXELS, interpolation=Interpolation.AREA)


def decode(
    path: Path, *, count: int, start: float = 0.0, rate: float
) -> UInt8[np.ndarray, "t h w 3"]:
    """Return ``count`` frames from ``start`` [s] on; each is decoded once, in order.

    Raises:
        DatasetError: If the file is absent, cannot be read, or holds fewer frames.
    """
    frames: np.ndarray | None = None
    found = 0
    for image in _frames(path, start=start, rate=rate):
        if frames is None:
            frames = np.empty((count, *image.shape), dtype=np.uint8)
        frames[found] = image
        found += 1
        if found == count:
            return frames
    raise DatasetError(
        f"{path} holds {found} frames from {start:.3f} s on, needed {count}; "
        "the video was cut short: leave this episode out or record it again"
    )


def _frames(path: Path, *, start: float, rate: float) -> Iterator[UInt8[np.ndarray, "h w 3"]]:
    if not path.is_file():
        raise DatasetError(f"there is no video {path}; read this episode with cameras=()")
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "NONE"
            if start > 0 and stream.time_base is not None:
                container.seek(max(int((start - 0.5 / rate) / stream.time_base), 0), stream=stream)
            for frame in container.decode(stream):
                if frame.time >= start - 0.5 / rate:
                    yield frame.to_ndarray(format="rgb24")
    except (FFmpegError, IndexError) as error:
        raise DatasetError(f"{path} is not a video that can be read ({error})") from error
