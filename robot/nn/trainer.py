"""One training loop for everything that learns.

What is trained is a ``Learner``: it draws batches, its module turns a batch into a loss, and it
knows how to write a checkpoint of itself. The loop adds what is common: optimiser, schedule,
averaging, validation, logs, states to resume from. Every step's randomness follows from seed and
step, so that a run that was killed and resumed draws what the whole run would have drawn.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

from robot.clock import Stopwatch
from robot.nn.ema import MovingAverage
from robot.nn.learner import Batch, Learner, Progress, Trained
from robot.nn.precision import supported_precision
from robot.nn.resume import latest_state, load_state, save_state
from robot.nn.schedule import Budget, rate_scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """AdamW with warm-up, cosine decay, clipping and averaged weights, on one or more devices.

    Attributes:
        steps, max_seconds: The budget; whichever ends first [steps, s].
        batch: Moments in a step.
        rate: Peak learning rate.
        decay: Weight decay of matrices; vectors have none.
        warmup: Steps until the peak.
        final: Learning rate at the end, as a share of the peak.
        clip: Largest norm of the gradient.
        average: Decay of the averaged weights.
        precision: ``no`` (float32), ``bf16`` or ``fp16`` for the forward pass; ``auto`` is bf16
            where the device computes in it, since emulating it is many times slower than float32.
        device: ``cpu``, or ``auto`` for an accelerator where there is one.
        threads: Threads torch may use on the CPU.
        seed: All randomness of batches and noise.
        log_every: Steps between log lines.
        validate_every_s, checkpoint_every_s: Wall time between them [s].
        validation_batches: Held-out batches of one validation.
        keep: States to resume from that are kept.
    """

    steps: int | None = 20_000
    max_seconds: float | None = None
    batch: int = 64
    rate: float = 1e-3
    decay: float = 1e-2
    warmup: int = 200
    final: float = 0.02
    clip: float = 1.0
    average: float = 0.998
    precision: Literal["auto", "no", "bf16", "fp16"] = "no"
    device: Literal["cpu", "auto"] = "cpu"
    threads: int = 1
    seed: int = 0
    log_every: int = 20
    validate_every_s: float = 60.0
    checkpoint_every_s: float = 120.0
    validation_batches: int = 4
    keep: int = 2
    report: Callable[[Progress], None] | None = field(default=None, compare=False)

    def train(self, learner: Learner, out: str | Path, *, resume: bool = False) -> Trained:
        """Train until the budget is spent, and leave ``checkpoint``, logs and states in ``out``.

        Args:
            learner: What to train.
            out: Folder of the run.
            resume: Go on from the latest state in ``out``, if there is one.

        Raises:
            ValueError: If the budget has no end.
            FloatingPointError: If the loss is not finite.
        """
        torch.set_num_threads(self.threads)
        run = _Run(self, learner, Path(out))
        if resume:
            run.restore()
        while run.budget.spent(run.step, run.seconds) < 1.0:
            run.advance()
        return run.finish()


class _Run:
    """One run of a trainer: everything that changes while it goes on."""

    def __init__(self, settings: Trainer, learner: Learner, out: Path) -> None:
        self.settings, self.learner, self.out = settings, learner, out
        self.budget = Budget(steps=settings.steps, seconds=settings.max_seconds)
        self.states = out / "states"
        self.states.mkdir(parents=True, exist_ok=True)
        self.accelerator = Accelerator(
            cpu=settings.device == "cpu",
            mixed_precision=supported_precision(settings.device)
            if settings.precision == "auto"
            else settings.precision,
        )
        learner.module.to(self.accelerator.device)
        self.module = learner.module
        optimizer = torch.optim.AdamW(
            _groups(self.module, settings.decay), lr=settings.rate, betas=(0.9, 0.95), fused=True
        )
        prepared: Any = self.accelerator.prepare(self.module, optimizer)
        self.wrapped, self.optimizer = prepared
        self.average = MovingAverage(self.module, decay=settings.average)
        self.step = 0
        self.losses: dict[str, list[float]] = {}
        self.validation: dict[str, float] = {}
        self._before = self._validated = self._saved = 0.0
        self._watch = Stopwatch()

    @property
    def seconds(self) -> float:
        """Wall time of this run and of those it resumed [s]."""
        return self._before + self._watch.elapsed

    def restore(self) -> None:
        """Go on from the latest state, if there is one."""
        folder = latest_state(self.states)
        if folder is None:
            return
        numbers = load_state(
            folder, module=self.module, optimizer=self.optimizer.optimizer, average=self.average
        )
        self.step, self._before = int(numbers["step"]), float(numbers["seconds"])
        self._validated = self._saved = self.seconds
        self._keep_log_until(self.step)

    def advance(self) -> None:
        """Take one training step, and log, validate and save when it is time."""
        s = self.settings
        scale = rate_scale(
            self.step,
            self.budget.spent(self.step, self.seconds),
            warmup=s.warmup,
            final=s.final,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = s.rate * scale
        # Each process of a distributed run draws its own batches and noise.
        seed = (s.seed, self.step, self.accelerator.process_index)
        batch = self.learner.batch(np.random.default_rng(seed), s.batch, held_out=False)
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        self.wrapped.train()
        parts = self.wrapped(**_move(batch, self.accelerator.device))
        loss = parts["loss"]
        value = float(loss.detach())
        if not np.isfinite(value):
            raise FloatingPointError(
                f"the loss is {value} at step {self.step}; lower the rate, or check the dataset"
            )
        self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(self.module.parameters(), s.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        for name, part in [*parts.items(), ("gradient", norm)]:
            self.losses.setdefault(name, []).append(float(torch.as_tensor(part).detach()))
        self._after_step(scale)

    def _after_step(self, scale: float) -> None:
        s = self.settings
        due = self.seconds - self._validated >= s.validate_every_s
        if due:
            self.validation = self.validate()
            self._validated = self.seconds
        if self.step % s.log_every == 0 or due:
            self._log(scale, self.validation if due else None)
        if self.seconds - self._saved >= s.checkpoint_every_s:
            self.save()
            self._saved = self.seconds

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return means over the held-out batches, under the averaged weights."""
        state = torch.get_rng_state()
        found: dict[str, list[float]] = {}
        weights = {name: p.data for name, p in self.module.named_parameters()}
        for name, p in self.module.named_parameters():
            p.data = self.average.average[name]
        self.module.eval()
        try:
            for i in range(self.settings.validation_batches):
                rng = np.random.default_rng((self.settings.seed, 1 << 31, i))
                batch = self.learner.batch(rng, self.settings.batch, held_out=True)
                torch.manual_seed(i)
                batch = _move(batch, self.accelerator.device)
                for name, value in self.learner.validate(batch).items():
                    found.setdefault(name, []).append(float(value))
        finally:
            for name, p in self.module.named_parameters():
                p.data = weights[name]
            torch.set_rng_state(state)
        return {name: float(np.mean(values)) for name, values in found.items()}

    def save(self) -> Path | None:
        """Write a state to resume from, and the averaged weights as a checkpoint."""
        if not self.accelerator.is_main_process:
            return None
        save_state(
            self.states,
            step=self.step,
            module=self.module,
            optimizer=self.optimizer.optimizer,
            average=self.average,
            numbers={"seconds": self.seconds},
            keep=self.settings.keep,
        )
        weights = {**self.module.state_dict(), **self.average.average}
        notes = {"steps": self.step, "seconds": round(self.seconds, 1), **self.validation}
        return self.learner.save(self.out / "checkpoint", weights, notes)

    def finish(self) -> Trained:
        """Validate and save once more."""
        self.validation = self.validate()
        self._log(self.settings.final, self.validation)
        self.save()
        return Trained(
            checkpoint=self.out / "checkpoint",
            steps=self.step,
            seconds=self.seconds,
            validation=self.validation,
        )

    def _log(self, scale: float, validation: Mapping[str, float] | None) -> None:
        means = {name: float(np.mean(values)) for name, values in self.losses.items() if values}
        self.losses = {}
        line: dict[str, Any] = {"step": self.step, "seconds": round(self.seconds, 2), **means}
        line["rate"] = self.settings.rate * scale
        line |= {f"held_out/{name}": value for name, value in (validation or {}).items()}
        if self.accelerator.is_main_process:
            with (self.out / "metrics.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
        if self.settings.report is not None:
            self.settings.report(
                Progress(
                    step=self.step,
                    spent=self.budget.spent(self.step, self.seconds),
                    seconds=self.seconds,
                    losses=means,
                    validation=validation,
                )
            )

    def _keep_log_until(self, step: int) -> None:
        """Drop log lines of steps that are about to be taken again."""
        path = self.out / "metrics.jsonl"
        if path.exists():
            whole = [line for line in path.read_text().splitlines() if line.endswith("}")]
            kept = [line for line in whole if json.loads(line)["step"] <= step]
            path.write_text("".join(line + "\n" for line in kept))


def _groups(module: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return parameters in two groups: matrices with weight decay, vectors without."""
    trained = [p for p in module.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]


def _move(batch: Batch, device: torch.device) -> Batch:
    """Return the batch with every tensor on ``device``."""
    moved: Batch = {}
    for name, value in batch.items():
        moved[name] = _move(value, device) if isinstance(value, dict) else value.to(device)
    return moved
