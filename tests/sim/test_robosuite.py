"""The two-arm environments as their users see them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robot.errors import BadAction, InfrastructureError, StaleFrame, UnknownName
from robot.protocols import Env, Robot
from robot.types import Outcome
from sim.robosuite import TwoArmEnv
from sim.scene import Scene
from sim.tasks import GOALS

Pandas = Callable[..., Scene]


@pytest.fixture(scope="module")
def lift() -> Iterator[TwoArmEnv]:
    with TwoArmEnv("lift", time_limit_s=2.0) as env:
        yield env


@pytest.fixture
def env(lift: TwoArmEnv) -> TwoArmEnv:
    lift.reset(0)
    return lift


class _Always:
    """A goal that holds as told."""

    def __init__(self, holds: bool) -> None:
        self.holds = holds

    def success(self, env: TwoArmEnv) -> bool:
        return self.holds


def test_environment_and_robot_play_their_roles(env: TwoArmEnv) -> None:
    assert isinstance(env, Env)
    assert isinstance(env.robot, Robot)


@pytest.mark.parametrize("task", GOALS)
def test_every_task_starts_steps_and_is_judged(task: str) -> None:
    env = TwoArmEnv(task, time_limit_s=0.1)
    assert env.reset(1).name == env.goal.name
    assert env.success() is False
    for _ in range(2):
        assert env.judge(env.robot.observe()) is None
        env.robot.command(env.robot.target)
    assert env.judge(env.robot.observe()) is Outcome.TIMEOUT
    assert len(env.environment_state()) == len(env.environment_names)
    assert 0.0 <= env.potential() < 1.0


def test_names_units_and_limits_are_those_of_two_pandas(env: TwoArmEnv) -> None:
    spec = env.spec
    assert spec.robot == "Panda+Panda"
    assert spec.state_names == spec.action_names
    assert spec.state_names[6:9] == ("left_joint7", "left_gripper", "right_joint1")
    assert spec.action_units[7:9] == ("opening", "rad")
    assert (spec.action_low[3], spec.action_high[3]) == (-3.0718, -0.0698)
    assert (spec.action_low[15], spec.action_high[15]) == (0.0, 1.0)


def test_words_can_be_others_than_the_goals() -> None:
    with TwoArmEnv("lift", "lift", instruction="slide the pot to the left") as env:
        assert env.reset(0).instruction == "slide the pot to the left"
        assert env.goal.instruction == "lift the pot with both arms"
        assert env.task.name == "lift"


def test_seed_decides_the_start(env: TwoArmEnv) -> None:
    env.reset(1)
    first = env.state_hash()
    env.reset(2)
    assert env.state_hash() != first
    env.reset(1)
    assert env.state_hash() == first


def test_two_environments_agree_on_the_start(env: TwoArmEnv) -> None:
    env.reset(4)
    other = TwoArmEnv("lift", control="osc_pose")
    other.reset(4)
    assert env.state_hash() == other.state_hash()


def test_reset_leaves_the_global_generator_alone(env: TwoArmEnv) -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.randn()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    env.reset(9)
    assert np.random.randn() == expected  # noqa: NPY002


def test_clock_counts_periods_from_the_reset(env: TwoArmEnv) -> None:
    for _ in range(3):
        env.robot.command(env.robot.target)
    assert env.robot.clock.now() == pytest.approx(0.15)
    assert env.data.time == pytest.approx(0.15)
    assert env.robot.observe().time == env.robot.clock.now()
    env.reset(0)
    assert env.robot.clock.now() == 0.0


def test_arms_go_where_they_are_told(env: TwoArmEnv) -> None:
    target = env.robot.target
    target[[0, 9]] += 0.1
    target[[7, 15]] = (1.0, 0.0)
    for _ in range(30):
        env.robot.command(target)
    state = env.robot.observe().state
    np.testing.assert_allclose(state, target, atol=0.03)


def test_tools_go_where_they_are_told(pandas: Pandas) -> None:
    scene = pandas("lift", "osc_pose")
    target = scene.target.copy()
    target[2] += 0.05
    target[7] -= 0.05
    for _ in range(40):
        scene.advance(target)
    for arm, wanted in zip(scene.arms, (target[:3], target[7:10]), strict=True):
        np.testing.assert_allclose(scene.data.site_xpos[arm.site], wanted, atol=0.005)


def test_target_in_force_is_within_the_limits(env: TwoArmEnv) -> None:
    taken = env.robot.command(np.full(16, 9.0))
    np.testing.assert_array_equal(taken, env.spec.action_high)


def test_stop_makes_the_present_pose_the_target(env: TwoArmEnv) -> None:
    target = env.robot.target
    target[0] += 0.5
    for _ in range(3):
        env.robot.command(target)
    env.robot.stop()
    env.robot.stop()
    joints = [i for i, name in enumerate(env.spec.state_names) if "joint" in name]
    np.testing.assert_array_equal(env.robot.target[joints], env.robot.observe().state[joints])


@pytest.mark.parametrize(
    ("target", "message"),
    [(np.zeros(15), r"shape \(15,\).*left_joint1"), (np.full(16, np.nan), "left_joint1, left")],
)
def test_nothing_moves_on_a_bad_target(env: TwoArmEnv, target: np.ndarray, message: str) -> None:
    before = env.state_hash()
    with pytest.raises(BadAction, match=message):
        env.robot.command(target)
    assert env.state_hash() == before
    assert env.robot.clock.now() == 0.0


def test_success_needs_five_steps_in_a_row(env: TwoArmEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = _Always(True)
    monkeypatch.setattr(env, "goal", goal)
    for holds in (True, True, True, True, False, True, True, True, True):
        goal.holds = holds
        env.robot.command(env.robot.target)
        assert env.judge(env.robot.observe()) is None
    env.robot.command(env.robot.target)
    assert env.judge(env.robot.observe()) is Outcome.SUCCESS


def test_end_of_the_horizon_is_a_timeout() -> None:
    env = TwoArmEnv("lift", time_limit_s=0.15)
    for _ in range(2):
        env.robot.command(env.robot.target)
        assert env.judge(env.robot.observe()) is None
    env.robot.command(env.robot.target)
    assert env.judge(env.robot.observe()) is Outcome.TIMEOUT


def test_diverging_physics_is_the_machinerys_fault(
    env: TwoArmEnv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log to where it stands
    env.data.qvel[0] = np.nan
    mujoco.mj_step1(env.model, env.data)
    with pytest.raises(InfrastructureError, match="diverged"):
        env.robot.command(env.robot.target)
    env.reset(0)
    env.robot.command(env.robot.target)


def test_images_cannot_be_asked_for_after_a_step() -> None:
    # Run-time checks of shapes look at the first image, so it is another that stays unseen.
    with TwoArmEnv("lift", cameras={"agentview": (48, 64), "frontview": (32, 32)}) as env:
        early = env.robot.observe()
        assert early.images["frontview"].shape == (32, 32, 3)
        late = env.robot.observe()
        env.robot.command(env.robot.target)
        assert early.images["frontview"].any()
        with pytest.raises(StaleFrame):
            late.images["frontview"]


def test_privileged_state_has_a_name_for_each_entry(env: TwoArmEnv) -> None:
    state = env.environment_state()
    assert state.dtype == np.float32
    assert len(state) == len(env.environment_names)
    assert 0.0 <= env.potential() <= 1.0
    assert env.success() is False


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"task": "lfit"}, "no task is called 'lfit'; did you mean lift"),
        ({"robots": ("Panda", "Pandaa")}, "no robot is called 'Pandaa'; did you mean Panda"),
        ({"control": "osc"}, "did you mean osc_pose"),
        ({"cameras": {"agentveiw": (64, 64)}}, "did you mean agentview"),
        ({"quality": "best"}, "no image quality is called"),
        ({"goal": "lfit"}, "did you mean lift"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(words: dict[str, object], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        TwoArmEnv(**{"task": "lift", **words})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"time_limit_s": 0.0}, "time limit of 0 s"),
        ({"time_limit_s": -1.0}, "time limit of -1 s"),
        ({"time_limit_s": float("nan")}, "time limit of nan s"),
        ({"rate": 0.0}, "rate of 0 Hz"),
        ({"rate": 30.0}, "use 20, 25, 50 or 100 Hz"),
        ({"robots": ("Panda",)}, "two robots"),
    ],
)
def test_numbers_without_sense_are_refused(words: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TwoArmEnv("lift", **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_must_fit_in_32_bits(env: TwoArmEnv, seed: int) -> None:
    with pytest.raises(ValueError, match="lies outside"):
        env.reset(seed)


@pytest.mark.parametrize("robots", [("Sawyer", "UR5e"), ("IIWA", "Kinova3")])
def test_grippers_of_other_robots_open_and_close(robots: tuple[str, str]) -> None:
    scene = Scene(task="lift", robots=robots, control="joint_position", rate=20.0)
    hands = [i for i, name in enumerate(scene.spec.state_names) if name.endswith("_gripper")]
    target = scene.target.copy()
    seen: list[np.ndarray] = []
    for opening in (1.0, 0.0, 1.0):
        target[hands] = opening
        for _ in range(25):
            scene.advance(target)
        seen.append(scene.state()[hands])
    # Linkage fingers meet before their motor reaches its end.
    assert (seen[1] < 0.4).all()
    np.testing.assert_allclose([seen[0], seen[2]], 1.0, atol=0.12)


def test_peg_in_hole_has_no_grippers(pandas: Pandas) -> None:
    scene = pandas("peg", "joint_position")
    assert len(scene.spec.state_names) == len(scene.spec.action_names) == 14
    assert not any("gripper" in name for name in scene.spec.action_names)


def test_memory_stays_flat_over_200_resets(env: TwoArmEnv) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as counts:
            return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for seed in range(50):
        env.reset(seed)
    before = resident()
    for seed in range(200):
        env.reset(seed)
        env.robot.command(env.robot.target)
    assert resident() - before < 2 * 2**20
