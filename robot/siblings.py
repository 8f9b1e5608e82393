"""Sibling labels on disk: candidate chunks of one state, and what came of trying each.

Axes: ``g`` decisions (groups of siblings), ``n`` candidates, ``t`` steps, ``d`` action dimensions,
``s`` state, ``e`` privileged entries, ``h w 3`` an image. A store is a folder: ``siblings.json``
and one folder of plain ``.npy`` arrays an episode, which is there whole or not at all.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from robot.errors import DatasetError
from robot.types import ActionChunk, Observation, Plan, Spec

FORMAT = 1
ABOUT, EPISODE = "siblings.json", "episode.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of trying each candidate of one state.

    Attributes:
        scores: What decides: success and the time to it first, then progress. Higher is better.
        success: Share of the tries that reached the goal within the look-ahead.
        steps: Mean control steps to success; the look-ahead where there was none.
        potential: Mean progress at the end of the tries, in [0, 1].
        before: Progress in the state itself, in [0, 1].
    """

    scores: Float[np.ndarray, " n"]
    success: Float[np.ndarray, " n"]
    steps: Float[np.ndarray, " n"]
    potential: Float[np.ndarray, " n"]
    before: float


class Oracle(Protocol):
    """An action value that also tells what its scores are made of."""

    def reset(self, seed: int) -> None:
        """Let all randomness from here on follow from ``seed``."""
        ...

    def try_out(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> Trial:
        """Return what comes of each candidate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Decisions with their candidates and labels: of one episode, or of a whole store.

    Attributes:
        images: Pixels at each decision, by camera.
        state: State at each decision.
        targets: Candidates, absolute, in the order of the policy.
        scores, success, steps, potential, before: As in ``Trial``.
        choice: Which candidate the episode went on with.
        environment: Privileged state of the simulation; no columns where there is none.
        step: Control step of each decision.
        seed: Episode of each decision.
        instruction: Index into ``instructions``.
        instructions: What was asked for.
    """

    images: Mapping[str, UInt8[np.ndarray, "g h w 3"]]
    state: Float[np.ndarray, "g s"]
    targets: Float[np.ndarray, "g n t d"]
    scores: Float[np.ndarray, "g n"]
    success: Float[np.ndarray, "g n"]
    steps: Float[np.ndarray, "g n"]
    potential: Float[np.ndarray, "g n"]
    before: Float[np.ndarray, " g"]
    choice: Int[np.ndarray, " g"]
    environment: Float[np.ndarray, "g e"]
    step: Int[np.ndarray, " g"]
    seed: Int[np.ndarray, " g"]
    instruction: Int[np.ndarray, " g"]
    instructions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, rows: Any) -> "Siblings":
        """Return some of the decisions, by slice, mask or indices."""
        return Siblings(
            images={name: pixels[rows] for name, pixels in self.images.items()},
            instructions=self.instructions,
            **{name: getattr(self, name)[rows] for name in ARRAYS},
        )


ARRAYS = tuple(f.name for f in fields(Siblings) if f.name not in ("images", "instructions"))


class SiblingWriter:
    """Appends episodes to a store; several processes may write different episodes at once.

    Args:
        root: Folder of the store, made if it is not there.
        spec: What the robot shows and takes.
        settings: How labels are made, ready for JSON; a store holds labels of one kind only.
        environment_names: Names of the privileged entries.

    Raises:
        DatasetError: If the store was made with another spec or other settings.
    """

    def __init__(
        self,
        root: Path,
        *,
        spec: Spec,
        settings: Mapping[str, Any],
        environment_names: Sequence[str] = (),
    ) -> None:
        self.root = Path(root)
        about = {
            "format": FORMAT,
            "spec": spec.to_dict(),
            "settings": dict(settings),
            "environment_names": list(environment_names),
        }
        about = json.loads(json.dumps(about, allow_nan=False))
        self.root.mkdir(parents=True, exist_ok=True)
        if not (self.root / ABOUT).exists():
            _write(self.root / ABOUT, about)
        found = _read(self.root / ABOUT)
        if found != about:
            differing = [name for name in about if found.get(name) != about[name]]
            raise DatasetError(
                f"{self.root} holds labels made in another way (differing: "
                f"{', '.join(differing)}); give another folder, or the settings of {ABOUT}"
            )

    def append(self, name: str, episode: Siblings, *, notes: Mapping[str, Any]) -> Path:
        """Write one episode; a reader sees all of it or nothing, whatever happens.

        Raises:
            DatasetError: If there is one of that name already.
        """
        target = self.root / name
        if target.exists():
            raise DatasetError(f"{self.root} has an episode {name} already; choose another seed")
        partial = self.root / f".partial-{name}-{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            for array in ARRAYS:
                _save(partial / f"{array}.npy", getattr(episode, array))
            for camera, pixels in episode.images.items():
                _save(partial / f"image.{camera}.npy", pixels)
            _write(
                partial / EPISODE,
                {"instructions": list(episode.instructions), "notes": dict(notes)},
            )
            _sync_folder(partial)
            partial.rename(target)
            _sync_folder(self.root)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return target

    def drop_partial(self) -> None:
        """Remove what interrupted writers left; only while nobody writes."""
        for left in self.root.glob(".partial-*"):
            shutil.rmtree(left, ignore_errors=True)


class SiblingReader:
    """Reads a store.

    Attributes:
        root: Its folder.
        spec: What the robot showed and took.
        settings: How the labels were made.
        environment_names: Names of the privileged entries.

    Raises:
        DatasetError: If there is no store.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        about = _read(self.root / ABOUT)
        if about.get("format") != FORMAT:
            raise DatasetError(f"{self.root} has format {about.get('format')}, needed {FORMAT}")
        self.spec = Spec.from_dict(about["spec"])
        self.settings: dict[str, Any] = about["settings"]
        self.environment_names = tuple(about["environment_names"])

    def names(self) -> list[str]:
        """Return the episodes, in order."""
        return sorted(p.parent.name for p in self.root.glob(f"[!.]*/{EPISODE}"))

    def notes(self, name: str) -> dict[str, Any]:
        """Return what was noted of one episode."""
        return _read(self.root / name / EPISODE)["notes"]

    def episode(self, name: str, *, cameras: Sequence[str] | None = None) -> Siblings:
        """Return one episode; with ``cameras``, only their images.

        Raises:
            DatasetError: If a file is missing or damaged.
        """
        folder = self.root / name
        wanted = list(self.spec.cameras) if cameras is None else cameras
        try:
            return Siblings(
                images={c: np.load(folder / f"image.{c}.npy") for c in wanted},
                instructions=tuple(_read(folder / EPISODE)["instructions"]),
                **{a: np.load(folder / f"{a}.npy") for a in ARRAYS},
            )
        except (OSError, ValueError) as error:
            raise DatasetError(f"{folder} cannot be read: {error}; remove it") from error

    def load(self, *, cameras: Sequence[str] | None = None) -> Siblings:
        """Return all decisions of the store.

        Raises:
            DatasetError: If there is none.
        """
        return joined([self.episode(name, cameras=cameras) for name in self.names()])


def joined(parts: Sequence[Siblings]) -> Siblings:
    """Return all decisions in one.

    Raises:
        DatasetError: If there is none.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        raise DatasetError("there is no sibling label; collect some with `ambidex label`")
    instructions = tuple(dict.fromkeys(text for part in parts for text in part.instructions))
    arrays = {a: np.concatenate([getattr(p, a) for p in parts]) for a in ARRAYS}
    arrays["instruction"] = np.concatenate(
        [np.asarray([instructions.index(t) for t in p.instructions])[p.instruction] for p in parts]
    )
    images = {c: np.concatenate([p.images[c] for p in parts]) for c in parts[0].images}
    return Siblings(images=images, instructions=instructions, **arrays)


def outcomes_of(siblings: Siblings) -> Bool[np.ndarray, "g n"]:
    """Return which candidates more often than not led to success within the look-ahead."""
    return siblings.success > 0.5


def _save(path: Path, array: Any) -> None:
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, plain: Mapping[str, Any]) -> None:
    partial = path.with_name(f".{path.name}-{os.getpid()}")
    with partial.open("w") as file:
        json.dump(plain, file, indent=1, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError as error:
        raise DatasetError(f"no sibling labels at {path.parent}: {path.name} is missing") from error
    except ValueError as error:
        raise DatasetError(f"{path} is damaged: {error}; collect again") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
