"""Targets as seen from the state: joints as a difference to where they are now.

Axes: ``*b`` batch of states (targets may have more in front: candidates), ``k`` steps, ``d`` action
dimensions, ``s`` state dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Bool, Float, Int

from robot.types import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFrame:
    """Which targets are told relative to the state, and to which entry of it.

    Attributes:
        relative: Whether a target is told as a difference.
        entry: State entry it is a difference to; 0 where absolute.
    """

    relative: Bool[np.ndarray, " d"]
    entry: Int[np.ndarray, " d"]

    @classmethod
    def of(cls, spec: Spec, *, units: Sequence[str] = ("rad",)) -> Self:
        """Return the frame that tells targets of these units relative to the state, if it can.

        A gripper's opening is not an angle, so it stays absolute; so does every entry of a control
        whose targets the state does not tell.
        """
        entries = {name: i for i, name in enumerate(spec.state_names)}
        relative = [
            name in entries and unit in units
            for name, unit in zip(spec.action_names, spec.action_units, strict=True)
        ]
        entry = [
            entries[name] if told else 0
            for name, told in zip(spec.action_names, relative, strict=True)
        ]
        return cls(relative=np.asarray(relative), entry=np.asarray(entry, dtype=np.int64))

    def base(self, state: Float[np.ndarray, "*b s"]) -> Float[np.ndarray, "*b d"]:
        """Return what is added to told targets to make them absolute."""
        return state[..., self.entry] * self.relative

    def tell(
        self, targets: Float[np.ndarray, "*more k d"], state: Float[np.ndarray, "*b s"]
    ) -> Float[np.ndarray, "*more k d"]:
        """Return absolute targets as seen from ``state``."""
        return targets - self.base(state)[..., None, :]

    def resolve(
        self, told: Float[np.ndarray, "*more k d"], state: Float[np.ndarray, "*b s"]
    ) -> Float[np.ndarray, "*more k d"]:
        """Return told targets as absolute ones."""
        return told + self.base(state)[..., None, :]
