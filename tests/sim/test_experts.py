"""Experts do what their quality says, from any state, and everything follows from the seed."""

from collections.abc import Iterator

import numpy as np
import pytest

from robot.errors import UnknownName
from robot.types import Outcome
from sim.experts import QUALITIES, Expert, Quality, expert_for
from sim.experts.expert import Wander
from sim.experts.pot import draw_flaws
from sim.experts.reach import clipped, rotation_vector
from sim.robosuite import TwoArmEnv

SEED = 10_001


@pytest.fixture(scope="module", params=["lift", "slide"])
def scene(request: pytest.FixtureRequest) -> Iterator[TwoArmEnv]:
    with TwoArmEnv(task="lift", goal=request.param, cameras={}) as env:
        yield env


@pytest.fixture(scope="module")
def lift() -> Iterator[TwoArmEnv]:
    with TwoArmEnv(task="lift", goal="lift", cameras={}) as env:
        yield env


@pytest.fixture(scope="module")
def peg() -> Iterator[TwoArmEnv]:
    with TwoArmEnv(task="peg", cameras={}) as env:
        yield env


@pytest.fixture(scope="module")
def handover() -> Iterator[TwoArmEnv]:
    with TwoArmEnv(task="handover", cameras={}) as env:
        yield env


def play(env: TwoArmEnv, expert: Expert) -> tuple[Outcome, list[np.ndarray], list[float]]:
    """Let the expert act to the end; return outcome, targets and potentials."""
    targets: list[np.ndarray] = []
    potentials: list[float] = []
    while (outcome := env.judge(env.robot.observe())) is None:
        potentials.append(env.potential())
        targets.append(expert.act())
        env.robot.command(expert.perturb(targets[-1]))
    return outcome, targets, potentials


@pytest.mark.parametrize("quality", QUALITIES)
def test_all_but_the_failing_expert_succeed(scene: TwoArmEnv, quality: Quality) -> None:
    scene.reset(SEED)
    outcome, _, _ = play(scene, expert_for(scene, quality=quality, seed=SEED))
    assert outcome is (Outcome.TIMEOUT if quality == "failing" else Outcome.SUCCESS)


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_peg_goes_in_for_all_but_the_failing_expert(peg: TwoArmEnv, quality: Quality) -> None:
    peg.reset(SEED)
    outcome, _, _ = play(peg, expert_for(peg, quality=quality, seed=SEED))
    assert outcome is (Outcome.TIMEOUT if quality == "failing" else Outcome.SUCCESS)


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_hammer_is_handed_over_by_all_but_the_failing_expert(
    handover: TwoArmEnv, quality: Quality
) -> None:
    handover.reset(SEED)
    outcome, _, _ = play(handover, expert_for(handover, quality=quality, seed=SEED))
    assert outcome is (Outcome.TIMEOUT if quality == "failing" else Outcome.SUCCESS)


def test_potential_hardly_ever_falls_along_a_clean_execution(scene: TwoArmEnv) -> None:
    scene.reset(SEED)
    _, _, potentials = play(scene, expert_for(scene, seed=SEED))
    assert np.max(np.maximum.accumulate(potentials) - potentials) < 0.03
    assert potentials[-1] > 0.95 > 0.4 > potentials[0]


def test_subtasks_come_in_order(scene: TwoArmEnv) -> None:
    scene.reset(SEED)
    expert, seen = expert_for(scene, seed=SEED), [0]
    while scene.judge(scene.robot.observe()) is None:
        scene.robot.command(expert.act())
        seen.append(expert.subtask)
    assert sorted(set(seen)) == list(range(len(scene.goal.subtasks)))
    assert seen == sorted(seen)


def test_the_same_seed_gives_the_same_targets(lift: TwoArmEnv) -> None:
    runs: list[np.ndarray] = []
    for _ in range(2):
        lift.reset(SEED)
        expert = expert_for(lift, quality="retrying", seed=7, noise=0.01)
        runs.append(np.array(play(lift, expert)[1]))
    np.testing.assert_array_equal(runs[0], runs[1])


def test_a_reset_expert_forgets_the_last_episode(lift: TwoArmEnv) -> None:
    lift.reset(SEED)
    expert = expert_for(lift, quality="retrying", seed=7)
    first = play(lift, expert)[1]
    lift.reset(SEED)
    expert.reset(7)
    assert (expert.steps, expert.segments) == (0, [])
    np.testing.assert_array_equal(first, play(lift, expert)[1])


@pytest.mark.parametrize(("quality", "kinds"), [("failing", 4), ("retrying", 2)])
def test_other_seeds_err_in_other_ways(quality: Quality, kinds: int) -> None:
    drawn = [draw_flaws(quality, "lift", np.random.default_rng(seed)) for seed in range(40)]
    assert len({flaw.kind for flaws in drawn for flaw in flaws}) == kinds


@pytest.mark.parametrize("quality", QUALITIES[1:])
def test_segments_lie_within_the_episode_and_last(lift: TwoArmEnv, quality: Quality) -> None:
    lift.reset(SEED)
    expert = expert_for(lift, quality=quality, seed=SEED)
    _, targets, _ = play(lift, expert)
    assert expert.segments
    for segment in expert.segments:
        assert 0 <= segment.start < segment.end <= len(targets)
        assert segment.end - segment.start >= 8


def test_a_clean_expert_has_no_segments(lift: TwoArmEnv) -> None:
    lift.reset(SEED)
    expert = expert_for(lift, seed=SEED)
    play(lift, expert)
    assert expert.segments == []


def test_it_takes_over_from_where_another_failed(lift: TwoArmEnv) -> None:
    lift.reset(SEED)
    failing = expert_for(lift, quality="failing", seed=3)
    for _ in range(45):
        lift.robot.command(failing.act())
    rescuer, steps = expert_for(lift, seed=0), 0
    while not rescuer.done and steps < 110:
        lift.robot.command(rescuer.act())
        steps += 1
    assert rescuer.done


def test_noise_is_executed_but_not_recorded(lift: TwoArmEnv) -> None:
    lift.reset(SEED)
    expert = expert_for(lift, seed=1, noise=0.01)
    label = expert.act()
    executed = expert.perturb(label)
    grippers = [7, 15]
    np.testing.assert_array_equal(executed[grippers], label[grippers])
    assert np.all(np.delete(executed != label, grippers))
    silent = expert_for(lift, seed=1)
    np.testing.assert_array_equal(silent.perturb(label), label)


def test_targets_lie_within_the_limits_and_fit_the_spec(scene: TwoArmEnv) -> None:
    scene.reset(SEED)
    _, targets, _ = play(scene, expert_for(scene, quality="retrying", seed=SEED))
    low, high = np.array(scene.spec.action_low), np.array(scene.spec.action_high)
    assert targets[0].shape == low.shape
    assert np.all(targets >= low)
    assert np.all(targets <= high)


def test_an_unknown_quality_is_named(lift: TwoArmEnv) -> None:
    with pytest.raises(UnknownName, match="clean"):
        expert_for(lift, quality="cleen")  # pyright: ignore[reportArgumentType]


def test_wander_has_the_spread_it_was_asked_for() -> None:
    wander, random = Wander(14, 0.02), np.random.default_rng(0)
    steps = np.array([wander.step(random).copy() for _ in range(4000)])
    assert steps[200:].std() == pytest.approx(0.02, rel=0.05)


def test_a_rotation_vector_is_axis_times_angle() -> None:
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(rotation_vector(turn), [0.0, 0.0, np.pi / 2], atol=1e-9)


def test_clipping_keeps_direction() -> None:
    np.testing.assert_allclose(clipped(np.array([3.0, 0.0, 4.0]), 1.0), [0.6, 0.0, 0.8])
    np.testing.assert_allclose(clipped(np.array([0.3, 0.0, 0.4]), 1.0), [0.3, 0.0, 0.4])
