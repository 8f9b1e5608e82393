"""Every YAML file composes, its targets exist and take what they are given; mistakes are named."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from robot.cli import main
from robot.cli.compose import BadConfiguration, check_targets, load, options
from robot.cli.help import VERBS
from robot.config import SCHEMAS, Factory, build
from robot.errors import UnknownName

CONFIGS = Path(__file__).parents[1] / "configs"
# What a user must say before a verb can run.
NEEDED = {
    "collect": ["out=o"],
    "label": ["out=o", "checkpoint=c"],
    "train": ["out=o", "datasets=[d]"],
    "eval": ["out=o", "checkpoint=c"],
    "compare": ["a=a", "b=b"],
    "doctor": [],
}
# Which verb an option of a group is for, where the group does not tell.
EXPERIMENT_VERBS = {
    "demo": "eval",
    "demo_demonstrations": "collect",
    "demo_policy": "train",
    "demo_single_horizon": "train",
    "demo_horizons": "eval",
    "demo_language": "eval",
    "demo_siblings": "label",
    "demo_value": "train",
    "suboptimal": "collect",
}
EXTRA = {
    ("value", "critic"): ["value.path=v", "arms=[best]"],
    ("learner", "critic"): ["learner.siblings=[s]"],
    ("policy", "checkpoint"): ["checkpoint=c"],
    ("experiment", "demo_horizons"): ["weights.single=s"],
    ("experiment", "demo_value"): ["learner.siblings=[s]"],
}


def choices() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for folder in sorted(p for p in CONFIGS.iterdir() if p.is_dir() and p.name[0] != "_"):
        for path in sorted(folder.glob("*.yaml")):
            found += [(v, folder.name, path.stem) for v in verbs_of(folder.name, path.stem)]
    return found


def verbs_of(group: str, name: str) -> list[str]:
    if group == "experiment":
        return [EXPERIMENT_VERBS[name]]
    # The file is the same for every verb that has the group; the first one stands for all.
    return [verb for verb, known in VERBS.items() if group in known.groups][:1]


def test_every_group_belongs_to_a_verb_and_every_experiment_is_known() -> None:
    folders = {p.name for p in CONFIGS.iterdir() if p.is_dir() and p.name[0] != "_"}
    assert folders == {group for verb in VERBS.values() for group in verb.groups}
    assert set(options("experiment")) == set(EXPERIMENT_VERBS)


def test_verbs_schemas_files_and_helps_are_the_same() -> None:
    files = {path.stem for path in CONFIGS.glob("*.yaml")}
    assert files == set(SCHEMAS) == set(VERBS) == set(NEEDED)


@pytest.mark.parametrize("verb", NEEDED)
def test_a_verb_composes_with_what_it_needs(verb: str) -> None:
    _, plain = load(verb, NEEDED[verb])
    check_targets(plain)


@pytest.mark.parametrize(("verb", "group", "name"), choices())
def test_a_choice_composes_and_its_targets_take_their_arguments(
    verb: str, group: str, name: str
) -> None:
    several = group in ("env", "arms")
    words = [*NEEDED[verb], f"{group}=[{name}]" if several else f"{group}={name}"]
    words += EXTRA.get((group, name), [])
    if (group, name) == ("arms", "best"):
        words += ["value=critic", "value.path=v"]
    _, plain = load(verb, words)
    check_targets(plain)


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches_by_examples_that_compose(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    for example in VERBS[verb].examples:
        assert example in shown
        words = example.split()
        assert words[:2] == ["ambidex", verb]
        assert main([*words[1:], "--show"]) == 0


def test_the_overview_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown for verb in VERBS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evl"], "no verb is called 'evl'; did you mean eval"),
        (["eval", "seeds.strat=3"], "'seeds.strat'; did you mean seeds.start"),
        (["eval", "laency_s=3"], "'laency_s'; did you mean latency_s"),
        (["eval", "tasks.lift.robts=[a,b]"], "did you mean tasks.lift.robots"),
        (["eval", "arms.plain.cout=3"], "did you mean arms.plain.count"),
        (["eval", "env=lft"], "no env is called 'lft'; did you mean lift"),
        (["eval", "env=[lift,slyde]"], "no env is called 'slyde'; did you mean slide"),
        (["eval", "policy=checkpont"], "did you mean checkpoint"),
        (["eval", "experiment=dmo"], "no experiment is called 'dmo'; did you mean demo"),
        (["eval", "executor=rai"], "did you mean ray"),
        (["eval", "env=lift,peg"], "put them in brackets"),
        (["eval", "seeds.count=many", "checkpoint=c"], "Value 'many'"),
        (["eval", "checkpoint=c"], "was not told out; write: ambidex eval out="),
        (["eval", "out=o"], "was not told checkpoint"),
        (["eval", "out=o", "checkpoint=c", "arms=[best]"], "was not told value"),
        (["eval", "checkpoint=a=b"], "quote values"),
        (["eval", "run"], "'run' is no setting"),
        (["eval", "--versoin"], "did you mean --version"),
        (["eval", "--config-dir", "nowhere"], "is no folder"),
        (["train", "out=o", "datasets=[d]", "learner=diffuson"], "did you mean diffusion"),
        (["compare", "a"], "was not told b"),
        (["doctor", "fast=true"], "no setting of doctor is called 'fast'"),
    ],
)
def test_a_mistake_is_one_clear_line_and_builds_nothing(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert "Traceback" not in told.err


def test_debugging_shows_where_an_error_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBIDEX_DEBUG", "1")
    with pytest.raises(UnknownName):
        main(["evl"])


def test_an_argument_that_a_class_does_not_take_is_named_with_its_place() -> None:
    node = {"tasks": {"lift": {"_target_": "sim.robosuite.TwoArmEnv", "task": "lift", "rob": 1}}}
    with pytest.raises(UnknownName, match=r"tasks\.lift.*'rob'; did you mean robots"):
        check_targets(node)


def test_a_class_that_does_not_exist_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"sim\.robosuite\.TwoArmEnv"):
        check_targets({"env": {"_target_": "sim.robosuite.TwoArmEnf"}})


def test_a_module_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadConfiguration, match=r"cannot import policies\.steering\.BestOf"):
        check_targets({"steer": {"_target_": "policies.steering.BestOf"}})


def test_an_argument_that_is_missing_is_named() -> None:
    with pytest.raises(BadConfiguration, match="also needs task"):
        check_targets({"env": {"_target_": "sim.robosuite.TwoArmEnv"}})


def test_ones_own_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    mine = "# @package _global_\nseeds:\n  start: 7\ncheckpoint: mine\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(mine)
    composed, _ = load("eval", ["experiment=mine", "out=o"], folder=tmp_path)
    assert OmegaConf.select(composed, "seeds.start") == 7
    assert "mine" in options("experiment", folder=tmp_path)
    with pytest.raises(UnknownName, match="did you mean mine"):
        load("eval", ["experiment=mein", "out=o"], folder=tmp_path)


def test_a_factory_builds_anew_each_time_and_survives_a_process_border() -> None:
    import pickle

    factory = Factory({"_target_": "robot.clock.StepClock"})
    again = pickle.loads(pickle.dumps(factory))
    assert factory() is not factory()
    assert type(again()) is type(factory())


def test_what_a_constructor_raises_is_raised_without_wrapping() -> None:
    with pytest.raises(ValueError, match="give a period > 0"):
        build({"_target_": "robot.clock.WallClock", "period": 0.0})


def test_compare_takes_two_folders_as_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "runs/a=1", "runs/b c", "--show"]) == 0
    assert "a: runs/a=1" in capsys.readouterr().out
