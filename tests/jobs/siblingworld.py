"""A tiny oracle for the point world; spawned workers import it by name."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from pointworld import PointEnv, Wander

from robot.executor import Serial
from robot.jobs.siblings import collect_siblings
from robot.siblings import Trial
from robot.types import ActionChunk, Observation, Plan


class Foresight:
    """Knows how near each candidate would come."""

    def __init__(self, *, env: PointEnv, policy: Wander) -> None:
        self.env = env

    def reset(self, seed: int) -> None:
        pass

    def try_out(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> Trial:
        left = np.linalg.norm(chunk.targets[:, -1] - self.env.robot.goal, axis=-1)
        scores = np.exp(-left)
        return Trial(
            scores=scores,
            success=(left < 0.3).astype(np.float64),
            steps=np.full(len(left), 4.0),
            potential=scores,
            before=float(np.exp(-np.linalg.norm(self.env.robot.place - self.env.robot.goal))),
        )


collect = partial(collect_siblings, env=PointEnv, policy=Wander, oracle=Foresight)


if __name__ == "__main__":
    collect(out=Path(sys.argv[1]), seeds=range(int(sys.argv[2])), count=4, executor=Serial())
