from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from policies.diffusion import Diffusion
from policies.flow import FlowMatching, Objective
from policies.horizons import Consensus, Horizons
from policies.learn import PolicyLearner
from policies.load import load_policy
from policies.neural import NeuralPolicy
from policies.regression import Regression
from robot.checkpoint import read_cameras, read_spec
from robot.errors import BadAction, CheckpointError, UnknownName
from robot.types import ActionChunk, Observation, Plan, Spec, Task

SMALL = {"scene": {"width": 32, "depth": 1}, "expert": {"width": 32, "depth": 1}}
MIXED = Horizons(lengths=(2, 4, 8))
PLAN = Plan(task=Task(name="toy", instruction="move to the blob"))


def letters(sentences: Sequence[str]) -> np.ndarray:
    """Stand in for the sentence encoder: letter counts."""
    counts = [[s.count(chr(97 + i % 26)) + 0.1 * i for i in range(384)] for s in sentences]
    return np.asarray(counts, dtype=np.float32) / 10


def learner(
    frames: Any, spec: Spec, *, objective: Objective | None = None, **changes: Any
) -> PolicyLearner:
    chosen = {
        "horizons": MIXED,
        "commit": 4,
        "precision": "float32",
        "encode": letters,
        **SMALL,
        **changes,
    }
    made = PolicyLearner([frames], spec, objective=objective, **chosen)
    with torch.no_grad():  # fresh gates are closed; open them so that everything matters
        for name, p in made.module.named_parameters():
            if "modulate" in name:
                p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1)) * 0.2)
    return made


def saved(tmp_path: Path, frames: Any, spec: Spec, **changes: Any) -> Path:
    made = learner(frames, spec, **changes)
    return made.save(tmp_path / "run" / "checkpoint", made.module.state_dict(), {})


def observation(frames: Any, rows: Any) -> Observation:
    return Observation(
        time=np.asarray(rows, dtype=np.float64) * 0.05,
        state=frames.states[rows],
        images={name: pixels[rows] for name, pixels in frames.images.items()},
    )


def proposed(policy: NeuralPolicy, seen: Observation, count: int) -> ActionChunk:
    policy.reset(3)
    return policy.propose(seen, PLAN, count)


@pytest.mark.parametrize("objective", [FlowMatching(steps=3), Regression(spread=0.1), Diffusion()])
def test_first_candidate_is_the_same_whatever_the_count(
    tmp_path: Path, frames: Any, spec: Spec, objective: Objective
) -> None:
    policy = load_policy(saved(tmp_path, frames, spec, objective=objective))
    seen = observation(frames, 5)
    one, many = proposed(policy, seen, 1), proposed(policy, seen, 7)
    assert many.targets.shape == (7, 8, 4)
    np.testing.assert_allclose(one.targets[0], many.targets[0], atol=1e-5)
    assert np.abs(many.targets[1:] - many.targets[0]).max() > 1e-3


def test_later_calls_do_not_depend_on_how_many_candidates_were_asked_before(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    policy = load_policy(saved(tmp_path, frames, spec))
    seen = observation(frames, 5)
    proposed(policy, seen, 1)
    after_one = policy.propose(seen, PLAN, 1)
    proposed(policy, seen, 6)
    after_six = policy.propose(seen, PLAN, 1)
    np.testing.assert_allclose(after_one.targets, after_six.targets, atol=1e-5)


def test_a_batch_gives_each_moment_what_it_gets_beside_others(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    policy = load_policy(saved(tmp_path, frames, spec), commit=Consensus(least=2, active=1))
    both = proposed(policy, observation(frames, [5, 40]), 3)
    first = proposed(policy, observation(frames, [5]), 3)
    assert both.targets.shape == (3, 2, 8, 4)
    assert both.commit.shape == (3, 2)
    np.testing.assert_allclose(both.targets[:, :1], first.targets, atol=1e-5)
    np.testing.assert_array_equal(both.commit[:, :1], first.commit)


def test_what_is_saved_and_loaded_proposes_the_same(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    made = learner(frames, spec)
    folder = made.save(tmp_path / "checkpoint", made.module.state_dict(), {})
    before = NeuralPolicy(made.module, spec=spec, instructions=made.sampler.instructions, commit=4)
    seen = observation(frames, 9)
    np.testing.assert_allclose(
        proposed(before, seen, 2).targets, proposed(load_policy(folder), seen, 2).targets, atol=1e-6
    )


def test_half_precision_on_disk_changes_targets_only_a_little(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    whole = load_policy(saved(tmp_path / "a", frames, spec))
    half = load_policy(saved(tmp_path / "b", frames, spec, precision="float16"))
    seen = observation(frames, 9)
    apart = np.abs(proposed(whole, seen, 1).targets - proposed(half, seen, 1).targets).max()
    assert 0 < apart < 5e-3


def test_targets_stay_within_the_spec_and_what_was_clipped_is_counted(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    folder = saved(tmp_path, frames, spec)
    policy = load_policy(folder, temperature=30.0)
    chunk = proposed(policy, observation(frames, 5), 4)
    assert (chunk.targets >= np.asarray(spec.action_low)).all()
    assert (chunk.targets <= np.asarray(spec.action_high)).all()
    assert 0 < policy.clipped < policy.asked


def test_no_temperature_makes_all_candidates_equal(tmp_path: Path, frames: Any, spec: Spec) -> None:
    policy = load_policy(saved(tmp_path, frames, spec), temperature=0.0)
    chunk = proposed(policy, observation(frames, 5), 3)
    np.testing.assert_allclose(chunk.targets[1:], chunk.targets[:-1], atol=1e-6)


def test_an_unseen_instruction_is_embedded_when_it_comes(
    tmp_path: Path, frames: Any, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.neural.embed", letters)
    policy = load_policy(saved(tmp_path, frames, spec))
    seen = observation(frames, 5)
    known = proposed(policy, seen, 1)
    policy.reset(3)
    other = policy.propose(seen, Plan(task=Task(name="x", instruction="wave at the camera")), 1)
    assert np.abs(known.targets - other.targets).max() > 1e-5


def test_a_missing_camera_is_named(tmp_path: Path, frames: Any, spec: Spec) -> None:
    policy = load_policy(saved(tmp_path, frames, spec))
    blind = Observation(time=0.0, state=frames.states[0], images={})
    with pytest.raises(BadAction, match="camera front"):
        policy.propose(blind, PLAN, 1)


def test_a_state_that_is_not_finite_is_refused_by_name(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    policy = load_policy(saved(tmp_path, frames, spec))
    state = frames.states[0].copy()
    state[2] = np.nan
    seen = observation(frames, 0)
    with pytest.raises(BadAction, match="right_joint1"):
        policy.propose(Observation(time=0.0, state=state, images=seen.images), PLAN, 1)


def test_missing_and_unexpected_weights_are_refused_by_name(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    folder = saved(tmp_path, frames, spec)
    weights = load_file(folder / "model.safetensors")
    weights["expert.extra"] = weights.pop("expert.out.weight")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(CheckpointError) as caught:
        load_policy(folder)
    assert "expert.out.weight is missing" in str(caught.value)
    assert "expert.extra is unexpected" in str(caught.value)


def test_a_checkpoint_of_another_class_is_refused(tmp_path: Path, frames: Any, spec: Spec) -> None:
    folder = saved(tmp_path, frames, spec)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("policies.vla.VLA", "os.system"))
    with pytest.raises(CheckpointError, match=r"os\.system"):
        load_policy(folder)


def test_a_wrong_path_offers_the_nearest_checkpoints(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    folder = saved(tmp_path, frames, spec)
    with pytest.raises(UnknownName, match=str(folder)):
        load_policy(tmp_path / "run" / "chekpoint")


def test_spec_and_cameras_are_read_without_building(
    tmp_path: Path, frames: Any, spec: Spec
) -> None:
    folder = saved(tmp_path, frames, spec, cameras=["wrist"])
    (folder / "model.safetensors").write_bytes(b"")
    assert read_spec(folder).differences(spec) == []
    assert read_cameras(folder) == ("wrist",)
    assert read_spec(folder).differences(replace(spec, rate=10.0)) == ["rate: 20.0 against 10.0"]


def test_the_auxiliary_head_is_left_behind(tmp_path: Path, frames: Any, spec: Spec) -> None:
    made = learner(frames, spec)
    assert made.module.privileged is not None
    folder = made.save(tmp_path / "checkpoint", made.module.state_dict(), {})
    assert not [k for k in load_file(folder / "model.safetensors") if "privileged" in k]
    assert load_policy(folder).model.privileged is None


def test_failed_episodes_are_not_imitated(frames: Any, spec: Spec) -> None:
    marked = SimpleNamespace(**vars(frames), success=frames.episode % 3 == 0)
    rows = learner(marked, spec, held_out=0.0).sampler.training[:, 1]
    assert set(marked.episode[rows].tolist()) == {0, 3, 6, 9}
    rows = learner(marked, spec, held_out=0.0, episodes="all").sampler.training[:, 1]
    assert len(rows) == len(marked.episode)


def test_training_with_the_auxiliary_head_needs_no_object_poses_everywhere(
    frames: Any, spec: Spec
) -> None:
    blind = SimpleNamespace(**{**vars(frames), "environment": None})
    batch = learner(frames, spec).batch(np.random.default_rng(0), 4, held_out=False)
    made = learner(frames, spec)
    batch["environment"][:, 0] = float("nan")
    assert bool(made.module(**batch)["loss"].isfinite())
    without = learner(blind, spec)
    assert without.module.privileged is None
    plain = without.batch(np.random.default_rng(0), 4, held_out=False)
    assert bool(without.module(**plain)["loss"].isfinite())
