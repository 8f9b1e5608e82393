"""A two-arm task as a Gymnasium environment.

Axes: ``s`` state, ``d`` action, ``h w 3`` an image. Angles [rad]; openings in [0, 1].
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from robot.errors import BadAction, UnknownName
from robot.types import Outcome
from sim.cameras import OVERVIEW, Cameras, Quality
from sim.robosuite import TwoArmEnv

CAMERAS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"agentview": (64, 64), "robot0_eye_in_hand": (64, 64), "robot1_eye_in_hand": (64, 64)}
)
RATE = 20.0  # [Hz]
BOUND = {"rad": 4.0 * np.pi}
"""States are not clipped; no joint turns further than this, and openings stay well inside 2."""


class TwoArmGym(gymnasium.Env[dict[str, Any], Float[np.ndarray, " d"]]):
    """One of robosuite's two-arm tasks, for code that speaks Gymnasium.

    An observation is ``{"state": float32[s], "images": {camera: uint8[h, w, 3]}}``. An action says
    where between their limits the absolute targets of the control (joint angles and gripper
    openings by default) shall lie: -1 is the lower limit, 1 the upper; ``target`` and ``action``
    translate. The episode is terminated once the goal has held for five steps, and truncated when
    its time is up.
    ``info["is_success"]`` says whether the goal holds at this moment.

    ``reset(seed=n)`` sets the start that ``n`` names, the same as everywhere in ambidex; a reset
    without a seed draws the next start from the generator that the last seed began.

    Args:
        task: ``lift``, ``peg``, ``handover`` or ``transport``.
        goal: Which of the task's goals is asked for; its first if None.
        control: ``joint_position`` or ``osc_pose``.
        cameras: ``{name: (height, width)}`` [pixel]; without any, an observation has no ``images``.
        quality: ``fast`` or ``exact`` images, also those of ``render``.
        reward: ``sparse`` (1 while the goal holds, else 0) or ``dense`` (how near it is, 0 to 1).
        time_limit_s: After how many seconds an episode is truncated; the goal's own if None.
        render_mode: ``rgb_array`` or None.
        render_camera: Whose picture ``render`` returns.
        render_size: Its height and width [pixel].

    Raises:
        UnknownName: If no task, goal, control, camera, quality, reward or mode is called so.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": int(RATE)}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        task: str,
        *,
        goal: str | None = None,
        control: str = "joint_position",
        cameras: Mapping[str, tuple[int, int]] = CAMERAS,
        quality: Quality = "fast",
        reward: Literal["sparse", "dense"] = "sparse",
        time_limit_s: float | None = None,
        render_mode: str | None = None,
        render_camera: str = OVERVIEW,
        render_size: tuple[int, int] = (256, 256),
    ) -> None:
        if reward not in ("sparse", "dense"):
            raise UnknownName("reward", reward, ["sparse", "dense"])
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownName("render mode", render_mode, list(self.metadata["render_modes"]))
        self.render_mode = render_mode
        self.env = TwoArmEnv(
            task,
            goal,
            control=control,
            cameras=cameras,
            quality=quality,
            rate=RATE,
            time_limit_s=time_limit_s,
        )
        self._reward = reward
        self._pictures = Cameras(self.env.model, {render_camera: render_size}, quality)
        self._render_camera = render_camera
        spec = self.env.spec
        bound = np.array([BOUND.get(unit, 2.0) for unit in spec.state_units], dtype=np.float32)
        images: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(0, 255, (camera.height, camera.width, 3), np.uint8)
            for name, camera in spec.cameras.items()
        }
        seen: dict[str, spaces.Space[Any]] = {"state": spaces.Box(-bound, bound, dtype=np.float32)}
        if images:  # Gymnasium allows no empty dictionary
            seen["images"] = spaces.Dict(images)
        self.observation_space = spaces.Dict(seen)
        self._low = np.array(spec.action_low)
        self._span = np.array(spec.action_high) - self._low
        self.action_space = spaces.Box(-1.0, 1.0, self._low.shape, np.float32)

    def target(self, action: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return the absolute target [rad, opening] that an action in [-1, 1] means."""
        return self._low + (np.asarray(action, dtype=np.float64) + 1.0) / 2.0 * self._span

    def action(self, target: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return the action that means an absolute target."""
        return (2.0 * (np.asarray(target) - self._low) / self._span - 1.0).astype(np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Set the start that ``seed`` names, or the generator's next one; no option is known.

        Raises:
            UnknownName: If options hold anything.
        """
        for name in options or {}:
            raise UnknownName("reset option", name, ["(none)"])
        super().reset(seed=seed)
        start = int(self.np_random.integers(2**32)) if seed is None else seed
        self.env.reset(start)
        return self._observation(), self._info()

    def step(
        self, action: Float[np.ndarray, " d"]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Follow the targets that ``action`` means for one period of 0.05 s.

        Raises:
            BadAction: If the action has a wrong shape or is not finite; nothing moves.
        """
        if np.shape(action) != self._low.shape:
            raise BadAction(
                f"an action of shape {np.shape(action)} was given; {self._low.shape} is needed, "
                "one entry each for " + ", ".join(self.env.spec.action_names)
            )
        self.env.robot.command(self.target(action))
        outcome = self.env.judge(self.env.robot.observe())
        info = self._info()
        reward = float(info["is_success"]) if self._reward == "sparse" else self.env.potential()
        ended = outcome in (Outcome.SUCCESS, Outcome.FAILURE)
        return self._observation(), reward, ended, outcome is Outcome.TIMEOUT, info

    def render(self) -> UInt8[np.ndarray, "h w 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # a picture is a render frame
        """Return what the render camera sees, or None without a render mode."""
        if self.render_mode is None:
            return None
        return self._pictures.render(self.env.data, self._render_camera)

    def close(self) -> None:
        """Release the renderers; safe to call twice."""
        self._pictures.close()
        self.env.close()

    def _observation(self) -> dict[str, Any]:
        seen = self.env.robot.observe()
        state = {"state": seen.state.astype(np.float32)}
        return {**state, "images": dict(seen.images)} if len(seen.images) else state

    def _info(self) -> dict[str, Any]:
        return {"is_success": self.env.success(), "instruction": self.env.task.instruction}
