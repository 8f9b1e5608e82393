"""Random moments of episodes, each with the actions that followed it.

Axes: ``n`` frames of a source, ``b`` moments, ``k`` steps, ``d`` actions, ``s`` state, ``e``
privileged quantities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from robot.errors import DatasetError


class FrameSource(Protocol):
    """All frames of one dataset, as arrays (memory-mapped ones, as a rule)."""

    @property
    def images(self) -> Mapping[str, UInt8[np.ndarray, "n h w 3"]]:
        """Pixels of each camera."""
        ...

    @property
    def states(self) -> Float[np.ndarray, "n s"]:
        """State of each frame."""
        ...

    @property
    def actions(self) -> Float[np.ndarray, "n d"]:
        """Target sent at each frame."""
        ...

    @property
    def environment(self) -> Float[np.ndarray, "n e"] | None:
        """Privileged quantities, where the dataset has them."""
        ...

    @property
    def episode(self) -> Int[np.ndarray, " n"]:
        """Index of each frame's episode; the frames of an episode follow each other."""
        ...

    @property
    def instruction_index(self) -> Int[np.ndarray, " n"]:
        """Index of each frame's instruction."""
        ...

    @property
    def instructions(self) -> Sequence[str]:
        """The instructions of this dataset."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Moments of episodes and what followed.

    Attributes:
        images: Pixels of each camera.
        state: State at the moment.
        actions: Targets from the moment on; past the episode's end the last one is held.
        valid: Which of them the episode really had.
        instruction: Index into the sampler's instructions.
        environment: Privileged quantities; NaN where a dataset has none.
    """

    images: dict[str, UInt8[np.ndarray, "b h w 3"]]
    state: Float[np.ndarray, "b s"]
    actions: Float[np.ndarray, "b k d"]
    valid: Bool[np.ndarray, "b k"]
    instruction: Int[np.ndarray, " b"]
    environment: Float[np.ndarray, "b e"]


class ChunkSampler:
    """Draws moments from several datasets, training and held-out episodes kept apart.

    Args:
        sources: The datasets.
        steps: Length of the chunks.
        cameras: The cameras to read.
        held_out: Share of episodes that training never sees.
        seed: Decides which those are.
        keep: For each source which frames may be drawn as moments; all if None.

    Raises:
        DatasetError: If a camera is missing, the datasets differ in size, or nothing is left.
    """

    def __init__(
        self,
        sources: Sequence[FrameSource],
        *,
        steps: int,
        cameras: Sequence[str],
        held_out: float = 0.1,
        seed: int = 0,
        keep: Sequence[Bool[np.ndarray, " n"] | None] | None = None,
    ) -> None:
        if not sources:
            raise DatasetError("no dataset was given; name one folder or more")
        self.sources, self.steps, self.cameras = tuple(sources), steps, tuple(cameras)
        for source in sources:
            missing = [name for name in cameras if name not in source.images]
            if missing:
                raise DatasetError(
                    f"a dataset lacks camera {missing[0]}; it has {sorted(source.images)}"
                )
        shapes = {(s.states.shape[1], s.actions.shape[1]) for s in sources}
        if len(shapes) > 1:
            raise DatasetError(f"datasets differ in (state, action) sizes: {sorted(shapes)}")
        words = [text for source in sources for text in source.instructions]
        self.instructions: tuple[str, ...] = tuple(dict.fromkeys(words))
        self.environment = max(
            0 if s.environment is None else s.environment.shape[1] for s in sources
        )
        rng = np.random.default_rng(seed)
        self._ends: list[np.ndarray] = []
        training: list[np.ndarray] = []
        validation: list[np.ndarray] = []
        for i, source in enumerate(sources):
            episode = np.asarray(source.episode)
            ends = _episode_ends(episode)
            self._ends.append(ends)
            names = np.unique(episode)
            hidden = rng.permutation(names)[: round(held_out * len(names))]
            allowed = np.ones(len(episode), dtype=bool)
            if keep is not None and (mask := keep[i]) is not None:
                allowed = np.asarray(mask, dtype=bool)
            is_hidden = np.isin(episode, hidden)
            for rows, chosen in ((training, ~is_hidden), (validation, is_hidden)):
                index = np.flatnonzero(allowed & chosen)
                rows.append(np.stack([np.full(len(index), i), index], axis=1))
        self.training = np.concatenate(training)
        self.validation = np.concatenate(validation)
        if not len(self.training):
            raise DatasetError("no frame is left to train on; keep more episodes or collect some")

    def draw(self, rng: np.random.Generator, size: int, *, held_out: bool = False) -> Moments:
        """Return ``size`` moments drawn with replacement; from training if nothing is held out."""
        pool = self.validation if held_out and len(self.validation) else self.training
        return self.at(pool[rng.integers(len(pool), size=size)])

    def without_images(self, rows: Int[np.ndarray, "b 2"]) -> Moments:
        """Return the moments at ``(source, frame)`` rows, but read no image."""
        return self.at(rows, cameras=())

    def at(self, rows: Int[np.ndarray, "b 2"], *, cameras: Sequence[str] | None = None) -> Moments:
        """Return the moments at ``(source, frame)`` rows, with images of ``cameras`` (or all)."""
        wanted = self.cameras if cameras is None else tuple(cameras)
        parts = [self._of(i, rows[rows[:, 0] == i, 1], wanted) for i in range(len(self.sources))]
        order = np.argsort(np.argsort(rows[:, 0], kind="stable"), kind="stable")

        def joined(pieces: Sequence[Any]) -> Any:
            return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)[order]

        return Moments(
            images={c: joined([p.images[c] for p in parts]) for c in wanted},
            state=joined([p.state for p in parts]),
            actions=joined([p.actions for p in parts]),
            valid=joined([p.valid for p in parts]),
            instruction=joined([p.instruction for p in parts]),
            environment=joined([p.environment for p in parts]),
        )

    def _of(self, which: int, index: Int[np.ndarray, " b"], cameras: tuple[str, ...]) -> Moments:
        source, ends = self.sources[which], self._ends[which]
        ahead = index[:, None] + np.arange(self.steps)
        last = ends[index][:, None] - 1
        environment = np.full((len(index), self.environment), np.nan, dtype=np.float32)
        if source.environment is not None:
            environment[:, : source.environment.shape[1]] = source.environment[index]
        numbers = np.asarray([self.instructions.index(t) for t in source.instructions])
        return Moments(
            images={name: np.asarray(source.images[name][index]) for name in cameras},
            state=np.asarray(source.states[index], dtype=np.float32),
            actions=np.asarray(source.actions[np.minimum(ahead, last)], dtype=np.float32),
            valid=ahead <= last,
            instruction=numbers[np.asarray(source.instruction_index[index])],
            environment=environment,
        )


def _episode_ends(episode: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return for each frame the index just past its episode's last frame."""
    starts = np.flatnonzero(np.r_[True, episode[1:] != episode[:-1]])
    if len(np.unique(episode[starts])) != len(starts):
        raise DatasetError("the frames of an episode do not follow each other; rebuild the cache")
    stops = np.r_[starts[1:], len(episode)]
    return np.repeat(stops, stops - starts)
