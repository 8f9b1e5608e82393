import numpy as np
import pytest

from robot.agent import Agent
from robot.clock import StepClock
from robot.errors import BadAction
from robot.inference import Delayed
from robot.types import ActionChunk, Observation, Plan
from tests.robot.bench import PLAN

PERIOD = 0.05


class Steps:
    """Proposes targets that name the time they are meant for."""

    def __init__(self, steps: int = 8, commit: int = 8) -> None:
        self.steps, self.commit = steps, commit
        self.asked: list[float] = []

    def reset(self, seed: int) -> None:
        self.asked = []

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        now = float(observation.time)
        self.asked.append(round(now / PERIOD))
        targets = now + PERIOD * np.arange(self.steps)[None, :, None]
        return ActionChunk(
            start=now, period=PERIOD, targets=targets, commit=np.array([self.commit])
        )


class Rig:
    def __init__(self, policy: Steps, *, latency: int = 0, execute: int | None = None) -> None:
        self.policy, self.clock = policy, StepClock()
        self.inference = Delayed(policy, latency * PERIOD, clock=self.clock)
        self.agent = Agent(self.inference, hold=lambda seen: np.array([-1.0]), execute=execute)
        self.agent.reset(0)

    def run(self, steps: int) -> list[float]:
        targets: list[float] = []
        for _ in range(steps):
            seen = Observation(time=self.clock.now(), state=np.zeros(1))
            targets.append(round(float(self.agent.act(seen, PLAN)[0]) / PERIOD, 6))
            self.clock.advance(PERIOD)
        return targets


def test_without_latency_every_step_gets_the_target_meant_for_it() -> None:
    rig = Rig(Steps())
    assert rig.run(40) == pytest.approx(list(range(40)))
    assert rig.agent.starved == 0


def test_a_chunk_is_asked_for_again_after_its_commit() -> None:
    rig = Rig(Steps(commit=3))
    rig.run(10)
    assert rig.policy.asked == [0, 3, 6, 9]


def test_a_fixed_number_of_steps_overrules_the_commit() -> None:
    rig = Rig(Steps(commit=3), execute=5)
    rig.run(11)
    assert rig.policy.asked == [0, 5, 10]


def test_an_answer_is_asked_for_early_by_the_known_latency() -> None:
    rig = Rig(Steps(commit=6), latency=2)
    targets = rig.run(20)
    assert rig.policy.asked == [0, 4, 8, 12, 16]
    assert targets[2:] == pytest.approx(list(range(2, 20)))


def test_until_the_first_chunk_comes_the_robot_holds_where_it_is() -> None:
    rig = Rig(Steps(), latency=3)
    assert rig.run(4)[:3] == pytest.approx([-20.0] * 3)
    assert rig.agent.starved == 3


def test_a_late_chunk_skips_its_stale_head() -> None:
    rig = Rig(Steps(), latency=3)
    assert rig.run(4)[3] == pytest.approx(3.0)


def test_past_the_end_of_a_chunk_the_last_target_is_held_and_counted() -> None:
    rig = Rig(Steps(steps=4, commit=4), latency=6)
    targets = rig.run(12)
    # Each answer comes after six steps and covers none: all of it is stale.
    assert targets == pytest.approx([-20.0] * 12)
    assert rig.agent.starved == 12


def test_the_untrusted_rest_of_a_chunk_is_followed_while_the_answer_is_late() -> None:
    rig = Rig(Steps(steps=8, commit=1), latency=4)
    targets = rig.run(16)
    assert targets[4:] == pytest.approx(list(range(4, 16)))


def test_a_commit_longer_than_the_chunk_does_not_starve() -> None:
    rig = Rig(Steps(steps=4, commit=100))
    rig.run(12)
    assert rig.agent.starved == 0


@pytest.mark.parametrize("commit", [0, -3])
def test_a_commit_below_one_still_moves_on(commit: int) -> None:
    rig = Rig(Steps(commit=commit))
    assert rig.run(3) == pytest.approx([0, 1, 2])


def test_a_chunk_with_nan_is_refused_before_any_of_it_is_followed() -> None:
    class Drunk(Steps):
        def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
            chunk = super().propose(observation, plan, count)
            chunk.targets[0, -1] = np.nan
            return chunk

    with pytest.raises(BadAction, match="NaN"):
        Rig(Drunk()).run(1)


def test_executing_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Rig(Steps(), execute=0)


def test_reset_forgets_chunk_and_counters() -> None:
    rig = Rig(Steps(), latency=3)
    rig.run(6)
    rig.agent.reset(1)
    assert (rig.agent.chunk, rig.agent.starved, rig.agent.inferences) == (None, 0, 0)
