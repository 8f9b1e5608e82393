from functools import partial

import numpy as np
import pytest

from robot.errors import InfrastructureError
from robot.inference import Delayed
from robot.limits import Limited
from robot.record import EpisodeRecord
from robot.runner import Runner
from robot.types import Observation, Outcome, Plan, Task
from robot.watch import Decisions, Recording
from tests.robot.bench import Broken, Drunk, PointEnv, Reach


def test_a_policy_that_reaches_the_goal_succeeds() -> None:
    env = PointEnv()
    record = Runner(env, Delayed(Reach())).run(3)
    assert record.outcome is Outcome.SUCCESS
    assert (record.success_once, record.success_at_end) == (True, True)
    assert record.time_to_success == pytest.approx(record.duration)
    assert record.steps == round(record.duration / 0.05)
    assert record.seed == 3
    assert record.task.name == "reach"
    assert record.inferences == len(record.latencies) > 0


def test_the_horizons_end_is_a_timeout_and_no_failure() -> None:
    record = Runner(PointEnv(time_limit_s=1.0), Delayed(Reach(goal=-0.5))).run(0)
    assert record.outcome is Outcome.TIMEOUT
    assert record.steps == 20
    assert record.time_to_success is None


def test_a_goal_that_held_once_and_was_lost_is_told_apart() -> None:
    env = PointEnv(time_limit_s=1.0, held_steps=1000)
    beyond = Reach(goal=1.0, steps=20, commit=20)
    record = Runner(env, Delayed(beyond)).run(0)
    assert record.outcome is Outcome.TIMEOUT
    assert record.success_once
    assert not record.success_at_end
    assert record.time_to_success is not None


def test_after_success_it_goes_on_only_as_long_as_asked() -> None:
    short = Runner(PointEnv(), Delayed(Reach())).run(0)
    long = Runner(PointEnv(), Delayed(Reach()), run_on_s=0.5).run(0)
    assert long.outcome is Outcome.SUCCESS
    assert long.duration == pytest.approx(short.duration + 0.5)
    assert long.time_to_success == short.time_to_success


def test_robot_is_stopped_when_the_policy_raises() -> None:
    env = PointEnv()
    with pytest.raises(RuntimeError, match="weights are missing"):
        Runner(env, Delayed(Broken())).run(0)
    assert env.robot.stopped == 1


def test_robot_is_stopped_when_the_user_interrupts() -> None:
    class Interrupted(Reach):
        def reset(self, seed: int) -> None:
            raise KeyboardInterrupt

    env = PointEnv()
    with pytest.raises(KeyboardInterrupt):
        Runner(env, Delayed(Interrupted())).run(0)
    assert env.robot.stopped == 1


def test_robot_is_stopped_once_after_success() -> None:
    env = PointEnv()
    Runner(env, Delayed(Reach())).run(0)
    assert env.robot.stopped == 1


def test_machinery_that_fails_is_an_error_and_no_failure() -> None:
    class Flaky(PointEnv):
        def judge(self, observation: Observation) -> Outcome | None:
            raise InfrastructureError("the renderer is gone")

    env = Flaky()
    record = Runner(env, Delayed(Reach())).run(0)
    assert record.outcome is Outcome.ERROR
    assert "renderer is gone" in record.error
    assert env.robot.stopped == 1


def test_a_policy_that_says_nan_fails_and_moves_nothing() -> None:
    env = PointEnv()
    record = Runner(env, Delayed(Drunk())).run(0)
    assert record.outcome is Outcome.FAILURE
    assert "NaN" in record.error
    assert env.robot.commands == []


def test_counters_of_one_episode_do_not_reach_the_record_of_the_next() -> None:
    class Dies(PointEnv):
        resets = 0

        def reset(self, seed: int) -> Task:
            self.resets += 1
            if self.resets == 2:
                raise InfrastructureError("no more")
            return super().reset(seed)

    env = Dies()
    runner = Runner(env, Delayed(Reach(), 0.1, clock=env.robot.clock))
    assert runner.run(0).starved > 0
    second = runner.run(1)
    assert (second.starved, second.inferences, second.latencies) == (0, 0, ())


def test_the_same_seed_gives_the_same_episode_and_another_seed_another_start() -> None:
    def record(seed: int) -> dict[str, object]:
        plain = Runner(PointEnv(), Delayed(Reach(noise=0.05))).run(seed).to_dict()
        plain.pop("latencies")
        return plain

    assert record(4) == record(4)
    assert record(4)["state_hash"] != record(5)["state_hash"]


def test_the_policy_is_reset_with_the_seed_of_each_episode() -> None:
    policy = Reach()
    runner = Runner(PointEnv(), Delayed(policy))
    runner.run(7)
    runner.run(8)
    assert policy.seeds == [7, 8]


def test_limits_are_put_around_the_robot() -> None:
    env = PointEnv()
    wrap = partial(Limited, max_velocity={"rad": 0.4})
    recording = Recording()
    Runner(env, Delayed(Reach(steps=1)), wrap=wrap, watchers=[recording]).run(0)
    moves = np.abs(np.diff(np.stack(recording.targets), axis=0))
    assert moves.max() <= 0.4 * 0.05 + 1e-9
    assert np.stack(recording.targets) == pytest.approx(np.stack(env.robot.commands))


def test_watchers_see_images_of_the_moment_before_the_robot_moved() -> None:
    env = PointEnv()
    recording = Recording(cameras=["top"])
    record = Runner(env, Delayed(Reach()), watchers=[recording]).run(0)
    frames = [int(frame[0, 0, 0]) for frame in recording.images["top"]]
    assert frames == list(range(record.steps))
    assert recording.record == record


def test_no_image_is_rendered_when_nobody_looks() -> None:
    env = PointEnv()
    Runner(env, Delayed(Reach()), watchers=[Recording(), Decisions()]).run(0)
    assert env.robot.rendered == 0


def test_a_planner_is_asked_at_its_own_slow_rate() -> None:
    class Slowly:
        def __init__(self) -> None:
            self.times: list[float] = []

        def plan(self, observation: Observation, task: Task, previous: Plan | None) -> Plan:
            self.times.append(float(observation.time))
            return Plan(task=task, remaining=("reach",))

    planner = Slowly()
    env = PointEnv(time_limit_s=1.0)
    Runner(env, Delayed(Reach(goal=-0.5)), planner=planner, plan_period_s=0.25).run(0)
    assert planner.times == pytest.approx([0.0, 0.25, 0.5, 0.75])


def test_a_record_survives_json() -> None:
    record = Runner(PointEnv(), Delayed(Reach())).run(0)
    assert EpisodeRecord.from_dict(record.to_dict()) == record
