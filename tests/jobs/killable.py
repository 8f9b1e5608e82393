"""Run an evaluation of the tiny world in a process of its own. Usage: killable.py OUT WORKERS."""

import sys
from io import StringIO
from pathlib import Path

from pointworld import ARMS, Choose, Slow, Wander
from rich.console import Console

from robot.executor import Local, Serial
from robot.jobs.evaluate import evaluate

if __name__ == "__main__":
    workers = int(sys.argv[2])
    evaluate(
        tasks={"reach": Slow(0.003)},
        policy=Wander,
        arms=ARMS,
        seeds=range(8),
        out=Path(sys.argv[1]),
        steer=Choose,
        executor=Local(workers) if workers else Serial(),
        report=False,
        console=Console(file=StringIO()),
    )
