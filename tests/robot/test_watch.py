from pathlib import Path

import numpy as np

from robot.inference import Delayed
from robot.runner import Runner
from robot.types import ActionChunk, Decision, Observation, Plan
from robot.watch import Decisions, Heartbeat, View
from tests.robot.bench import PointEnv, Reach


def test_a_decision_is_kept_once_for_each_chunk() -> None:
    class Chosen(Reach):
        def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
            chunk = super().propose(observation, plan, count)
            fallback = "nan" if len(self.asked) == 1 else ""
            decision = Decision(scores=np.zeros(2), choice=0, latency=0.0, fallback=fallback)
            return ActionChunk(
                start=chunk.start,
                period=chunk.period,
                targets=chunk.targets,
                commit=chunk.commit,
                decision=decision,
            )

    decisions, policy = Decisions(), Chosen()
    record = Runner(PointEnv(), Delayed(policy), watchers=[decisions]).run(0)
    assert decisions.starts == policy.asked
    assert len(decisions.decisions) == record.inferences
    assert decisions.fallbacks == {"nan": 1}


def test_a_view_renders_only_the_steps_it_shows() -> None:
    shown: list[float] = []
    env = PointEnv(time_limit_s=0.5)
    view = View(lambda image, time: shown.append(round(time, 3)), "top", every=4)
    Runner(env, Delayed(Reach(goal=-0.5)), watchers=[view]).run(0)
    assert shown == [0.0, 0.2, 0.4]
    assert env.robot.rendered == 3


def test_a_heartbeat_is_left_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    record = Runner(PointEnv(), Delayed(Reach()), watchers=[Heartbeat(path)]).run(9)
    assert path.read_text() == f"9 {record.duration:.3f}\n"
