"""What an expert is, and what all of them share: joint targets, noise, annotation.

Axes: ``d`` action dimensions. An expert is closed loop on the privileged state: it can take over
from any state that a policy reached. One call of ``act`` is one control step at 20 Hz.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from jaxtyping import Float

from sim.arms import arms_of
from sim.experts.flaws import Bend, Flaw, Glimpse
from sim.experts.reach import Reach
from sim.tasks import Goal, Scene

Quality = Literal["clean", "hesitating", "retrying", "failing"]
QUALITIES: tuple[Quality, ...] = ("clean", "hesitating", "retrying", "failing")

HELD_STEPS = 5


class ExpertScene(Scene, Protocol):
    """An environment that an expert can act in."""

    @property
    def goal(self) -> Goal:
        """What is wanted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Control steps ``start`` to ``end`` (exclusive) that made no progress, and why."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where one hand shall go.

    Attributes:
        position: Of the grip site [m].
        rotation: ``world_R_hand``.
        opening: Of the fingers, 1 open, 0 closed.
        lead: How far ahead of the hand the target may lie [m]; it sets the speed.
    """

    position: Float[np.ndarray, "3"]
    rotation: Float[np.ndarray, "3 3"]
    opening: float
    lead: float = 0.06

    def moved(self, by: Float[np.ndarray, "3"]) -> "Wish":
        """Return the wish, shifted [m]."""
        return replace(self, position=self.position + by)


class Wander:
    """Ornstein-Uhlenbeck noise on joint targets.

    Args:
        size: Number of joints.
        scale: Standard deviation [rad].
        memory: Share of it that is left after one step.
    """

    def __init__(self, size: int, scale: float, *, memory: float = 0.85) -> None:
        self.scale = scale
        self._memory = memory
        self._now = np.zeros(size)

    def reset(self) -> None:
        """Start again at zero."""
        self._now = np.zeros_like(self._now)

    def step(self, random: np.random.Generator) -> Float[np.ndarray, " n"]:
        """Return the noise of the next step [rad]."""
        kick = self.scale * np.sqrt(1.0 - self._memory**2)
        self._now = self._memory * self._now + kick * random.standard_normal(len(self._now))
        return self._now


class Expert:
    """Base of the experts of all tasks: turns wishes for both hands into joint targets.

    Args:
        env: The environment to act in; its goal is the expert's.
        quality: How well it shall work.
        seed: From which all its randomness follows.
        noise: Standard deviation of the noise that ``perturb`` adds [rad].
    """

    def __init__(
        self, env: ExpertScene, *, quality: Quality = "clean", seed: int = 0, noise: float = 0.0
    ) -> None:
        self.env = env
        self.quality: Quality = quality
        arms = arms_of(env.suite)
        self._arms = [Reach(env.model, arm) for arm in arms]
        self._grippers = [arm.gripper is not None for arm in arms]
        self._wander = Wander(sum(arm.joints for arm in arms), noise)
        self._is_joint = np.concatenate(
            [[True] * arm.joints + [False] * (arm.gripper is not None) for arm in arms]
        )
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Forget the last episode; all randomness from here on follows from ``seed``."""
        self.random = np.random.default_rng([seed, QUALITIES.index(self.quality)])
        self._wander.reset()
        self._past: list[Segment] = []
        self.steps = 0
        self.subtask = 0
        self._held = 0
        self._offsets = [np.zeros(3), np.zeros(3)]
        self._flaws = self._draw()

    def act(self) -> Float[np.ndarray, " d"]:
        """Return the target for the present state: joints [rad] and openings, left then right."""
        wishes = self._wishes()
        self._held = self._held + 1 if self.env.goal.success(self.env) else 0
        self.steps += 1
        parts: list[Float[np.ndarray, " n"]] = []
        for arm, fingers, wish in zip(self._arms, self._grippers, wishes, strict=True):
            parts.append(arm.toward(self.env.data, wish.position, wish.rotation, lead=wish.lead))
            if fingers:
                parts.append(np.array([wish.opening]))
        return np.concatenate(parts)

    def perturb(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return the target with noise on its joints, to be executed in place of the label."""
        if self._wander.scale == 0.0:
            return target
        noisy = target.copy()
        noisy[self._is_joint] += self._wander.step(self.random)
        return noisy

    @property
    def done(self) -> bool:
        """Whether the goal has held long enough."""
        return self._held > HELD_STEPS

    @property
    def segments(self) -> list[Segment]:
        """All stretches without progress so far, one that is under way included."""
        under_way = [
            Segment(start=flaw.began, end=self.steps, kind=flaw.kind)
            for flaw in self._flaws
            if flaw.began is not None
        ]
        return self._past + under_way

    def _draw(self) -> list[Flaw]:
        """Return what is to go wrong in the episode that begins."""
        raise NotImplementedError

    def _bend(self, glimpse: Glimpse) -> Bend:
        """Return what goes wrong in this step, and note what has passed."""
        bend = Bend()
        for flaw in self._flaws:
            flaw.bend(bend, glimpse, self.steps)
            if flaw.over and flaw.began is not None:
                self._past.append(Segment(start=flaw.began, end=self.steps, kind=flaw.kind))
        self._flaws = [flaw for flaw in self._flaws if not flaw.over]
        self._offsets = bend.offsets
        return bend

    def _wishes(self) -> tuple[Wish, Wish]:
        """Return where both hands shall go from the present state; sets ``subtask``."""
        raise NotImplementedError
