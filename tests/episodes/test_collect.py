from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from smallworld import (
    Fragile,
    Interrupted,
    OtherEnv,
    SmallEnv,
    SmallExpert,
    Walker,
    append_nothing,
)

from robot.episodes import EpisodeReader
from robot.episodes.recorder import Recorder, demonstrate
from robot.errors import AmbidexError, DatasetError, SpecMismatch
from robot.executor import Local, Serial
from robot.jobs.collect import Collected, collect, jobs_for
from robot.types import Outcome


def run(out: Path, **how: Any) -> Collected:
    given: dict[str, Any] = {
        "tasks": {"reach": SmallEnv},
        "seeds": range(5),
        "expert": SmallExpert,
        "executor": Serial(),
        "console": Console(quiet=True),
    }
    given |= how
    if "policy" in how:
        del given["expert"]
    return collect(out=out, **given)


def by_key(root: Path) -> dict[Any, Any]:
    return {episode.key: episode for episode in EpisodeReader(root)}


def same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(
        np.array_equal(a.states, b.states)
        and np.array_equal(a.executed, b.executed)
        and np.array_equal(a.environment, b.environment)
        and all(np.array_equal(a.images[c], b.images[c]) for c in a.images)
        and a.start_hash == b.start_hash
        for a, b in ((one[key], other[key]) for key in one)
    )


def test_every_seed_task_and_quality_is_stored_once(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        tasks={"reach": SmallEnv, "touch": SmallEnv},
        seeds=range(2),
        qualities=["clean", "failing"],
    )
    keys = EpisodeReader(tmp_path).keys()
    assert Counter(keys) == Counter(
        (s, t, q) for s in (0, 1) for t in ("reach", "touch") for q in ("clean", "failing")
    )
    assert done.stored == 8
    assert done.complete


def test_shares_of_qualities_are_drawn_from_the_seed_alone() -> None:
    shares = {"clean": 0.7, "failing": 0.3}
    jobs = jobs_for(seeds=range(400), tasks=["a", "b"], qualities=shares)
    counts = Counter(job.quality for job in jobs)
    assert len(jobs) == 800
    assert 500 < counts["clean"] < 620
    again = jobs_for(seeds=range(200, 400), tasks=["a", "b"], qualities=shares)
    assert again == [job for job in jobs if job.seed >= 200]


def test_a_label_is_what_the_expert_wants_and_not_what_was_executed(tmp_path: Path) -> None:
    run(tmp_path, seeds=[1])
    episode = EpisodeReader(tmp_path).episode(0)
    # Without noise the expert asks for the goal, which the environment's state tells.
    assert np.allclose(episode.actions, episode.environment, atol=1e-6)
    noise = episode.executed - episode.actions
    assert 0.005 < noise.std() < 0.05


def test_rows_hold_what_was_there_before_the_step(tmp_path: Path) -> None:
    env, seed = SmallEnv(), 1
    task = env.reset(seed)
    start, nearness, start_hash = env.robot.place.copy(), env.potential(), env.state_hash()
    expert = SmallExpert(env, quality="clean", seed=seed)
    recorder = Recorder(env, cameras=("side",), quality="clean")
    episode, _ = demonstrate(
        env, expert, recorder, task=task, seed=seed, subtasks=env.goal.subtasks
    )
    assert np.array_equal(episode.states[0, :2], start)
    assert episode.progress is not None
    assert episode.progress[0] == pytest.approx(nearness)
    assert episode.progress[-1] < env.potential()
    assert episode.reached is not None
    assert episode.reached.tolist() == [False] * (len(episode) - 1) + [True]
    assert episode.start_hash == start_hash
    assert episode.outcome is Outcome.SUCCESS
    assert [s.kind for s in episode.setbacks] == ["pause"]


def test_only_recorded_cameras_are_kept() -> None:
    env = SmallEnv()
    task = env.reset(0)
    expert = SmallExpert(env, quality="clean", seed=0)
    episode, _ = demonstrate(env, expert, Recorder(env, cameras=("side",)), task=task, seed=0)
    assert list(episode.images) == ["side"]
    # Looked at once a row, while it could still be seen.
    assert env.robot.drawn.count("side") == len(episode)


def test_failures_are_kept_and_marked(tmp_path: Path) -> None:
    done = run(tmp_path, qualities=["clean", "failing"])
    episodes = by_key(tmp_path)
    assert not any(e.success for key, e in episodes.items() if key[2] == "failing")
    assert sum(e.success for e in episodes.values()) == done.successes > 0


def test_failures_are_left_out_by_wish_and_counted(tmp_path: Path) -> None:
    done = run(tmp_path, qualities=["clean", "failing"], successes_only=True)
    episodes = by_key(tmp_path)
    assert all(episode.success for episode in episodes.values())
    assert done.dropped == 10 - len(episodes) >= 5


def test_finished_episodes_are_not_run_again(tmp_path: Path) -> None:
    run(tmp_path / "parts", seeds=range(3))
    done = run(tmp_path / "parts", seeds=range(6))
    run(tmp_path / "once", seeds=range(6))
    assert (done.kept, done.stored) == (3, 3)
    assert same(by_key(tmp_path / "parts"), by_key(tmp_path / "once"))
    assert run(tmp_path / "parts", seeds=range(6)).stored == 0


def test_an_episode_is_the_same_whoever_runs_it(tmp_path: Path) -> None:
    run(tmp_path / "serial")
    run(tmp_path / "local", executor=Local(2))
    assert same(by_key(tmp_path / "serial"), by_key(tmp_path / "local"))


def test_a_worker_that_dies_costs_a_retry_and_no_episode(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    fragile = Fragile(tmp_path / "marks", seeds=(2,))
    done = run(tmp_path / "out", tasks={"reach": fragile}, executor=Local(1))
    run(tmp_path / "calm")
    assert (done.retries, done.stored, done.errors) == (1, 5, {})
    assert same(by_key(tmp_path / "out"), by_key(tmp_path / "calm"))


def test_an_episode_that_cannot_be_run_is_an_error_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    fragile = Fragile(tmp_path / "marks", seeds=(2,), times=9, deadly=False)
    done = run(tmp_path / "out", tasks={"reach": fragile}, retries=1)
    assert list(done.errors) == ["(2, 'reach', 'clean')"]
    assert "renderer is gone" in done.errors["(2, 'reach', 'clean')"]
    assert (done.stored, done.complete) == (4, False)
    assert run(tmp_path / "out").stored == 1


def test_interrupting_keeps_what_is_finished(tmp_path: Path) -> None:
    done = run(tmp_path, expert=Interrupted)
    assert not done.complete
    assert done.stored == len(EpisodeReader(tmp_path)) == 3
    assert run(tmp_path).kept == 3


def test_rollouts_of_a_policy_are_stored_as_such(tmp_path: Path) -> None:
    done = run(tmp_path, policy=Walker)
    episodes = by_key(tmp_path)
    assert set(episodes) == {(seed, "reach", "rollout") for seed in range(5)}
    assert done.successes == sum(e.success for e in episodes.values())
    for episode in episodes.values():
        assert np.array_equal(episode.actions, episode.executed)
        assert len(episode.images["top"]) == len(episode)


def test_a_rollout_follows_from_its_seed(tmp_path: Path) -> None:
    run(tmp_path / "a", policy=Walker, seeds=[0, 1, 2])
    run(tmp_path / "b", policy=Walker, seeds=[2, 0, 1])
    assert same(by_key(tmp_path / "a"), by_key(tmp_path / "b"))


def test_tasks_of_different_robots_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SpecMismatch, match="action_names"):
        run(tmp_path / "out", tasks={"reach": SmallEnv, "other": OtherEnv})
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_told_before_an_episode_is_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="cannot be written"):
        run(tmp_path / "file" / "out", expert=append_nothing)


def test_a_full_disk_ends_the_run_with_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, seeds=range(2))

    def full(root: Path, name: str, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("robot.episodes.writer.put", full)
    with pytest.raises(DatasetError, match=r"No space left on device.*2 finished"):
        run(tmp_path)
    monkeypatch.undo()
    assert len(EpisodeReader(tmp_path)) == 2


@pytest.mark.parametrize("both", [{}, {"expert": SmallExpert, "policy": Walker}])
def test_exactly_one_must_drive(tmp_path: Path, both: dict[str, Any]) -> None:
    with pytest.raises(AmbidexError, match="either an expert or a policy"):
        collect(out=tmp_path, tasks={"reach": SmallEnv}, seeds=[0], **both)


def test_factories_may_be_partials(tmp_path: Path) -> None:
    assert run(tmp_path, seeds=[0], expert=partial(SmallExpert)).stored == 1
