"""What each verb does with its checked configuration: build, call the job, tell the exit code."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from robot.config import Factory, build

Plain = dict[str, Any]
EXIT_INCOMPLETE = 3


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

    seeds = config["seeds"]
    checkpoint = config["checkpoint"]
    finished = evaluate(
        tasks={name: Factory(node) for name, node in config["tasks"].items()},
        policy=Factory(config["policy"]),
        arms={name: arm(node) for name, node in config["arms"].items()},
        seeds=range(seeds["start"], seeds["start"] + seeds["count"]),
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


def _what_decides(config: Plain) -> Plain:
    """Return the settings that decide outcomes: not where they go, nor how they are shown."""
    shown = ("out", "seeds", "executor", "retries", "viewer", "videos", "report", "title")
    return {k: v for k, v in config.items() if k not in shown}


RUN: Mapping[str, Callable[[Plain], int]] = {
    "train": run_train,
    "eval": run_eval,
}
