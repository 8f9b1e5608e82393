"""Candidates are tried in the simulator, and nobody notices that they were."""

from collections.abc import Iterator

import numpy as np
import pytest

from robot.types import ActionChunk, Observation, Plan, Task
from sim.oracle import Oracle
from sim.robosuite import TwoArmEnv

PLAN = Plan(task=Task(name="lift", instruction="lift the pot"))


class Sway:
    """Proposes random holds near the present state; counts how often it was asked."""

    cameras = ()

    def __init__(self, size: float = 0.3) -> None:
        self.size, self.asked, self.batches = size, 0, list[int]()
        self.rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        self.asked += 1
        state = np.asarray(observation.state)
        self.batches.append(int(np.prod(state.shape[:-1])))
        noise = self.rng.normal(
            scale=self.size, size=(count, *state.shape[:-1], 1, state.shape[-1])
        )
        targets = np.broadcast_to(
            state[..., None, :] + noise, (count, *state.shape[:-1], 6, state.shape[-1])
        )
        commit = np.full((count, *state.shape[:-1]), 4)
        return ActionChunk(start=0.0, period=0.05, targets=targets.copy(), commit=commit)


@pytest.fixture(scope="module")
def env() -> Iterator[TwoArmEnv]:
    with TwoArmEnv(task="lift", time_limit_s=2.0) as scene:
        yield scene


def run(env: TwoArmEnv, *, look_ahead: bool, seed: int = 3) -> tuple[list[str], Sway]:
    policy = Sway()
    oracle = Oracle(env, policy, steps=2, continuations=1) if look_ahead else None
    env.reset(seed)
    policy.reset(seed)
    hashes: list[str] = []
    for _ in range(3):
        observation = env.robot.observe()
        chunk = policy.propose(observation, PLAN, 3)
        if oracle is not None:
            scores = oracle.score(observation, PLAN, chunk)
            assert scores.shape == (3,)
            assert np.isfinite(scores).all()
        for target in chunk.targets[0, :4]:
            env.robot.command(target)
        hashes.append(env.state_hash())
    return hashes, policy


def test_an_episode_goes_the_same_way_with_and_without_an_oracle(env: TwoArmEnv) -> None:
    plain, asked = run(env, look_ahead=False)
    watched, asked_too = run(env, look_ahead=True)
    assert plain == watched
    assert asked.asked == asked_too.asked  # the continuations came from a policy of its own
    assert asked.rng.bit_generator.state == asked_too.rng.bit_generator.state


def test_state_clock_and_counters_are_put_back(env: TwoArmEnv) -> None:
    env.reset(1)
    policy = Sway()
    chunk = policy.propose(env.robot.observe(), PLAN, 2)
    env.robot.command(chunk.targets[0, 0])
    before = env.state_hash(), env.robot.clock.now(), env.snapshot().steps
    Oracle(env, policy, steps=3).score(env.robot.observe(), PLAN, chunk)
    assert before == (env.state_hash(), env.robot.clock.now(), env.snapshot().steps)


def test_scores_follow_from_the_seed(env: TwoArmEnv) -> None:
    env.reset(1)
    policy = Sway()
    oracle = Oracle(env, policy, steps=2, continuations=1, repeats=2)
    observation = env.robot.observe()
    chunk = policy.propose(observation, PLAN, 3)

    def scores(seed: int) -> list[float]:
        oracle.reset(seed)
        return oracle.score(observation, PLAN, chunk).tolist()

    assert scores(5) == scores(5)
    assert len(set(scores(5))) == 3


def test_continuations_of_all_candidates_are_asked_for_at_once(env: TwoArmEnv) -> None:
    env.reset(1)
    oracle = Oracle(env, Sway(), steps=1, continuations=2, repeats=2)
    observation = env.robot.observe()
    oracle.score(observation, PLAN, Sway().propose(observation, PLAN, 3))
    own = oracle._policy
    assert isinstance(own, Sway)
    assert own.batches == [6, 6]


class Counting(TwoArmEnv):
    """Succeeds as soon as the left arm's first joint has turned far enough."""

    def success(self) -> bool:
        return bool(self.robot.observe().state[0] > self.threshold)

    def potential(self) -> float:
        return 0.25

    threshold = np.inf


def test_success_comes_first_and_an_early_one_before_a_late_one() -> None:
    with Counting(task="lift", time_limit_s=5.0) as env:
        env.reset(0)
        start = env.robot.observe().state
        env.threshold = start[0] + 0.2
        targets = np.broadcast_to(start, (3, 16, len(start))).copy()
        targets[1, 6:, 0] += 0.6  # late
        targets[2, :, 0] += 0.6  # at once
        chunk = ActionChunk(start=0.0, period=0.05, targets=targets, commit=np.full(3, 16))
        trial = Oracle(env, Sway(), steps=16, continuations=0).try_out(
            env.robot.observe(), PLAN, chunk
        )
        assert trial.success.tolist() == [0.0, 1.0, 1.0]
        assert trial.scores[0] == 0.25
        assert trial.scores[2] > trial.scores[1] >= 1.0
        assert trial.steps[0] == 16 > trial.steps[1] > trial.steps[2]


def test_a_candidate_that_no_robot_may_follow_has_no_score(env: TwoArmEnv) -> None:
    env.reset(0)
    chunk = Sway().propose(env.robot.observe(), PLAN, 3)
    chunk.targets[1, 0, 2] = np.nan
    before = env.state_hash()
    scores = Oracle(env, Sway(), steps=1, continuations=1).score(env.robot.observe(), PLAN, chunk)
    assert np.isnan(scores).tolist() == [False, True, False]
    assert env.state_hash() == before


def test_images_not_yet_looked_at_can_be_seen_after_the_oracle() -> None:
    with TwoArmEnv(task="lift", cameras={"agentview": (32, 32)}) as env:
        env.reset(0)
        observation = env.robot.observe()
        chunk = Sway().propose(observation, PLAN, 2)
        Oracle(env, Sway(), steps=1, continuations=1).score(observation, PLAN, chunk)
        assert observation.images["agentview"].shape == (32, 32, 3)


def test_an_oracle_that_tries_nothing_is_refused(env: TwoArmEnv) -> None:
    with pytest.raises(ValueError, match="steps=0"):
        Oracle(env, Sway(), steps=0)
