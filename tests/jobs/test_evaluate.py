"""An evaluation is complete, paired, proven and told apart from its machinery's faults."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pointworld import (
    ARMS,
    SPEC,
    Broken,
    Choose,
    CrashOnce,
    Fading,
    Impatient,
    PointEnv,
    Wander,
    Wide,
    blind_env,
    drifting_env,
)
from rich.console import Console

from robot.bench import SeedsNotEffective
from robot.errors import AmbidexError, SpecMismatch
from robot.executor import Local, Serial
from robot.jobs.evaluate import Evaluation, evaluate
from robot.journal import JournalError, read_lines
from robot.ledger import ResumeRefused
from robot.trials import Arm


def run(out: Path, **changes: Any) -> Evaluation:
    settings: dict[str, Any] = {
        "tasks": {"reach": PointEnv},
        "policy": Wander,
        "arms": ARMS,
        "seeds": range(6),
        "steer": Choose,
        "executor": Serial(),
        "report": False,
        "console": Console(file=StringIO()),
    }
    return evaluate(out=out, **(settings | changes))


def outcomes(out: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Everything a journal says except wall times, which no two runs share."""
    lines = read_lines(out / "episodes.jsonl")
    keys = [(line["arm"], line["task"], line["seed"]) for line in lines]
    assert len(set(keys)) == len(keys)
    kept = [{k: v for k, v in line.items() if k not in ("latencies", "retries")} for line in lines]
    return dict(zip(keys, kept, strict=True))


def test_every_arm_runs_every_seed_once(tmp_path: Path) -> None:
    run(tmp_path)
    assert set(outcomes(tmp_path)) == {(a, "reach", s) for a in ARMS for s in range(6)}


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    run(tmp_path / "serial")
    run(tmp_path / "local", executor=Local(2))
    assert outcomes(tmp_path / "serial") == outcomes(tmp_path / "local")


def test_a_summary_has_rates_pairs_errors_and_fingerprint(tmp_path: Path) -> None:
    run(tmp_path, seeds=range(12), configuration={"policy": {"noise": 0.9}})
    summary = json.loads((tmp_path / "summary.json").read_text())
    lines = outcomes(tmp_path)
    k = sum(lines["best", "reach", s]["outcome"] == "success" for s in range(12))
    best, plain = summary["arms"]["best"], summary["arms"]["plain"]
    assert (best["k"], best["n"], best["rate"]) == (k, 12, k / 12)
    pair = summary["pairs"]["best-plain"]
    assert pair["difference"] == pytest.approx(best["rate"] - plain["rate"])
    assert pair["interval"][0] < pair["difference"] < pair["interval"][1]
    assert 0.0 < pair["p"] < 1.0
    turned = summary["pairs"]["plain-best"]
    assert turned["difference"] == -pair["difference"]
    assert summary["errors"] == 0
    assert summary["fingerprint"]["configuration"]["policy"] == {"noise": 0.9}
    assert summary["fingerprint"]["specs"]["reach"]["robot"] == "point"
    assert any("100 paired seeds" in note for note in summary["notes"])


def test_all_candidates_scores_are_logged(tmp_path: Path) -> None:
    run(tmp_path, seeds=[3])
    logged = {line["arm"]: line["decisions"] for line in read_lines(tmp_path / "decisions.jsonl")}
    assert set(logged) == {"best", "out"}
    for decision in logged["out"]:
        assert len(decision["scores"]) == 8
        assert decision["scores"][decision["choice"]] == max(decision["scores"])


def test_a_run_that_is_complete_runs_nothing_again(tmp_path: Path) -> None:
    run(tmp_path)
    before = (tmp_path / "episodes.jsonl").read_bytes()
    again = run(tmp_path)
    assert (tmp_path / "episodes.jsonl").read_bytes() == before
    assert again.summary["arms"]["best"]["n"] == 6


def test_more_seeds_go_on_where_fewer_ended(tmp_path: Path) -> None:
    run(tmp_path / "grown", seeds=range(3))
    run(tmp_path / "grown", seeds=range(6))
    run(tmp_path / "whole", seeds=range(6))
    assert outcomes(tmp_path / "grown") == outcomes(tmp_path / "whole")


def test_a_half_written_last_line_is_dropped_and_its_episode_run_again(tmp_path: Path) -> None:
    run(tmp_path)
    whole = outcomes(tmp_path)
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    run(tmp_path)
    assert outcomes(tmp_path) == whole


def test_an_infrastructure_error_is_tried_again_on_a_fresh_bench(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    broken = CrashOnce(tmp_path / "marks", seeds=(2, 4))
    ended = run(tmp_path / "out", tasks={"reach": broken})
    run(tmp_path / "sound")
    assert outcomes(tmp_path / "out") == outcomes(tmp_path / "sound")
    assert ended.summary["retries"] == 2
    assert ended.summary["errors"] == 0


def test_a_dead_worker_is_replaced_and_its_episode_run_again(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    deadly = CrashOnce(tmp_path / "marks", seeds=(3,), deadly=True)
    ended = run(tmp_path / "out", tasks={"reach": deadly}, executor=Local(1))
    run(tmp_path / "sound")
    assert outcomes(tmp_path / "out") == outcomes(tmp_path / "sound")
    assert ended.summary["retries"] == 1


def test_an_error_that_stays_is_counted_apart_and_never_as_a_failure(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    broken = CrashOnce(tmp_path / "marks", seeds=(4,), times=99)
    summary = run(tmp_path / "out", tasks={"reach": broken}, arms={"plain": Arm()}).summary
    arm = summary["arms"]["plain"]
    assert (arm["n"], arm["errors"], summary["errors"]) == (5, 1, 1)
    assert "renderer is gone" in summary["error_list"][0]["error"]
    assert summary["error_list"][0]["fault"] == "infrastructure"


def test_an_episode_that_was_an_error_runs_again_on_resume(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    broken = CrashOnce(tmp_path / "marks", seeds=(4,), times=3)
    arms = {"plain": Arm()}
    assert run(tmp_path / "out", tasks={"reach": broken}, arms=arms).summary["errors"] == 1
    summary = run(tmp_path / "out", tasks={"reach": broken}, arms=arms).summary
    assert (summary["errors"], summary["arms"]["plain"]["n"]) == (0, 6)


def test_a_raising_policy_is_an_error_of_the_policy_and_is_not_tried_again(tmp_path: Path) -> None:
    summary = run(tmp_path, policy=Broken, arms={"plain": Arm()}, seeds=range(4)).summary
    assert summary["arms"]["plain"]["rate"] is None
    assert (summary["errors"], summary["retries"]) == (4, 0)
    assert {e["fault"] for e in summary["error_list"]} == {"policy"}
    assert "weights are missing" in summary["error_list"][0]["error"]


def test_a_run_of_nothing_but_errors_ends_early_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(AmbidexError, match="weights are missing"):
        run(tmp_path, policy=Broken, arms={"plain": Arm()}, seeds=range(100))
    assert len(read_lines(tmp_path / "episodes.jsonl")) == 12


def test_a_policy_of_another_robot_is_refused_with_the_entries_that_differ(tmp_path: Path) -> None:
    with pytest.raises(SpecMismatch, match=r"state_names\[1\]: 'z' against 'y'"):
        run(tmp_path, policy=Wide)
    assert read_lines(tmp_path / "episodes.jsonl") == []


def test_a_refusal_travels_from_a_worker_with_its_type_and_differences(tmp_path: Path) -> None:
    with pytest.raises(SpecMismatch) as caught:
        run(tmp_path, policy=Wide, executor=Local(1))
    assert caught.value.differences == ["state_names[1]: 'z' against 'y'"]


def test_a_checkpoint_that_does_not_fit_is_refused_before_the_policy_is_built(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    spec = SPEC.to_dict() | {"rate": 10.0}
    (folder / "spec.json").write_text(json.dumps(spec))
    for name in ("config.json", "statistics.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").touch()

    def never() -> Wander:
        raise AssertionError("the policy was built")

    with pytest.raises(SpecMismatch, match=r"rate: 10\.0 against 20\.0"):
        run(tmp_path / "out", policy=never, checkpoint=folder)


def test_seeds_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SeedsNotEffective, match="seeds 0 and 1 give the same start"):
        run(tmp_path, tasks={"reach": blind_env})
    assert not (tmp_path / "summary.json").exists()


def test_a_reset_that_does_not_repeat_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeedsNotEffective, match="two different start states"):
        run(tmp_path, tasks={"reach": drifting_env})


def test_arms_that_start_differently_on_one_seed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SeedsNotEffective, match="arms 'plain' and 'out' began in different"):
        run(tmp_path, tasks={"reach": Fading})
    assert not (tmp_path / "summary.json").exists()


def test_resuming_with_another_configuration_is_refused_with_what_differs(tmp_path: Path) -> None:
    run(tmp_path, configuration={"policy": {"noise": 0.9}})
    with pytest.raises(ResumeRefused, match=r"configuration.policy.noise: 0.9 against 0.5"):
        run(tmp_path, configuration={"policy": {"noise": 0.5}})
    run(tmp_path, configuration={"policy": {"noise": 0.9}, "executor": {"workers": 7}})


def test_resuming_with_other_weights_is_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    run(tmp_path / "out", weights={"policy": weights})
    weights.write_bytes(b"two")
    with pytest.raises(ResumeRefused, match=r"weights\.policy\.model\.safetensors"):
        run(tmp_path / "out", weights={"policy": weights})


def test_ctrl_c_keeps_what_was_finished_and_the_rest_follows_later(tmp_path: Path) -> None:
    ended = run(tmp_path / "cut", policy=Impatient(at=7))
    assert not ended.complete
    assert len(read_lines(tmp_path / "cut" / "episodes.jsonl")) == 7
    run(tmp_path / "cut")
    run(tmp_path / "whole")
    assert outcomes(tmp_path / "cut") == outcomes(tmp_path / "whole")


def test_latency_is_a_parameter_that_changes_what_happens(tmp_path: Path) -> None:
    run(tmp_path / "prompt", arms={"plain": Arm()})
    run(tmp_path / "late", arms={"plain": Arm()}, latency_s=0.3)
    assert outcomes(tmp_path / "prompt") != outcomes(tmp_path / "late")


def test_an_unwritable_out_folder_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="choose another out folder"):
        run(tmp_path / "file" / "out")


def test_an_arm_with_candidates_needs_a_value() -> None:
    with pytest.raises(ValueError, match="a value that chooses"):
        Arm(count=8)


def test_the_report_is_one_file_with_films_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    ended = run(tmp_path, report=True, videos=2)
    assert ended.report is not None
    page = ended.report.read_text()
    assert page.count("<video") == 2 * len(ARMS)
    assert "http" not in page
    assert "src='data:video/mp4;base64," in page
    assert "95 % interval" in page
    assert len(outcomes(tmp_path)) == 6 * len(ARMS)


def test_no_evidence_is_printed_as_a_result(tmp_path: Path) -> None:
    arms = {"plain": Arm(), "out": ARMS["out"]}
    ended = run(tmp_path, arms=arms, report=True, videos=0, seeds=range(10))
    assert ended.report is not None
    assert "No evidence that steering helps" in ended.report.read_text()
