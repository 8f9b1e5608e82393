"""What candidates and horizons cost per proposal, on one CPU thread.

Run: ``python benchmarks/bench_inference.py`` (numbers: docs/results/inference.md). Every pair is
timed in turns within one run, in process CPU time, so that a busy machine disturbs both alike;
ratios are medians over pairs. Weights are random (time does not depend on them), but for the rows
of steering, which run the weights that ship.
"""

import argparse
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from policies.flow import FlowMatching
from policies.horizons import Horizons, Packing
from policies.load import load_policy
from policies.neural import NeuralPolicy
from policies.steer import BestOf
from policies.vla import VLA
from robot.nn.statistics import Statistics
from robot.types import CameraSpec, Observation, Plan, Spec, Task
from values.load import load_value

CAMERAS = {"agentview": (64, 64), "robot0_eye_in_hand": (64, 64), "robot1_eye_in_hand": (64, 64)}
MIXED = (4, 8, 12, 16)
SHIPPED = Path(__file__).parent.parent / "weights/demo"
PLAN = Plan(task=Task(name="lift", instruction="lift the pot with both arms"))


def make_spec() -> Spec:
    """Two arms of seven joints and a gripper."""
    names = tuple(
        f"{side}_{part}"
        for side in ("left", "right")
        for part in (*(f"joint{i}" for i in range(1, 8)), "gripper")
    )
    units = tuple("opening" if "gripper" in name else "rad" for name in names)
    return Spec(
        robot="Panda+Panda",
        control="joint_position",
        rate=20.0,
        state_names=names,
        state_units=units,
        action_names=names,
        action_units=units,
        action_low=(-3.0,) * 16,
        action_high=(3.0,) * 16,
        cameras={n: CameraSpec(height=h, width=w) for n, (h, w) in CAMERAS.items()},
    )


def make_policy(
    lengths: Sequence[int], *, packing: Packing = "auto", steps: int, per_token: int = 4
) -> NeuralPolicy:
    """A policy of the shipped size with random weights."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    spec = make_spec()
    statistics = {
        "state": Statistics.of(rng.normal(size=(50, 16)), names=spec.state_names, what="state"),
        "actions": Statistics.of(
            rng.normal(size=(50, 16, 16)), names=spec.action_names, what="actions"
        ),
    }
    model = VLA(
        cameras=CAMERAS,
        statistics=statistics,
        instructions=1,
        horizons=Horizons(lengths=tuple(lengths), packing=packing),
        objective=FlowMatching(steps=steps),
        expert={"per_token": per_token},
    )
    return NeuralPolicy(model, spec=spec, instructions=[PLAN.task.instruction], commit=8)


def make_observation(batch: int | None = None) -> Observation:
    """One moment, or a batch of equal ones."""
    rng = np.random.default_rng(1)
    one = Observation(
        time=0.0,
        state=rng.normal(size=16),
        images={n: rng.integers(0, 255, (*s, 3), dtype=np.uint8) for n, s in CAMERAS.items()},
    )
    return one if batch is None else Observation.stack([one] * batch)


def cost(call: Callable[[], Any]) -> float:
    """Return process CPU time of one call [s]."""
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(calls: dict[str, Callable[[], Any]], *, rounds: int) -> dict[str, list[float]]:
    """Return times of each call, taken in turns after a warm-up."""
    for call in calls.values():
        call()
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(cost(call))
    return times


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--per-token", type=int, default=4)
    given = parser.parse_args()
    sizes = {"steps": given.steps, "per_token": given.per_token}
    torch.set_num_threads(1)
    single = make_policy((16,), **sizes)
    packed = make_policy(MIXED, packing="packed", **sizes)
    padded = make_policy(MIXED, packing="padded", **sizes)
    seen, repeated = make_observation(), make_observation(16)
    calls: dict[str, Callable[[], Any]] = {
        "single horizon, 1 candidate": lambda: single.propose(seen, PLAN, 1),
        "single horizon, 16 candidates": lambda: single.propose(seen, PLAN, 16),
        "single horizon, 16 naive (batch repeated)": lambda: single.propose(repeated, PLAN, 1),
        "mixture packed, 1 candidate": lambda: packed.propose(seen, PLAN, 1),
        "mixture padded, 1 candidate": lambda: padded.propose(seen, PLAN, 1),
        "mixture packed, 16 candidates": lambda: packed.propose(seen, PLAN, 16),
        "mixture padded, 16 candidates": lambda: padded.propose(seen, PLAN, 16),
        "mixture packed, 16 naive (batch repeated)": lambda: packed.propose(repeated, PLAN, 1),
    }
    shipped, value = load_policy(SHIPPED / "policy"), load_value(SHIPPED / "value")
    for count in (1, 8, 16):
        steered = BestOf(shipped, value, count)
        calls[f"shipped, best of {count}"] = partial(steered.propose, seen, PLAN, 1)
    drawn = shipped.propose(seen, PLAN, 8)
    calls["shipped, value alone, 8 candidates"] = lambda: value.score(seen, PLAN, drawn)
    times = compare(calls, rounds=given.rounds)
    model = single.model
    size = sum(p.numel() for p in model.parameters()) / 1e6
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    ).stdout.strip()
    print(
        f"{size:.2f} M parameters, {given.steps} Euler steps, {given.per_token} steps a token, "
        f"1 thread, commit {commit}"
    )
    print(f"{platform.machine()}, torch {torch.__version__}, CPU time over {given.rounds} rounds")
    print("\n| call | p50 [ms] | p99 [ms] |\n|---|---|---|")
    for name, values in times.items():
        p50, p99 = np.quantile(np.asarray(values) * 1e3, [0.5, 0.99])
        print(f"| {name} | {p50:.2f} | {p99:.2f} |")
    pairs = [
        ("single horizon, 16 candidates", "single horizon, 1 candidate", 2.5),
        ("mixture packed, 16 candidates", "mixture packed, 1 candidate", 2.5),
        ("single horizon, 16 naive (batch repeated)", "single horizon, 1 candidate", None),
        ("mixture packed, 16 naive (batch repeated)", "mixture packed, 1 candidate", None),
        ("shipped, best of 8", "shipped, best of 1", None),
        ("shipped, best of 16", "shipped, best of 1", None),
        ("mixture packed, 1 candidate", "single horizon, 1 candidate", 1.5),
        ("mixture padded, 1 candidate", "single horizon, 1 candidate", None),
        ("mixture packed, 16 candidates", "single horizon, 16 candidates", None),
        ("mixture padded, 16 candidates", "mixture packed, 16 candidates", None),
    ]
    print("\n| ratio | median | needed |\n|---|---|---|")
    for over, under, most in pairs:
        ratio = np.median(np.asarray(times[over]) / np.asarray(times[under]))
        needed = "" if most is None else f"<= {most}"
        print(f"| {over} / {under} | {ratio:.2f} | {needed} |")


if __name__ == "__main__":
    main()
