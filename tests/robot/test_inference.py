import threading
import time

import numpy as np
import pytest

from robot.clock import StepClock
from robot.inference import Delayed, Threaded, materialised
from robot.types import ActionChunk, Observation, Plan
from tests.robot.bench import PLAN, Broken, PointArm, Reach


def wait_for(inference: Threaded) -> ActionChunk:
    for _ in range(500):
        chunk = inference.poll()
        if chunk is not None:
            return chunk
        time.sleep(0.002)
    raise AssertionError("no answer in a second")


def test_an_answer_is_held_back_for_the_latency_on_the_robots_clock() -> None:
    arm = PointArm()
    inference = Delayed(Reach(), 0.1, clock=arm.clock)
    inference.submit(arm.observe(), PLAN)
    arm.clock.advance(0.05)
    assert inference.poll() is None
    arm.clock.advance(0.05)
    assert inference.poll() is not None
    assert not inference.busy


def test_latency_needs_the_robots_clock() -> None:
    with pytest.raises(ValueError, match=r"env\.robot\.clock"):
        Delayed(Reach(), 0.1)


def test_a_negative_latency_is_refused() -> None:
    with pytest.raises(ValueError, match=">= 0"):
        Delayed(Reach(), -0.1, clock=StepClock())


def test_a_thread_sees_images_as_they_were_when_it_was_asked() -> None:
    started, go = threading.Event(), threading.Event()

    class Looks(Reach):
        def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
            started.set()
            go.wait(2.0)
            assert int(observation.images["top"][0, 0, 0]) == 0
            return super().propose(observation, plan, count)

    arm = PointArm()
    inference = Threaded(Looks())
    inference.reset(0)
    inference.submit(arm.observe(), PLAN)
    assert started.wait(2.0)
    arm.command(np.zeros(2))
    go.set()
    assert wait_for(inference).steps == 8
    inference.close()


def test_images_that_the_policy_does_not_look_at_are_not_rendered() -> None:
    class Blind(Reach):
        cameras = ()

    arm = PointArm()
    inference = Threaded(Blind())
    inference.submit(arm.observe(), PLAN)
    wait_for(inference)
    assert arm.rendered == 0
    inference.close()


def test_an_answer_from_before_a_reset_never_arrives() -> None:
    go = threading.Event()

    class Slow(Reach):
        def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
            go.wait(2.0)
            return super().propose(observation, plan, count)

    arm = PointArm()
    inference = Threaded(Slow())
    inference.submit(arm.observe(), PLAN)
    threading.Timer(0.02, go.set).start()
    inference.reset(1)
    assert not inference.busy
    time.sleep(0.02)
    assert inference.poll() is None
    inference.close()


def test_the_latency_to_expect_is_learned_from_the_last_answers() -> None:
    class Slow(Reach):
        def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
            time.sleep(0.03)
            return super().propose(observation, plan, count)

    inference = Threaded(Slow(), latency_s=0.01)
    assert inference.latency_s == 0.01
    inference.submit(PointArm().observe(), PLAN)
    wait_for(inference)
    assert inference.latency_s >= 0.03
    inference.close()


def test_what_raises_while_a_policy_is_reset_is_raised_by_reset() -> None:
    class Unready(Broken):
        def reset(self, seed: int) -> None:
            raise RuntimeError("no weights")

    inference = Threaded(Unready())
    with pytest.raises(RuntimeError, match="no weights"):
        inference.reset(0)
    inference.close()


def test_materialised_images_are_copies() -> None:
    arm = PointArm()
    kept = materialised(arm.observe())
    arm.command(np.zeros(2))
    assert kept.images["top"].shape == (4, 6, 3)
    with pytest.raises(KeyError):
        materialised(arm.observe(), ["side"])
