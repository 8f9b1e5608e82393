"""Train whatever learns from recorded frames: a policy, or a value.

The job opens the datasets, checks that they speak of the same entries, builds the learner, and
shows how training goes. What is trained is the learner's business.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from robot.errors import DatasetError, SpecMismatch
from robot.nn.curves import draw_curves
from robot.nn.learner import Learner, Trained
from robot.nn.learner import Progress as Report
from robot.nn.trainer import Trainer
from robot.types import Spec

Build = Callable[..., Learner]
"""Called with the frames of each dataset and their spec."""


def train(
    *,
    datasets: Sequence[str | Path],
    learner: Build,
    trainer: Trainer,
    out: str | Path,
    resume: bool = False,
    cache: str | Path | None = None,
    console: Console | None = None,
) -> Trained:
    """Train on datasets, and leave checkpoint, log, curves and states in ``out``.

    Args:
        datasets: Folders of datasets; they must share one spec.
        learner: Builds what learns from ``(sources, spec)``.
        trainer: Budget and settings.
        out: Folder of the run.
        resume: Go on from the latest state in ``out``.
        cache: Where decoded frames are kept; beside each dataset if None.
        console: Where to show progress.

    Raises:
        DatasetError: If a dataset cannot be read, or ``out`` holds another run.
        SpecMismatch: If the datasets differ in their entries.
    """
    console = console or Console()
    out = Path(out)
    started = (out / "metrics.jsonl").exists() or any((out / "states").glob("step-*"))
    if started and not resume:
        raise DatasetError(
            f"{out} holds a training run already; go on with it (resume=true) or give another "
            "folder"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(
            f"cannot write to {out}: {error}; give a folder you can write"
        ) from error
    sources, spec = open_frames(datasets, cache=cache)
    built = learner(sources, spec)
    size = sum(p.numel() for p in built.module.parameters() if p.requires_grad)
    frames = sum(len(s.states) for s in sources)
    console.print(f"training {size / 1e6:.2f} M parameters on {frames} frames, into {out}")
    with _Bar(trainer, console) as bar:
        trained = replace(trainer, report=bar.show).train(built, out, resume=resume)
    draw_curves(out / "metrics.jsonl", out / "curves.png")
    console.print(
        f"{trained.steps} steps in {trained.seconds:.0f} s; held out: "
        + ", ".join(f"{name} {value:.4g}" for name, value in trained.validation.items())
    )
    console.print(f"checkpoint {trained.checkpoint}, curves {out / 'curves.png'}")
    return trained


def open_frames(
    datasets: Sequence[str | Path], *, cache: str | Path | None = None
) -> tuple[list[Any], Spec]:
    """Return the frames of each dataset and the spec they share.

    Raises:
        DatasetError: If none is given.
        SpecMismatch: If they differ.
    """
    from robot.episodes import EpisodeReader
    from robot.episodes.cache import frames

    if not datasets:
        raise DatasetError("no dataset was given; name one folder or more")
    roots = [Path(root) for root in datasets]
    specs = [EpisodeReader(root).spec for root in roots]
    for root, spec in zip(roots[1:], specs[1:], strict=True):
        if found := specs[0].differences(spec):
            raise SpecMismatch(f"dataset {roots[0]}", f"dataset {root}", found)
    # One by one: datasets of several tasks differ in their privileged entries.
    return [frames(root, cache) for root in roots], specs[0]


class _Bar:
    """Share of the budget, loss, speed and time to go, in one line."""

    def __init__(self, trainer: Trainer, console: Console) -> None:
        self._bar = Progress(
            TextColumn("step {task.fields[step]}"),
            BarColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("train", total=1.0, step=0, words="")
        self._last: tuple[int, float] | None = None
        self._held: Mapping[str, float] = {}

    def __enter__(self) -> "_Bar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, report: Report) -> None:
        """Take in a report of the trainer."""
        words = [f"{name} {value:.4f}" for name, value in report.losses.items() if name == "loss"]
        if self._last is not None and report.seconds > self._last[1]:
            rate = (report.step - self._last[0]) / (report.seconds - self._last[1])
            words.append(f"{rate:.2f} steps/s")
        self._last = (report.step, report.seconds)
        if report.validation is not None:
            self._held = report.validation
        words += [f"held out {n} {v:.4f}" for n, v in self._held.items() if n == "loss"]
        self._bar.update(
            self._task, completed=min(1.0, report.spent), step=report.step, words="  ".join(words)
        )
