"""What a control step, a reset and an oracle's rollouts cost beside robosuite's own.

Run: python -m benchmarks.bench_simulation (numbers: docs/results/simulation.md).

Both sides are timed in turns within one run, on one thread, by the processor's time: a busy machine
slows both. No images are made on either side.
"""

import argparse
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from sim.control import warm
from sim.mujoco import physics_state, restore_physics
from sim.scene import Scene
from sim.suite import CONTROLS, TASKS, global_seed, make_suite

PANDAS = ("Panda", "Panda")
CASES = [(task, control) for task in TASKS for control in CONTROLS]
STEP = (
    "| task | control | robosuite [ms] | without observables [ms] | ours [ms] | ratio "
    "| ratio without observables | against 25 mj_step | max abs dqpos |"
)
RESET = "| task | hard [ms] | soft [ms] | ours [ms] | hard/ours | soft/ours | equal starts |"
ORACLE = "| task | robosuite [ms] | ours [ms] | ratio | snapshot [us] | restore [us] |"
CONTACT = "| task | control | seeds | median gap | max gap | median chaos | max chaos | max z |"


def alternate(sides: dict[str, Callable[[], Any]], *, rounds: int) -> dict[str, float]:
    """Return the median processor time of each side [ms], timed in turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.thread_time()
            side()
            times[name].append(time.thread_time() - start)
    return {name: 1e3 * float(np.median(taken)) for name, taken in times.items()}


class Reference:
    """robosuite's own loop, taking our targets, without observables."""

    def __init__(self, task: str, control: str) -> None:
        self.suite = make_suite(task=task, robots=PANDAS, control=control)
        self.observables = dict(self.suite._observables)
        self.model, self.data = self.suite.sim.model._model, self.suite.sim.data._data

    def reset(self, seed: int) -> None:
        """Reset as the environment is set to, softly by default."""
        with global_seed(seed):
            self.suite.reset()

    def bare(self) -> "Reference":
        """Drop the observables: they change nothing in the physics."""
        self.suite._observables.clear()
        return self

    def action(self, scene: Scene, target: np.ndarray) -> np.ndarray:
        """Return robosuite's action for our target: its grippers close at 1 and open at -1."""
        names = scene.spec.action_names
        hands = [i for i, name in enumerate(names) if name.endswith("_gripper")]
        action = np.array(target)
        action[hands] = -np.sign(target[hands] - 0.5)
        return action


def sway(scene: Scene, *, steps: int, seed: int = 0, size: float | None = None) -> np.ndarray:
    """Return targets ``(t, d)`` around the present ones, grippers opening and closing."""
    generator = np.random.default_rng(seed)
    if size is None:
        size = 0.04 if scene.spec.control == "osc_pose" else 0.08
    time_ = np.arange(steps)[:, None]
    phase = generator.uniform(0, 2 * np.pi, len(scene.target))
    targets = scene.target + size * np.sin(0.05 * time_ + phase)
    hands = [name.endswith("_gripper") for name in scene.spec.action_names]
    targets[:, hands] = (time_ // 20) % 2
    return targets


def bench_step(task: str, control: str, *, rounds: int) -> str:
    """One control step: robosuite with and without observables, ours, and 25 bare mj_step."""
    scene = Scene(task=task, robots=PANDAS, control=control, rate=20.0)
    full, bare = Reference(task, control), Reference(task, control).bare()
    other = mujoco.MjData(scene.model)
    targets = sway(scene, steps=rounds)
    for side in (full, bare):
        side.reset(0)
    scene.reset(0)
    worst, step = 0.0, -1

    def prepare() -> None:
        nonlocal step
        step += 1
        restore_physics(scene.model, other, physics_state(scene.model, scene.data))

    def theirs(side: Reference) -> None:
        side.suite.step(side.action(scene, targets[step]))

    def compare() -> None:
        nonlocal worst
        worst = max(worst, float(np.abs(scene.data.qpos - bare.data.qpos).max()))

    sides = {
        "prepare": prepare,
        "full": lambda: theirs(full),
        "bare": lambda: theirs(bare),
        "mj_step": lambda: mujoco.mj_step(scene.model, other, nstep=25),
        "ours": lambda: scene.advance(targets[step]),
        "compare": compare,
    }
    ms = alternate(sides, rounds=rounds)
    return (
        f"| {task} | {control} | {ms['full']:.2f} | {ms['bare']:.2f} | {ms['ours']:.2f} "
        f"| {ms['full'] / ms['ours']:.1f}x | {ms['bare'] / ms['ours']:.1f}x "
        f"| {ms['ours'] / ms['mj_step']:.2f}x | {worst:.1e} |"
    )


def bench_reset(task: str, *, rounds: int, hard: int) -> str:
    """One reset: robosuite's hard and soft, ours; and whether soft and ours agree."""
    scene = Scene(task=task, robots=PANDAS, control="joint_position", rate=20.0)
    soft, rebuilt = Reference(task, "joint_position"), Reference(task, "joint_position")
    rebuilt.suite.hard_reset = True
    seed, equal = [0], 0
    hard_ms = alternate({"hard": lambda: rebuilt.reset(0)}, rounds=hard)["hard"]

    def ours() -> None:
        seed[0] += 1
        scene.reset(seed[0])

    def compare() -> None:
        nonlocal equal
        same = physics_state(scene.model, scene.data) == physics_state(soft.model, soft.data)
        equal += bool(same.all())

    sides = {"ours": ours, "soft": lambda: soft.reset(seed[0]), "compare": compare}
    ms = alternate(sides, rounds=rounds)
    return (
        f"| {task} | {hard_ms:.0f} | {ms['soft']:.2f} | {ms['ours']:.3f} "
        f"| {hard_ms / ms['ours']:.0f}x | {ms['soft'] / ms['ours']:.1f}x | {equal} of {rounds} |"
    )


def bench_oracle(task: str, *, candidates: int = 8, steps: int = 16, rounds: int = 3) -> str:
    """Candidates tried from one state: ours by snapshot, robosuite by its state and controllers."""
    scene = Scene(task=task, robots=PANDAS, control="joint_position", rate=20.0)
    reference = Reference(task, "joint_position")
    chunks = np.stack([sway(scene, steps=steps, seed=seed) for seed in range(candidates)])
    reference.reset(0)
    scene.reset(0)

    def ours() -> None:
        moment = scene.snapshot()
        for chunk in chunks:
            scene.restore(moment)
            for target in chunk:
                scene.advance(target)
        scene.restore(moment)

    def theirs() -> None:
        sim = reference.suite.sim
        state = sim.get_state()
        grips = [robot.gripper["right"].current_action for robot in reference.suite.robots]
        for chunk in chunks:
            sim.set_state(state)
            sim.forward()
            for robot, grip in zip(reference.suite.robots, grips, strict=True):
                robot.gripper["right"].current_action = np.array(grip)
            for target in chunk:
                reference.suite.step(reference.action(scene, target))
        sim.set_state(state)
        sim.forward()

    ms = alternate({"a": theirs, "b": ours}, rounds=rounds)
    moment = scene.snapshot()
    micro = alternate(
        {"copy": scene.snapshot, "restore": lambda: scene.restore(moment)}, rounds=200
    )
    return (
        f"| {task} | {ms['a']:.0f} | {ms['b']:.0f} | {ms['a'] / ms['b']:.1f}x "
        f"| {1e3 * micro['copy']:.0f} | {1e3 * micro['restore']:.0f} |"
    )


def compare_contact(task: str, control: str, *, seeds: int, steps: int = 40) -> str:
    """Hands pushed down among the objects, by statistics over seeds.

    Beside it: robosuite against itself with 1e-12 rad added to one joint, the spread of chaos.
    """
    scene = Scene(task=task, robots=PANDAS, control=control, rate=20.0)
    reference = Reference(task, control).bare()
    free = [i for i in range(scene.model.njnt) if scene.model.jnt_type[i] == 0]
    ends: dict[str, list[np.ndarray]] = {"ours": [], "theirs": [], "nudged": []}
    for seed in range(seeds):
        scene.reset(seed)
        targets = scene.target + np.linspace(0, 1, steps)[:, None] * _descent(scene, seed)
        hands = [name.endswith("_gripper") for name in scene.spec.action_names]
        targets[:, hands] = seed % 2
        for target in targets:
            scene.advance(target)
        for name in ("theirs", "nudged"):
            reference.reset(seed)
            if name == "nudged":
                reference.data.qpos[scene.arms[0].qpos[0]] += 1e-12
                mujoco.mj_forward(reference.model, reference.data)
            for target in targets:
                low, high = scene.spec.action_low, scene.spec.action_high
                reference.suite.step(reference.action(scene, np.clip(target, low, high)))
            ends[name].append(_summary(reference.data.qpos, scene, free))
        ends["ours"].append(_summary(scene.data.qpos, scene, free))
    ours, theirs, nudged = (np.array(ends[k]) for k in ("ours", "theirs", "nudged"))
    gap, chaos = np.abs(ours - theirs), np.abs(nudged - theirs)
    error = np.sqrt((ours.std(0) ** 2 + theirs.std(0) ** 2) / seeds)
    z = np.abs(ours.mean(0) - theirs.mean(0)) / np.maximum(error, 1e-9)
    return (
        f"| {task} | {control} | {seeds} | {np.median(gap):.1e} | {gap.max():.1e} "
        f"| {np.median(chaos):.1e} | {chaos.max():.1e} | {z.max():.2f} |"
    )


def _descent(scene: Scene, seed: int) -> np.ndarray:
    """Return a change of the target ``(d,)`` that leads both hands down among the objects."""
    generator = np.random.default_rng(seed)
    names = scene.spec.action_names
    change = generator.normal(0, 0.03 if scene.spec.control == "osc_pose" else 0.1, len(names))
    for index, name in enumerate(names):
        change[index] += {"z": -0.4, "joint2": 0.9}.get(name.split("_")[1], 0.0)
    return change


def _summary(qpos: np.ndarray, scene: Scene, free: list[int]) -> np.ndarray:
    arms = [qpos[arm.qpos] for arm in scene.arms]
    objects = [qpos[scene.model.jnt_qposadr[i] : scene.model.jnt_qposadr[i] + 3] for i in free]
    return np.concatenate([*arms, *objects])


def bench_memory(*, resets: int) -> str:
    """Resident memory over many resets, each with a step and a snapshot put back."""
    scene = Scene(task="transport", robots=PANDAS, control="joint_position", rate=20.0)
    seen: list[float] = []
    for seed in range(resets + 1):
        scene.reset(seed)
        scene.restore(scene.snapshot())
        scene.advance(scene.target)
        if seed % (resets // 4) == 0:
            text = Path("/proc/self/status").read_text()
            seen.append(int(text.split("VmRSS:")[1].split()[0]) / 1024.0)
    return " ".join(f"{value:.1f}" for value in seen)


def main() -> None:
    """Print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="control steps and resets timed")
    parser.add_argument("--hard", type=int, default=5, help="hard resets timed")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of the contact rollouts")
    parser.add_argument("--only", default="step reset oracle contact memory", help="which tables")
    words = parser.parse_args()
    only = words.only.split()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    start = time.perf_counter()
    warm()
    print(f"commit {commit}, {platform.processor() or platform.machine()}, mujoco "
          f"{mujoco.__version__}, warm() {time.perf_counter() - start:.1f} s")  # fmt: skip
    tables: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
        "step": (STEP, lambda: (bench_step(t, c, rounds=words.rounds) for t, c in CASES)),
        "reset": (
            RESET,
            lambda: (bench_reset(t, rounds=words.rounds, hard=words.hard) for t in TASKS),
        ),
        "oracle": (ORACLE, lambda: (bench_oracle(t) for t in TASKS)),
        "contact": (
            CONTACT,
            lambda: (compare_contact(t, c, seeds=words.seeds) for t, c in CASES if t != "peg"),
        ),
        "memory": (
            "resident memory over 400 resets [MiB]",
            lambda: iter([bench_memory(resets=400)]),
        ),
    }
    for name in only:
        head, rows = tables[name]
        print(f"\n{head}")
        if head.startswith("|"):
            print("|---" * (head.count("|") - 1) + "|")
        for row in rows():
            print(row, flush=True)


if __name__ == "__main__":
    main()
