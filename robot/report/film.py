"""Pictures of an episode as a small mp4, in memory. Axes: ``h w 3`` a picture."""

from collections.abc import Callable
from io import BytesIO

import av
import numpy as np
from jaxtyping import Float, UInt8

from robot.record import EpisodeRecord
from robot.trials import Film
from robot.types import ActionChunk, Observation, Plan, Spec, Task

Picture = Callable[[], UInt8[np.ndarray, "h w 3"]]


class FilmMaker:
    """Watcher: takes a picture after every ``every``-th control step.

    Args:
        picture: Takes a picture of what is there now.
        rate: Control steps a second [Hz].
        every: Steps from one picture to the next; 2 gives ten pictures a second at 20 Hz.
    """

    def __init__(self, picture: Picture, *, rate: float, every: int = 2) -> None:
        self._picture, self._rate, self._every = picture, rate, every
        self._pictures: list[UInt8[np.ndarray, "h w 3"]] = []
        self._steps = 0

    def begin(self, seed: int, task: Task, spec: Spec) -> None:
        """Take the picture of the start."""
        self._pictures, self._steps = [np.array(self._picture())], 0

    def step(
        self,
        observation: Observation,
        target: Float[np.ndarray, " d"],
        chunk: ActionChunk | None,
        plan: Plan,
    ) -> None:
        """Take a picture if it is time."""
        self._steps += 1
        if self._steps % self._every == 0:
            self._pictures.append(np.array(self._picture()))

    def end(self, record: EpisodeRecord) -> None:
        """Nothing to do: ``finish`` encodes."""

    def finish(self) -> Film:
        """Return the encoded film."""
        rate = self._rate / self._every
        height, width = (side - side % 2 for side in self._pictures[0].shape[:2])
        pictures = [picture[:height, :width] for picture in self._pictures]
        return Film(
            mp4=encode(pictures, rate=rate),
            rate=rate,
            width=width,
            height=height,
            frames=len(pictures),
        )


def encode(pictures: list[UInt8[np.ndarray, "h w 3"]], *, rate: float) -> bytes:
    """Return an mp4 (H.264, which every browser plays) of pictures with even sides."""
    buffer = BytesIO()
    with av.open(buffer, mode="w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=round(rate))
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "27", "preset": "fast", "threads": "1"}
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return buffer.getvalue()
