"""What every Inference must do."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from robot.inference import Delayed, Threaded
from robot.protocols import Inference, Policy
from robot.types import ActionChunk
from tests.robot.bench import PLAN, Broken, PointArm, Reach

Make = Callable[[Policy, PointArm], Inference]
KINDS: dict[str, Make] = {
    "same step": lambda policy, arm: Delayed(policy),
    "delayed": lambda policy, arm: Delayed(policy, 0.1, clock=arm.clock),
    "threaded": lambda policy, arm: Threaded(policy),
}


class Rig:
    def __init__(self, make: Make) -> None:
        self.make, self.arm = make, PointArm()
        self.opened: list[Inference] = []

    def ask(self, policy: Policy) -> Inference:
        inference = self.make(policy, self.arm)
        self.opened.append(inference)
        inference.reset(0)
        return inference

    def answer(self, inference: Inference) -> ActionChunk:
        for _ in range(500):
            chunk = inference.poll()
            if chunk is not None:
                return chunk
            self.arm.command(np.zeros(2))
            time.sleep(0.002)
        raise AssertionError("no answer in a second")


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    made = Rig(request.param)
    yield made
    for inference in made.opened:
        inference.close()
        inference.close()


def test_it_is_an_inference_that_is_not_busy(rig: Rig) -> None:
    inference = rig.ask(Reach())
    assert isinstance(inference, Inference)
    assert not inference.busy
    assert inference.poll() is None


def test_it_answers_with_one_chunk_that_starts_at_the_observation(rig: Rig) -> None:
    inference = rig.ask(Reach())
    rig.arm.command(np.zeros(2))
    inference.submit(rig.arm.observe(), PLAN)
    assert inference.busy
    chunk = rig.answer(inference)
    assert chunk.targets.shape == (8, 2)
    assert chunk.start == pytest.approx(0.05)
    assert not inference.busy


def test_each_answer_is_given_once(rig: Rig) -> None:
    inference = rig.ask(Reach())
    inference.submit(rig.arm.observe(), PLAN)
    rig.answer(inference)
    assert inference.poll() is None


def test_a_second_request_is_refused_while_one_is_under_way(rig: Rig) -> None:
    inference = rig.ask(Reach())
    inference.submit(rig.arm.observe(), PLAN)
    with pytest.raises(RuntimeError, match="under way"):
        inference.submit(rig.arm.observe(), PLAN)
    rig.answer(inference)


def test_what_the_policy_raised_is_raised_by_poll(rig: Rig) -> None:
    inference = rig.ask(Broken())
    inference.submit(rig.arm.observe(), PLAN)
    with pytest.raises(RuntimeError, match="weights are missing"):
        rig.answer(inference)
    assert not inference.busy


def test_a_reset_drops_what_is_under_way(rig: Rig) -> None:
    policy = Reach()
    inference = rig.ask(policy)
    inference.submit(rig.arm.observe(), PLAN)
    inference.reset(1)
    assert not inference.busy
    for _ in range(5):
        rig.arm.command(np.zeros(2))
        assert inference.poll() is None
    assert policy.seeds == [0, 1]


def test_wall_time_of_each_answer_is_kept(rig: Rig) -> None:
    inference = rig.ask(Reach())
    for _ in range(3):
        inference.submit(rig.arm.observe(), PLAN)
        rig.answer(inference)
    assert len(inference.latencies) == 3
    assert all(latency >= 0.0 for latency in inference.latencies)
    assert inference.latency_s >= 0.0
    inference.reset(1)
    assert len(inference.latencies) == 0
