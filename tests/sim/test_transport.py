"""The transport is judged as robosuite judges it, and its expert gets there."""

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest

from robot.types import Outcome
from sim.experts import QUALITIES, Expert, Quality, expert_for
from sim.robosuite import TwoArmEnv
from sim.tasks.transport import FLOOR, bins, way

SEED = 310_001

REST = {"payload_joint0": 0.016, "trash_joint0": 0.020}
"""Height of the middle of what lies on a bin's bottom [m]: a millimetre into it."""


@pytest.fixture(scope="module")
def transport() -> Iterator[TwoArmEnv]:
    with TwoArmEnv("transport") as env:
        yield env


def put(env: TwoArmEnv, joint: str, point: np.ndarray) -> None:
    """Move the middle of an object by hand."""
    start = env.model.joint(joint).qposadr[0]
    env.data.qpos[start : start + 3] = point
    mujoco.mj_forward(env.model, env.data)


def lay(env: TwoArmEnv, joint: str, bin_middle: np.ndarray, *, up: float = 0.0) -> None:
    """Lay an object on a bin's bottom, or ``up`` above it [m]."""
    put(env, joint, bin_middle + np.array([0.0, 0.0, FLOOR + REST[joint] - 0.002 + up]))


@pytest.mark.parametrize("hammer_in", ["start", "target", "waste", "above target"])
@pytest.mark.parametrize("trash_in", ["target", "waste", "above waste"])
def test_it_is_done_when_robosuite_says_so(
    transport: TwoArmEnv, hammer_in: str, trash_in: str
) -> None:
    transport.reset(0)
    start = bins(transport)
    for joint, place in (("payload_joint0", hammer_in), ("trash_joint0", trash_in)):
        up = 0.05 if place.startswith("above") else 0.0
        lay(transport, joint, getattr(start, place.split()[-1]), up=up)
    assert transport.success() is transport.suite._check_success()
    assert transport.success() is (hammer_in == "target" and trash_in == "waste")
    assert (transport.potential() == 1.0) is transport.success()


def test_a_restored_moment_is_judged_anew(transport: TwoArmEnv) -> None:
    transport.reset(0)
    before = transport.snapshot()
    seen = bins(transport)
    lay(transport, "trash_joint0", seen.waste)
    lay(transport, "payload_joint0", seen.target)
    after = transport.snapshot()
    assert transport.success()
    transport.restore(before)
    assert not transport.success()
    with TwoArmEnv("transport") as other:
        other.restore(after)
        assert other.success()
        assert other.potential() == 1.0


def test_potential_rises_with_the_trash_on_its_way(transport: TwoArmEnv) -> None:
    transport.reset(0)
    seen, found = bins(transport), [transport.potential()]
    top = np.array([0.0, 0.0, 0.25])
    path = [seen.target + top / 2, seen.target + top, (seen.target + seen.waste) / 2 + top]
    for point in [*path, seen.waste + top, seen.waste]:
        put(transport, "trash_joint0", point)
        found.append(transport.potential())
    lay(transport, "trash_joint0", seen.waste)
    found.append(transport.potential())
    # Where the right hand is counts too, and it stays behind here.
    assert np.all(np.diff(found) > -0.05)
    assert found[-1] > found[0] + 0.15


def test_potential_rises_with_the_hammer_on_its_way(transport: TwoArmEnv) -> None:
    transport.reset(0)
    seen, found = bins(transport), list[float]()
    put(transport, "transport_start_bin_lid_joint0", np.array([-0.2, -0.45, 0.82]))
    for height in (0.0, 0.1, 0.2):
        lay(transport, "payload_joint0", seen.start, up=height)
        found.append(transport.potential())
    for share in (0.3, 0.6, 0.9):
        point = seen.start + share * (seen.target - seen.start) + np.array([0.0, 0.0, 0.2])
        put(transport, "payload_joint0", point)
        found.append(transport.potential())
    for height in (0.2, 0.1, 0.0):
        lay(transport, "payload_joint0", seen.target, up=height)
        found.append(transport.potential())
    assert found[-1] > found[0] + 0.4
    assert found[-1] < 1.0
    assert np.all(np.diff(found) > -0.01)


def test_taking_the_lid_off_is_worth_something(transport: TwoArmEnv) -> None:
    transport.reset(0)
    covered = transport.potential()
    assert bins(transport).covered
    put(transport, "transport_start_bin_lid_joint0", np.array([-0.2, -0.45, 0.82]))
    assert not bins(transport).covered
    assert transport.potential() > covered + 0.05


def test_the_way_into_a_bin_leads_over_its_rim() -> None:
    middle = np.array([0.2, 0.45, 0.876])
    beside = middle + np.array([-0.3, 0.0, FLOOR])
    above = beside + np.array([0.0, 0.0, 0.2])
    over = middle + np.array([0.0, 0.0, FLOOR + 0.2])
    lengths = [way(point, middle) for point in (beside, above, over)]
    assert lengths == pytest.approx([0.2 + 0.16 + 0.2, 0.16 + 0.2, 0.2])
    assert way(middle + np.array([0.0, 0.0, FLOOR]), middle) == 0.0


def test_its_privileged_state_has_a_name_for_each_finite_entry(transport: TwoArmEnv) -> None:
    transport.reset(3)
    state = transport.environment_state()
    names = transport.environment_names
    assert state.dtype == np.float32
    assert len(state) == len(names) == len(set(names))
    assert np.isfinite(state).all()
    found = {name: float(value) for name, value in zip(names, state, strict=True)}
    assert found["hammer_y"] == pytest.approx(bins(transport).hammer.position[1])
    assert found["target_bin_x"] == pytest.approx(-0.2, abs=0.01)


def play(env: TwoArmEnv, expert: Expert) -> tuple[Outcome, list[float], list[int]]:
    """Let the expert act to the end; return outcome, potentials and subtasks.

    Our verdict is compared with robosuite's, which is slow, in every fifth step and at the end.
    """
    potentials, subtasks = [env.potential()], [0]
    while (outcome := env.judge(env.robot.observe())) is None:
        env.robot.command(expert.perturb(expert.act()))
        potentials.append(env.potential())
        subtasks.append(expert.subtask)
        if len(potentials) % 5 == 0 or env.success():
            assert env.success() is env.suite._check_success()
    return outcome, potentials, subtasks


@pytest.fixture(scope="module")
def clean(transport: TwoArmEnv) -> tuple[Outcome, list[float], list[int]]:
    transport.reset(SEED)
    return play(transport, expert_for(transport, seed=SEED))


def test_a_clean_expert_succeeds(clean: tuple[Outcome, list[float], list[int]]) -> None:
    assert clean[0] is Outcome.SUCCESS
    assert len(clean[1]) < 300


def test_potential_hardly_ever_falls_on_the_way(
    clean: tuple[Outcome, list[float], list[int]],
) -> None:
    potentials = np.array(clean[1])
    assert np.max(np.maximum.accumulate(potentials) - potentials) < 0.03
    assert potentials[0] < 0.15
    assert potentials[-1] == 1.0
    assert potentials[:-6].max() < 1.0


def test_subtasks_come_in_order(clean: tuple[Outcome, list[float], list[int]]) -> None:
    # The trash is out before the lid lies on the table, so its step is never the one waited for.
    assert clean[2] == sorted(clean[2])
    assert set(clean[2]) == {0, 2, 3, 4}


@pytest.mark.slow
@pytest.mark.parametrize("quality", QUALITIES[1:])
def test_all_but_the_failing_expert_succeed(transport: TwoArmEnv, quality: Quality) -> None:
    transport.reset(SEED)
    expert = expert_for(transport, quality=quality, seed=SEED)
    outcome, potentials, _ = play(transport, expert)
    assert outcome is (Outcome.TIMEOUT if quality == "failing" else Outcome.SUCCESS)
    assert expert.segments
    for segment in expert.segments:
        assert 0 <= segment.start < segment.end < len(potentials)
        assert segment.end - segment.start >= 8


@pytest.mark.slow
def test_another_expert_takes_over_with_the_hammer_in_the_air(transport: TwoArmEnv) -> None:
    transport.reset(SEED)
    first = expert_for(transport, seed=SEED)
    while not bins(transport).hammer.held(1):
        transport.robot.command(first.act())
    outcome, _, _ = play(transport, expert_for(transport, seed=0))
    assert outcome is Outcome.SUCCESS
