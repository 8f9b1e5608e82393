import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from robot.nn.curves import draw_curves
from robot.nn.ema import MovingAverage
from robot.nn.precision import supported_precision
from robot.nn.resume import latest_state
from robot.nn.schedule import Budget, rate_scale
from robot.nn.trainer import Progress, Trainer


class Line(nn.Module):
    """``y = 2 x`` from noisy samples; noise is drawn in the forward pass, as by a flow."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        noise = 0.1 * torch.randn_like(x)
        loss = (self.weight(x) - 2 * x + noise).square().mean()
        return {"loss": loss}


class LineLearner:
    """The smallest learner."""

    def __init__(self) -> None:
        self.module = Line()
        self.killed_at: int | None = None
        self.batches = 0

    def batch(self, rng: np.random.Generator, size: int, *, held_out: bool) -> dict[str, Any]:
        if not held_out:
            self.batches += 1
            if self.killed_at is not None and self.batches > self.killed_at:
                raise KeyboardInterrupt
        return {"x": torch.from_numpy(rng.normal(size=(size, 1)).astype(np.float32))}

    def validate(self, batch: dict[str, Any]) -> Mapping[str, Tensor]:
        return self.module(**batch)

    def save(self, folder: Path, weights: Mapping[str, Tensor], notes: Mapping[str, Any]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(dict(weights), folder / "model.safetensors")
        return folder


def settings(**changes: Any) -> Trainer:
    chosen: dict[str, Any] = {"steps": 60, "batch": 8, "rate": 0.05, "warmup": 5, "log_every": 10}
    return Trainer(**{**chosen, **changes})


def test_loss_goes_down_and_a_checkpoint_and_log_are_left(tmp_path: Path) -> None:
    trained = settings().train(LineLearner(), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert trained.steps == 60
    assert lines[-2]["loss"] < 0.3 * lines[0]["loss"]
    assert trained.checkpoint.joinpath("model.safetensors").exists()
    assert "held_out/loss" in lines[-1]
    draw_curves(tmp_path / "metrics.jsonl", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_killed_run_resumes_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    whole = LineLearner()
    settings().train(whole, tmp_path / "whole")
    killed = LineLearner()
    killed.killed_at = 37
    with pytest.raises(KeyboardInterrupt):
        settings(checkpoint_every_s=0.0).train(killed, tmp_path / "parts")
    assert latest_state(tmp_path / "parts" / "states").name == "step-000000037"  # pyright: ignore
    again = LineLearner()
    settings().train(again, tmp_path / "parts", resume=True)
    assert again.batches == 60 - 37
    for mine, theirs in zip(again.module.parameters(), whole.module.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    steps = [
        json.loads(line)["step"]
        for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    ]
    assert steps == sorted(steps)


def test_a_half_written_state_is_never_resumed_from(tmp_path: Path) -> None:
    settings(steps=4).train(LineLearner(), tmp_path)
    (tmp_path / "states" / "step-000000099.partial").mkdir()
    found = latest_state(tmp_path / "states")
    assert found is not None
    assert found.name == "step-000000004"


def test_only_the_latest_states_are_kept(tmp_path: Path) -> None:
    settings(steps=6, checkpoint_every_s=0.0, keep=2).train(LineLearner(), tmp_path)
    names = sorted(f.name for f in (tmp_path / "states").iterdir())
    assert names == ["step-000000005", "step-000000006"]


def test_training_stops_when_the_seconds_are_spent(tmp_path: Path) -> None:
    reports: list[Progress] = []
    trained = settings(steps=None, max_seconds=0.3, log_every=1, report=reports.append).train(
        LineLearner(), tmp_path
    )
    assert trained.seconds < 20
    assert trained.steps == reports[-1].step
    assert [r.spent for r in reports] == sorted(r.spent for r in reports)


def test_a_budget_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="no end"):
        Budget()
    with pytest.raises(ValueError, match="no end"):
        Budget(steps=0)


def test_a_loss_that_is_not_finite_stops_training(tmp_path: Path) -> None:
    learner = LineLearner()
    with torch.no_grad():
        learner.module.weight.weight.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="step 0"):
        settings().train(learner, tmp_path)


def test_validation_leaves_weights_and_randomness_as_they_were(tmp_path: Path) -> None:
    often, never = LineLearner(), LineLearner()
    settings(validate_every_s=0.0).train(often, tmp_path / "often")
    settings(validate_every_s=1e9).train(never, tmp_path / "never")
    for mine, theirs in zip(often.module.parameters(), never.module.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_rate_rises_then_falls_to_its_end() -> None:
    scales = [rate_scale(s, s / 100, warmup=10, final=0.1) for s in range(101)]
    assert scales[0] == pytest.approx(0.1, abs=0.01)
    assert scales[:10] == sorted(scales[:10])
    assert scales[10:] == sorted(scales[10:], reverse=True)
    assert scales[-1] == pytest.approx(0.1)


def test_moving_average_follows_its_formula() -> None:
    line = nn.Linear(2, 1, bias=False)
    average = MovingAverage(line, decay=0.5)
    expected = line.weight.detach().clone()
    for step in range(5):
        with torch.no_grad():
            line.weight.add_(1.0)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * line.weight.detach()
    torch.testing.assert_close(average.average["weight"], expected)
    with pytest.raises(ValueError, match="decay"):
        MovingAverage(line, decay=1.0)


@pytest.mark.parametrize("computes_in_bf16", [True, False])
def test_half_precision_is_chosen_only_where_the_cpu_computes_in_it(
    monkeypatch: pytest.MonkeyPatch, computes_in_bf16: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: computes_in_bf16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert supported_precision("cpu") == ("bf16" if computes_in_bf16 else "no")
