import io
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor, nn

from robot.errors import DatasetError, SpecMismatch
from robot.jobs import train as job
from robot.nn.trainer import Trainer
from robot.types import Spec


def spec(rate: float = 20.0) -> Spec:
    return Spec(
        robot="Toy",
        control="joint_position",
        rate=rate,
        state_names=("a",),
        state_units=("rad",),
        action_names=("a",),
        action_units=("rad",),
        action_low=(-1.0,),
        action_high=(1.0,),
    )


class Mean(nn.Module):
    """Learns the mean of the actions."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(1))

    def forward(self, actions: Tensor) -> dict[str, Tensor]:
        return {"loss": (actions - self.mean).square().mean()}


class MeanLearner:
    """A learner of nothing in particular: the job must not care."""

    def __init__(self, sources: Any, spec: Spec) -> None:
        self.module = Mean()
        self.actions = torch.from_numpy(sources[0].states)

    def batch(self, rng: np.random.Generator, size: int, *, held_out: bool) -> dict[str, Any]:
        return {
            "actions": self.actions[torch.from_numpy(rng.integers(len(self.actions), size=size))]
        }

    def validate(self, batch: dict[str, Any]) -> Mapping[str, Tensor]:
        return self.module(**batch)

    def save(self, folder: Path, weights: Mapping[str, Tensor], notes: Mapping[str, Any]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(dict(weights), folder / "model.safetensors")
        return folder


def run(out: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> str:
    frames = SimpleNamespace(states=np.full((10, 1), 0.5, np.float32))
    monkeypatch.setattr(job, "open_frames", lambda *_, **__: ([frames], spec()))
    said = io.StringIO()
    job.train(
        datasets=["demos"],
        learner=MeanLearner,
        trainer=Trainer(steps=10, batch=4, rate=0.1, warmup=1),
        out=out,
        console=Console(file=said, width=200),
        **changes,
    )
    return said.getvalue()


def test_training_leaves_checkpoint_curves_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(tmp_path / "run", monkeypatch)
    assert (tmp_path / "run" / "checkpoint" / "model.safetensors").exists()
    assert (tmp_path / "run" / "curves.png").exists()
    assert str(tmp_path / "run" / "checkpoint") in said
    assert "10 steps" in said


def test_a_folder_with_another_run_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", monkeypatch)
    with pytest.raises(DatasetError, match="resume=true"):
        run(tmp_path / "run", monkeypatch)
    assert "10 steps" in run(tmp_path / "run", monkeypatch, resume=True)


def test_datasets_that_differ_are_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = {"a": spec(), "b": spec(rate=10.0)}
    reader = lambda root: SimpleNamespace(spec=specs[root.name])  # noqa: E731
    monkeypatch.setattr("robot.episodes.EpisodeReader", reader)
    with pytest.raises(SpecMismatch, match=r"rate: 20\.0 against 10\.0"):
        job.open_frames([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(DatasetError, match="no dataset"):
        job.open_frames([])
