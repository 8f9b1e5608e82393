"""A critic learns which sibling is better, and says so through the same call that steers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toyworld import COUNT, SIZE, SPEC, STEPS, TEXTS, encode, make_store

from robot.errors import BadAction, CheckpointError, DatasetError, SpecMismatch, UnknownName
from robot.nn.trainer import Trainer
from robot.protocols import ActionValue, StateValue
from robot.siblings import SiblingReader
from robot.types import ActionChunk, Observation, Plan, Task
from values.critic import listwise, standardised
from values.judge import judge_value, scores_of
from values.learn import CriticLearner
from values.load import load_value
from values.neural import NeuralValue

SCENE = {"width": 32, "depth": 1, "stem": "patch", "patch": 8}
PLAN = Plan(task=Task(name="toy", instruction=TEXTS[0]))


def learner(*stores: Path, **options: object) -> CriticLearner:
    settings: dict[str, object] = {
        "steps": STEPS,
        "width": 32,
        "depth": 1,
        "scene": SCENE,
        "shift": 0,
        "encode": encode,
        **options,
    }
    return CriticLearner(siblings=stores, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trained(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    trainer = Trainer(steps=70, batch=16, rate=4e-3, warmup=10, average=0.9)
    return trainer.train(learner(store), tmp_path_factory.mktemp("run")).checkpoint


@pytest.fixture(scope="module")
def value(trained: Path) -> NeuralValue:
    return load_value(trained)


def observation(*batch: int) -> Observation:
    rng = np.random.default_rng(0)
    return Observation(
        time=np.zeros(batch),
        state=rng.normal(size=(*batch, 4)),
        images={"front": rng.integers(0, 255, (*batch, SIZE, SIZE, 3), dtype=np.uint8)},
    )


def chunk(*batch: int, count: int = 5, steps: int = STEPS) -> ActionChunk:
    targets = np.random.default_rng(1).normal(size=(count, *batch, steps, 4))
    return ActionChunk(
        start=0.0, period=0.05, targets=targets, commit=np.full((count, *batch), steps)
    )


def test_siblings_of_seeds_it_never_saw_are_ranked(trained: Path, store: Path) -> None:
    import json

    held = json.loads((trained / "config.json").read_text())["notes"]["held_out_seeds"]
    assert len(held) == 9
    report = judge_value(load_value(trained), [store], seeds=held)
    assert report.of == 9 * 8
    assert report.spearman > 0.7
    assert report.top1_gain > 0.7
    assert report.pairwise > 0.8
    assert report.auc > 0.8


def test_the_roles_of_a_value_are_kept(value: NeuralValue) -> None:
    assert isinstance(value, ActionValue)
    assert isinstance(value, StateValue)


def test_a_score_does_not_depend_on_who_is_scored_beside_it(value: NeuralValue) -> None:
    candidates = chunk()
    whole = value.score(observation(), PLAN, candidates)
    alone = [value.score(observation(), PLAN, chunk_of(candidates, i))[0] for i in range(5)]
    np.testing.assert_allclose(whole, alone, atol=1e-5)
    assert len(set(whole)) == 5


def chunk_of(candidates: ActionChunk, index: int) -> ActionChunk:
    return replace(
        candidates,
        targets=candidates.targets[index : index + 1],
        commit=candidates.commit[index : index + 1],
    )


def test_a_batch_of_observations_is_scored_as_one_by_one(value: NeuralValue) -> None:
    seen, candidates = observation(2, 3), chunk(2, 3)
    scores = value.score(seen, PLAN, candidates)
    states = value.value(seen, PLAN)
    assert scores.shape == (5, 2, 3)
    assert states.shape == (2, 3)
    one = Observation(
        time=0.0, state=seen.state[1, 2], images={"front": seen.images["front"][1, 2]}
    )
    single = replace(
        candidates, targets=candidates.targets[:, 1, 2], commit=candidates.commit[:, 1, 2]
    )
    np.testing.assert_allclose(scores[:, 1, 2], value.score(one, PLAN, single), atol=1e-5)
    np.testing.assert_allclose(states[1, 2], value.value(one, PLAN), atol=1e-5)


def test_a_longer_chunk_is_judged_by_its_head_and_a_shorter_one_held(value: NeuralValue) -> None:
    long, short = chunk(steps=9), chunk(steps=2)
    head = replace(long, targets=long.targets[:, :STEPS])
    held = replace(short, targets=short.targets[:, [0, 1, 1, 1]])
    here = observation()
    np.testing.assert_array_equal(value.score(here, PLAN, long), value.score(here, PLAN, head))
    np.testing.assert_array_equal(value.score(here, PLAN, short), value.score(here, PLAN, held))


def test_the_instruction_decides_what_is_good(tmp_path: Path) -> None:
    stores = [make_store(tmp_path / str(t), episodes=40, text=t) for t in (0, 1)]
    trainer = Trainer(steps=130, batch=24, rate=4e-3, warmup=10, average=0.9)
    run = trainer.train(learner(*stores), tmp_path / "run")
    value = load_value(run.checkpoint)
    labels = SiblingReader(stores[0]).load()[:100]
    right = scores_of(value, labels, period=0.05)
    swapped = scores_of(value, replace(labels, instructions=TEXTS[1:]), period=0.05)
    agreement = [np.corrcoef(a, b)[0, 1] for a, b in zip(right, swapped, strict=True)]
    assert np.mean(agreement) < -0.5


def test_training_goes_on_where_it_was_interrupted(store: Path, tmp_path: Path) -> None:
    def run(steps: int, out: Path, *, resume: bool) -> Mapping[str, float]:
        trainer = Trainer(steps=steps, batch=8, rate=1e-3, warmup=2, final=1.0)
        return trainer.train(learner(store), out, resume=resume).validation

    whole = run(6, tmp_path / "whole", resume=False)
    run(3, tmp_path / "parts", resume=False)
    assert run(6, tmp_path / "parts", resume=True) == pytest.approx(whole, rel=1e-4)


def test_wrong_inputs_are_named(value: NeuralValue) -> None:
    here = observation()
    with pytest.raises(BadAction, match="5 entries"):
        value.score(replace(here, state=np.zeros(5)), PLAN, chunk())
    with pytest.raises(BadAction, match="camera front, but only \\[\\]"):
        value.score(replace(here, images={}), PLAN, chunk())
    small = {"front": np.zeros((8, 8, 3), np.uint8)}
    with pytest.raises(BadAction, match=r"uint8 \(8, 8, 3\)"):
        value.score(replace(here, images=small), PLAN, chunk())
    with pytest.raises(BadAction, match="do not go with"):
        value.score(here, PLAN, replace(chunk(count=3), targets=np.zeros((3, 4, 7))))


def test_a_checkpoint_of_something_else_is_refused(trained: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other"
    shutil.copytree(trained, other)
    config = other / "config.json"
    config.write_text(config.read_text().replace("values.critic.Critic", "policies.vla.VLA"))
    with pytest.raises(CheckpointError, match="a value needs"):
        load_value(other)
    with pytest.raises(UnknownName, match="other"):
        load_value(tmp_path / "othr")


def test_labels_and_frames_of_different_robots_do_not_mix(store: Path) -> None:
    with pytest.raises(SpecMismatch, match="rate"):
        CriticLearner((), replace(SPEC, rate=10.0), siblings=[store], encode=encode)
    with pytest.raises(DatasetError, match="give a store"):
        CriticLearner(siblings=[])


@given(st.integers(0, 99), st.floats(-5, 5), st.floats(0.1, 10))
def test_standard_scores_forget_level_and_scale_but_not_order(
    seed: int, level: float, scale: float
) -> None:
    scores = torch.from_numpy(np.random.default_rng(seed).normal(size=(3, COUNT)))
    plain = standardised(scores, floor=0.0)
    moved = standardised(scores * scale + level, floor=0.0)
    torch.testing.assert_close(plain, moved, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(plain.square().mean(dim=1), torch.ones(3, dtype=plain.dtype))
    assert (plain.argsort(dim=1) == scores.argsort(dim=1)).all()


def test_siblings_that_hardly_differ_are_not_blown_up() -> None:
    scores = torch.tensor([[1.0, 1.0, 1.0 + 1e-6]])
    assert standardised(scores, floor=0.1).abs().max() < 1e-4
    assert (standardised(torch.ones(1, 3), floor=0.1) == 0).all()


@given(st.integers(0, 99))
def test_choosing_like_the_oracle_costs_nothing(seed: int) -> None:
    scores = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, COUNT)))
    assert float(listwise(scores + 3.0, scores)) == pytest.approx(0.0, abs=1e-6)
    assert float(listwise(-scores, scores)) > 0.0
