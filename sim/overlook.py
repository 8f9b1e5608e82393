"""Pictures of a whole scene for people: reports and films. Axes: ``h w 3`` a picture."""

from collections.abc import Callable
from typing import Any, Protocol

import mujoco
import numpy as np
from jaxtyping import UInt8

from sim.cameras import Cameras, Quality


class Scene(Protocol):
    """What is looked at."""

    @property
    def model(self) -> mujoco.MjModel:
        """The model."""
        ...

    @property
    def data(self) -> mujoco.MjData:
        """Its state now."""
        ...


class Overlook:
    """Looks at environments from a camera that no policy sees.

    Args:
        camera: A camera of the model, or ``overview``.
        height, width: Of a picture [px].
        quality: ``fast`` or ``exact``.
    """

    def __init__(
        self,
        *,
        camera: str = "overview",
        height: int = 256,
        width: int = 256,
        quality: Quality = "fast",
    ) -> None:
        self._camera, self._size = camera, (height, width)
        self._quality: Quality = quality
        # Decimating a model takes a second: once a model, not once an episode.
        self._cameras: list[Cameras] = []

    def __call__(self, env: Scene | Any) -> Callable[[], UInt8[np.ndarray, "h w 3"]]:
        """Return what takes a picture of ``env`` as it is then."""

        def picture() -> UInt8[np.ndarray, "h w 3"]:
            return self._of(env.model).render(env.data, self._camera)

        return picture

    def _of(self, model: mujoco.MjModel) -> Cameras:
        for cameras in self._cameras:
            if cameras.model is model:
                return cameras
        made = Cameras(model, {self._camera: self._size}, self._quality)
        self._cameras.append(made)
        return made
