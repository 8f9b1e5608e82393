"""Sibling labels are collected once for each seed, and survive whatever kills the collector."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot.errors import AmbidexError, DatasetError
from robot.executor import Local, Serial
from robot.siblings import SiblingReader, SiblingWriter

HERE = Path(__file__).parent
# Spawned workers import the point world by name; they inherit this path.
sys.path.insert(0, str(HERE))

from siblingworld import Foresight, collect  # noqa: E402


def test_each_decision_keeps_what_was_seen_tried_and_found(tmp_path: Path) -> None:
    told = collect(out=tmp_path, seeds=range(6), count=4, executor=Serial())
    reader = SiblingReader(tmp_path)
    labels = reader.load()
    assert told["episodes"] == 6 == len(reader.names())
    assert told["decisions"] == len(labels)
    assert labels.images["top"].shape == (len(labels), 32, 48, 3)
    assert labels.targets.shape == (len(labels), 4, 4, 2)
    assert labels.scores.shape == labels.success.shape == (len(labels), 4)
    assert sorted(set(labels.seed.tolist())) == list(range(6))
    assert labels.instructions == ("reach the green square",)
    assert (np.diff(labels.step)[np.diff(labels.seed) == 0] == 4).all()


def test_episodes_go_on_with_the_candidate_that_their_behaviour_names(tmp_path: Path) -> None:
    for behaviour in ("first", "best", "random"):
        out = tmp_path / behaviour
        collect(out=out, seeds=range(8), count=4, executor=Serial(), behaviours={behaviour: 1.0})
        labels = SiblingReader(out).load()
        best = labels.scores.argmax(axis=1)
        if behaviour == "first":
            assert (labels.choice == 0).all()
        elif behaviour == "best":
            assert (labels.choice == best).all()
        else:
            assert set(labels.choice.tolist()) == {0, 1, 2, 3}


def test_seeds_that_are_there_are_not_run_again(tmp_path: Path) -> None:
    collect(out=tmp_path, seeds=range(3), count=4, executor=Serial())
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.npy")}
    told = collect(out=tmp_path, seeds=range(5), count=4, executor=Serial())
    assert (told["kept"], told["episodes"]) == (3, 2)
    assert all(p.stat().st_mtime_ns == when for p, when in before.items())


def test_labels_made_in_another_way_are_not_mixed(tmp_path: Path) -> None:
    collect(out=tmp_path, seeds=range(1), count=4, executor=Serial())
    with pytest.raises(DatasetError, match="differing: settings"):
        collect(out=tmp_path, seeds=range(2), count=5, executor=Serial(), retries=0)


def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    collect(out=tmp_path / "one", seeds=range(4), count=4, executor=Serial())
    collect(out=tmp_path / "two", seeds=range(4), count=4, executor=Local(2))
    one, two = (SiblingReader(tmp_path / name).load() for name in ("one", "two"))
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.targets, two.targets)


def test_killed_at_any_moment_the_store_reads_and_goes_on(tmp_path: Path) -> None:
    total = 400
    for wait in (0.02, 0.11):
        process = subprocess.Popen(
            [sys.executable, str(HERE / "siblingworld.py"), str(tmp_path), str(total)],
            stdout=subprocess.DEVNULL,
        )
        begun = len(list(tmp_path.glob("[!.]*-*")))
        for _ in range(2000):
            if len(list(tmp_path.glob("[!.]*-*"))) > begun or process.poll() is not None:
                break
            time.sleep(0.005)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        there = len(SiblingReader(tmp_path).names())
        assert begun < there < total
        assert len(SiblingReader(tmp_path).load()) >= there
    told = collect(out=tmp_path, seeds=range(there + 3), count=4, executor=Serial())
    assert told["kept"] == there
    assert len(SiblingReader(tmp_path).names()) == there + 3


def test_an_episode_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    collect(out=tmp_path, seeds=range(1), count=4, executor=Serial())
    reader = SiblingReader(tmp_path)
    (name,) = reader.names()
    writer = SiblingWriter(
        tmp_path,
        spec=reader.spec,
        settings=reader.settings,
        environment_names=reader.environment_names,
    )
    with pytest.raises(DatasetError, match="already"):
        writer.append(name, reader.episode(name), notes={})
    with pytest.raises(DatasetError, match="differing: spec"):
        SiblingWriter(tmp_path, spec=replace(reader.spec, rate=10.0), settings=reader.settings)


def test_a_damaged_episode_is_named(tmp_path: Path) -> None:
    collect(out=tmp_path, seeds=range(2), count=4, executor=Serial())
    (tmp_path / "reach-00000001" / "scores.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DatasetError, match="reach-00000001"):
        SiblingReader(tmp_path).load()


def test_an_empty_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"siblings\.json is missing"):
        SiblingReader(tmp_path)


def test_what_cannot_be_ranked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AmbidexError, match="at least 2"):
        collect(out=tmp_path, seeds=range(1), count=1)
    with pytest.raises(AmbidexError, match="behaviours"):
        collect(out=tmp_path, seeds=range(1), behaviours={"worst": 1.0})


def test_an_oracle_without_an_answer_is_machinery_and_told(tmp_path: Path) -> None:
    class Blind(Foresight):
        def try_out(self, *a: object) -> object:  # type: ignore[override]
            trial = super().try_out(*a)  # type: ignore[arg-type]
            return replace(trial, scores=trial.scores * np.nan)

    with pytest.raises(AmbidexError, match="none of 1 episodes"):
        collect(out=tmp_path, seeds=range(1), count=4, oracle=Blind, executor=Serial(), retries=0)
