"""Images of one moment that are drawn only if somebody looks.

Axes: ``h w 3`` an upright image.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from threading import Lock

import numpy as np
from jaxtyping import UInt8

from robot.errors import StaleFrame


class LazyImages(Mapping[str, UInt8[np.ndarray, "h w 3"]]):
    """A mapping from camera to image that draws on first access and keeps what it drew.

    Args:
        names: Cameras, in order.
        draw: Returns the image of one camera as the physics stands now.
        moment: Returns a number that changes whenever the physics changes (step, reset, restore).
    """

    def __init__(
        self,
        names: tuple[str, ...],
        draw: Callable[[str], UInt8[np.ndarray, "h w 3"]],
        moment: Callable[[], Hashable],
    ) -> None:
        self._names = names
        self._draw = draw
        self._moment = moment
        self._taken = moment()
        self._frames: dict[str, UInt8[np.ndarray, "h w 3"]] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> UInt8[np.ndarray, "h w 3"]:
        """Return the image of camera ``name`` at the moment of the observation.

        Raises:
            KeyError: If the observation has no such camera.
            StaleFrame: If it was not drawn in time: the physics has moved on.
        """
        with self._lock:
            if name in self._frames:
                return self._frames[name]
            if name not in self._names:
                raise KeyError(f"no image of {name!r}; there are {', '.join(self._names)}")
            now = self._moment()
            if now != self._taken:
                raise StaleFrame(
                    f"camera {name} was asked for at moment {now}, but the observation is of "
                    f"moment {self._taken} and that image was never drawn; look at it (or call "
                    "draw_all()) before the next command, reset or restore"
                )
            frame = self._frames[name] = self._draw(name)
            return frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def draw_all(self) -> dict[str, UInt8[np.ndarray, "h w 3"]]:
        """Return every image, drawn now: they outlive the moment."""
        return {name: self[name] for name in self._names}
