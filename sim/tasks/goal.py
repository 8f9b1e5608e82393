"""What a goal is, and what it may read: the physics of a scene, nothing else.

Axes: ``e`` entries of the privileged environment state.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float


@runtime_checkable
class Scene(Protocol):
    """The part of a simulated environment that goals and experts read.

    ``suite`` is robosuite's environment, kept for its references to the objects.
    """

    @property
    def model(self) -> Any:
        """The ``mujoco.MjModel``."""
        ...

    @property
    def data(self) -> Any:
        """The ``mujoco.MjData``."""
        ...

    @property
    def suite(self) -> Any:
        """The robosuite environment."""
        ...


@runtime_checkable
class Goal(Protocol):
    """What is wanted in a scene: words for it, and how far the physics is from it.

    A goal holds no state of an episode: every answer follows from the present physics, so that
    it is the same in a copied or restored state.
    """

    @property
    def task(self) -> str:
        """Name of the scene: ``lift``, ``peg``, ``handover`` or ``transport``."""
        ...

    @property
    def name(self) -> str:
        """Name of the goal, the key under which results are kept."""
        ...

    @property
    def instruction(self) -> str:
        """The goal in plain English."""
        ...

    @property
    def instructions(self) -> tuple[str, ...]:
        """``instruction`` and other ways to say it."""
        ...

    @property
    def subtasks(self) -> tuple[str, ...]:
        """Names of the steps on the way, in words and in order."""
        ...

    @property
    def time_limit(self) -> int:
        """Control steps at 20 Hz after which an episode ends."""
        ...

    @property
    def environment_names(self) -> tuple[str, ...]:
        """One name for each entry of ``environment_state``."""
        ...

    def success(self, env: Scene) -> bool:
        """Return whether the goal holds right now."""
        ...

    def potential(self, env: Scene) -> float:
        """Return the progress in [0, 1]; it rises along a good execution, 1 at the goal."""
        ...

    def environment_state(self, env: Scene) -> Float[np.ndarray, " e"]:
        """Return the poses of the objects, as float32 [m] and direction cosines."""
        ...
