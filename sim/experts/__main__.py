"""How often the experts do what they shall: ``python -m sim.experts`` prints the table.

The figures of ``docs/results/experts.md`` come from here.
"""

import argparse
import time
from dataclasses import dataclass, field

from rich.console import Console

from robot.statistics import wilson
from robot.types import Outcome
from sim.experts import EXPERTS, QUALITIES, Quality, expert_for
from sim.robosuite import TwoArmEnv
from sim.tasks import goals

FIRST_SEED = 10_000


@dataclass(slots=True, kw_only=True)
class Row:
    """What came of one quality on one goal."""

    seeds: list[int] = field(default_factory=list[int])
    steps: list[int] = field(default_factory=list[int])
    failed: list[int] = field(default_factory=list[int])
    acting: float = 0.0
    total: float = 0.0
    calls: int = 0

    def __str__(self) -> str:
        """Return the cells of the table's row."""
        n, k = len(self.seeds), len(self.steps)
        low, high = wilson(k, n)
        mean = f"{sum(self.steps) / k:.0f}" if k else "-"
        return (
            f"{k} of {n} | {low:.2f} to {high:.2f} | {mean} | "
            f"{1e3 * self.total / n:.0f} | {1e3 * self.acting / self.calls:.2f}"
        )


def measure(
    env: TwoArmEnv, *, quality: Quality, first_seed: int, episodes: int, noise: float
) -> Row:
    """Return what came of ``episodes`` seeds; times are CPU seconds of this process."""
    row = Row()
    for seed in range(first_seed, first_seed + episodes):
        began = time.process_time()
        env.reset(seed)
        expert = expert_for(env, quality=quality, seed=seed, noise=noise)
        outcome: Outcome | None = None
        while outcome is None:
            before = time.process_time()
            target = expert.act()
            row.acting += time.process_time() - before
            row.calls += 1
            env.robot.command(expert.perturb(target))
            outcome = env.judge(env.robot.observe())
        row.total += time.process_time() - began
        row.seeds.append(seed)
        if outcome is Outcome.SUCCESS:
            row.steps.append(expert.steps)
        else:
            row.failed.append(seed)
    return row


def main() -> None:
    """Print one row for each task, goal and quality."""
    parser = argparse.ArgumentParser(prog="python -m sim.experts", description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(EXPERTS), choices=list(EXPERTS))
    parser.add_argument("--qualities", nargs="+", default=list(QUALITIES), choices=QUALITIES)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--noise", type=float, default=0.0, help="of the executed joints [rad]")
    wanted = parser.parse_args()
    console = Console(width=160, highlight=False, markup=False)
    console.print("| task | goal | quality | success | 95 % interval | steps | ms | act ms |")
    console.print("|---|---|---|---|---|---|---|---|")
    for task in wanted.tasks:
        for goal in goals(task):
            with TwoArmEnv(task=task, goal=goal, cameras={}) as env:
                for quality in wanted.qualities:
                    row = measure(
                        env,
                        quality=quality,
                        first_seed=wanted.first_seed,
                        episodes=wanted.episodes,
                        noise=wanted.noise,
                    )
                    console.print(f"| {task} | {goal} | {quality} | {row} |")
                    if quality != "failing" and row.failed:
                        console.print(f"failed seeds: {row.failed}")


if __name__ == "__main__":
    main()
