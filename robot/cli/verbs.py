"""What each verb does with its checked configuration: build, call the job, tell the exit code."""

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Console

from robot.config import Factory, build
from robot.errors import AmbidexError

Plain = dict[str, Any]
EXIT_INCOMPLETE = 3


def run_collect(config: Plain) -> int:
    """Collect episodes of an expert or a policy, into one store or one for each split and task."""
    from robot.jobs.collect import collect

    out, tasks = Path(config["out"]), list(config["tasks"])
    stores = [(out, tasks, _range("seeds", config["seeds"]))]
    if config["splits"]:
        ranges = {n: _range(f"splits.{n}", seeds) for n, seeds in config["splits"].items()}
        _check_apart(ranges)
        stores = [(out / n / t, [t], seeds) for n, seeds in ranges.items() for t in tasks]
    complete = True
    for folder, names, seeds in stores:
        collected = collect(
            out=folder,
            tasks={name: Factory(config["tasks"][name]) for name in names},
            seeds=seeds,
            expert=None if config["policy"] is not None else build(config["expert"]),
            policy=None if config["policy"] is None else Factory(config["policy"]),
            qualities=config["qualities"],
            successes_only=config["successes_only"],
            executor=build(config["executor"]),
            retries=config["retries"],
            latency_s=config["latency_s"],
        )
        Console(highlight=False).print(
            f"{collected.stored} episodes ({collected.frames} frames, {collected.successes} "
            f"successes) stored in {collected.out} in {collected.seconds:.0f} s; "
            f"{collected.kept} were there before, {len(collected.errors)} errors"
        )
        complete = complete and collected.complete
    return 0 if complete else EXIT_INCOMPLETE


def _check_apart(ranges: Mapping[str, range]) -> None:
    for (first, a), (second, b) in combinations(ranges.items(), 2):
        shared = range(max(a.start, b.start), min(a.stop, b.stop))
        if shared:
            raise AmbidexError(
                f"splits {first} and {second} share {len(shared)} seeds from {shared.start} on; "
                "what was trained on cannot be tested on: move one of them"
            )


def run_label(config: Plain) -> int:
    """Label candidates of a policy by trying each in copied physics."""
    from robot.jobs.siblings import collect_siblings

    told: dict[str, int] = {}
    for name, node in config["tasks"].items():
        found = collect_siblings(
            env=Factory(node),
            policy=Factory(config["policy"]),
            oracle=build(config["oracle"]),
            out=Path(config["out"]) / name,
            seeds=_seeds(config),
            count=config["candidates"],
            behaviours=config["behaviours"],
            settings={"checkpoint": config["checkpoint"], "oracle": config["oracle"]},
            executor=build(config["executor"]),
            retries=config["retries"],
        )
        told = {key: told.get(key, 0) + int(value) for key, value in found.items()}
    Console(highlight=False).print(
        ", ".join(f"{key} {value}" for key, value in told.items()) + f"; in {config['out']}"
    )
    return 0 if not told.get("errors") else EXIT_INCOMPLETE


def run_compare(config: Plain) -> int:
    """Compare two finished runs on the seeds that both ran."""
    from robot.jobs.compare import compare

    compare(Path(config["a"]), Path(config["b"]), console=Console())
    return 0


def run_doctor(config: Plain) -> int:
    """Say in words what keeps this machine from running."""
    from robot.jobs.doctor import doctor

    return doctor()


def run_eval(config: Plain) -> int:
    """Evaluate arms on tasks and seeds."""
    from robot.jobs.evaluate import evaluate
    from robot.trials import Arm

    def arm(node: Mapping[str, Any]) -> Arm:
        return Arm(
            count=node["count"],
            value=None if node["value"] is None else Factory(node["value"]),
            policy=None if node["policy"] is None else Factory(node["policy"]),
            execute=node["execute"],
            latency_s=node["latency_s"],
        )

    checkpoint = config["checkpoint"]
    finished = evaluate(
        tasks={name: Factory(node) for name, node in config["tasks"].items()},
        policy=Factory(config["policy"]),
        arms={name: arm(node) for name, node in config["arms"].items()},
        seeds=_seeds(config),
        out=Path(config["out"]),
        steer=build(config["steer"]),
        executor=build(config["executor"]),
        latency_s=config["latency_s"],
        retries=config["retries"],
        checkpoint=None if checkpoint is None else Path(checkpoint),
        configuration=_what_decides(config),
        weights={name: Path(path) for name, path in config["weights"].items()},
        viewer=build(config["viewer"]),
        videos=config["videos"],
        report=config["report"],
        title=config["title"],
    )
    return 0 if finished.complete else EXIT_INCOMPLETE


def run_train(config: Plain) -> int:
    """Train a policy or a value."""
    from robot.jobs.train import train

    train(
        datasets=config["datasets"],
        learner=build(config["learner"]),
        trainer=build(config["trainer"]),
        out=config["out"],
        resume=config["resume"],
        cache=config["cache"],
    )
    return 0


def _seeds(config: Plain) -> range:
    return _range("seeds", config["seeds"])


def _range(name: str, seeds: Mapping[str, int]) -> range:
    start, count = seeds["start"], seeds["count"]
    if start < 0 or count < 1:
        raise AmbidexError(
            f"{name}.start={start} {name}.count={count} names no seeds; start at 0 or later and "
            "give a count of 1 or more"
        )
    return range(start, start + count)


def _what_decides(config: Plain) -> Plain:
    """Return the settings that decide outcomes: not where they go, nor how they are shown."""
    shown = ("out", "seeds", "executor", "retries", "viewer", "videos", "report", "title")
    return {k: v for k, v in config.items() if k not in shown}


RUN: Mapping[str, Callable[[Plain], int]] = {
    "collect": run_collect,
    "label": run_label,
    "train": run_train,
    "eval": run_eval,
    "compare": run_compare,
    "doctor": run_doctor,
}
