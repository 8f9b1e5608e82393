"""What an image environment costs beside robosuite's. Run: python benchmarks/bench_rendering.py.

One control step and the images of two (128 pixel) or three (64 pixel) cameras, ours and robosuite's
own loop by turns in one process, on every task. Times are CPU time of the process, which a busy
machine changes less than wall time, and wall time beside it. ``--soak`` renders 1,000 times over
200 resets and 20 reopenings and prints the resident memory. Numbers: docs/results/rendering.md.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from sim.robosuite import TwoArmEnv
from sim.suite import make_suite
from sim.tasks import GOALS

TWO = ("agentview", "robot0_eye_in_hand")
THREE = ("agentview", "robot0_eye_in_hand", "robot1_eye_in_hand")


def costs(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return medians of CPU and wall time of one call [ms]."""
    call()
    cpu, wall = np.empty(rounds), np.empty(rounds)
    for i in range(rounds):
        started, spent = time.perf_counter(), time.process_time()
        call()
        wall[i], cpu[i] = time.perf_counter() - started, time.process_time() - spent
    return 1e3 * float(np.median(cpu)), 1e3 * float(np.median(wall))


def resident_mb() -> float:
    """Return the resident memory of this process [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def robosuite_loop(task: str, names: tuple[str, ...], size: int) -> Callable[[], object]:
    """Return robosuite's own step, which renders by its own offscreen context."""
    from robosuite.utils.binding_utils import MjRenderContextOffscreen

    suite: Any = make_suite(task=task, robots=("Panda", "Panda"))
    suite._observables.clear()
    context = MjRenderContextOffscreen(suite.sim, device_id=-1)
    context.vopt.geomgroup[0] = 0
    ids = [suite.sim.model.camera_name2id(name) for name in names]
    action = np.zeros(suite.action_dim)

    def step() -> None:
        suite.timestep, suite.done = 0, False
        suite.step(action)
        for index in ids:
            context.render(size, size, camera_id=index)
            context.read_pixels(size, size)

    return step


def our_loop(env: TwoArmEnv) -> Callable[[], object]:
    """Return our step with every image looked at."""
    target = env.robot.observe().state.astype(np.float64)

    def step() -> None:
        env.robot.command(target)
        dict(env.robot.observe().images)

    return step


def compare(rounds: int) -> None:
    """Print one line for each task and size: robosuite, ours, and their ratio."""
    for task in GOALS:
        for names, size in ((TWO, 128), (THREE, 64)):
            with TwoArmEnv(task, cameras=dict.fromkeys(names, (size, size))) as env:
                ours, theirs = our_loop(env), robosuite_loop(task, names, size)
                fast, slow = costs(ours, 5 * rounds), costs(theirs, rounds)
                again = costs(ours, 5 * rounds)
                fast = ((fast[0] + again[0]) / 2, (fast[1] + again[1]) / 2)
                each = {n: costs(lambda n=n: env._cameras.render(env.data, n), 30) for n in names}
            print(
                f"{task:10s} {size:4d} px x {len(names)}  cpu {slow[0]:6.1f} / {fast[0]:5.1f} ms = "
                f"{slow[0] / fast[0]:4.1f}x   wall {slow[1]:6.1f} / {fast[1]:5.1f} ms = "
                f"{slow[1] / fast[1]:4.1f}x   one render (cpu): "
                + ", ".join(f"{name} {cost[0]:.1f}" for name, cost in each.items()),
                flush=True,
            )


def soak() -> None:
    """Print resident memory over 1,000 renders, 200 resets and 20 reopened GL buffers."""
    with TwoArmEnv("lift", cameras=dict.fromkeys(THREE, (64, 64))) as env:
        for seed in range(201):
            env.reset(seed)
            for _ in range(2):
                env.robot.command(env.robot.observe().state.astype(np.float64))
                dict(env.robot.observe().images)
            if seed % 10 == 0:
                env.close()
            if seed % 40 == 0:
                print(f"{seed:4d} resets, {6 * (seed + 1):5d} renders: {resident_mb():.1f} MB")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--soak", action="store_true")
    wanted = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, mujoco {mujoco.__version__}")
    if wanted.soak:
        soak()
    else:
        compare(wanted.rounds)


if __name__ == "__main__":
    main()
