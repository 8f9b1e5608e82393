"""Two runs are compared on the seeds they share, or not at all."""

import json
from io import StringIO
from pathlib import Path

import pytest
from pointworld import ARMS
from rich.console import Console
from test_evaluate import run

from robot.bench import SeedsNotEffective
from robot.errors import AmbidexError, UnknownName
from robot.jobs.compare import compare
from robot.trials import Arm


def test_two_runs_are_paired_on_common_seeds_as_two_arms_of_one_run_are(tmp_path: Path) -> None:
    run(tmp_path / "a", arms={"best": ARMS["best"]}, seeds=range(10))
    run(tmp_path / "b", arms={"plain": Arm()}, seeds=range(4, 14))
    both = run(tmp_path / "c", arms={"best": ARMS["best"], "plain": Arm()}, seeds=range(4, 10))
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.arms[0].pair == both.summary["pairs"]["best-plain"]
    assert found.alone == (4, 4)
    assert found.arms[0].first == "a/best"


def test_what_differs_in_the_fingerprints_is_named(tmp_path: Path) -> None:
    run(tmp_path / "a", configuration={"policy": {"noise": 0.9}})
    run(tmp_path / "b", configuration={"policy": {"noise": 0.5}})
    console = Console(file=StringIO(), width=200)
    found = compare(tmp_path / "a", tmp_path / "b", console=console)
    assert found.differences == ["configuration.policy.noise: 0.9 against 0.5"]
    assert "configuration.policy.noise" in console.file.getvalue()  # type: ignore[attr-defined]
    assert [a.pair["difference"] for a in found.arms] == [0.0] * 3


def test_runs_that_start_differently_on_a_seed_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name, arms={"plain": Arm()})
    path = tmp_path / "b" / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["start"] = "f" * 64
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(SeedsNotEffective, match=f"seed {lines[2]['seed']}"):
        compare(tmp_path / "a", tmp_path / "b")


def test_an_unknown_run_or_arm_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    run(tmp_path / "first", arms={"plain": Arm()})
    with pytest.raises(UnknownName, match=r"did you mean .*first"):
        compare(tmp_path / "frist", tmp_path / "first")
    with pytest.raises(UnknownName, match="did you mean plain"):
        compare(tmp_path / "first", tmp_path / "first", arms={"plian": "plain"})


def test_runs_without_a_common_seed_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "a", arms={"plain": Arm()}, seeds=range(3))
    run(tmp_path / "b", arms={"plain": Arm()}, seeds=range(3, 6))
    with pytest.raises(AmbidexError, match="share no seed"):
        compare(tmp_path / "a", tmp_path / "b")
