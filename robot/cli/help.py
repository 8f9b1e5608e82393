"""What ``--help`` says: short, with examples that run."""

from collections.abc import Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, fields

from robot.cli.compose import options
from robot.config import SCHEMAS


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """How a verb is explained.

    Attributes:
        line: What it does, in one line.
        text: What to know.
        examples: Commands.
        groups: Folders of ``configs/`` from which ``GROUP=NAME`` picks.
        places: Names of bare words, in order.
    """

    line: str
    text: str
    examples: tuple[str, ...]
    groups: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


VERBS: Mapping[str, Verb] = {
    "collect": Verb(
        line="record episodes of a scripted expert, or of a policy, into a LeRobot dataset",
        text=(
            "Every finished episode is readable whatever happens next; the same command goes on\n"
            "with a collection that was interrupted. Qualities are shares: clean, hesitating,\n"
            "retrying, failing. With splits, each split and task is a dataset of its own,\n"
            "OUT/SPLIT/TASK, and no seed is in two splits."
        ),
        examples=(
            "ambidex collect env=[lift,slide] seeds.count=50 out=outputs/demonstrations",
            "ambidex collect experiment=demo_demonstrations out=outputs/demonstrations",
            "ambidex collect experiment=suboptimal out=outputs/suboptimal",
            "ambidex collect policy=checkpoint checkpoint=outputs/policy out=outputs/rollouts",
        ),
        groups=("experiment", "env", "scene", "expert", "policy", "executor"),
    ),
    "label": Verb(
        line="try each of a policy's candidates in copied physics: labels for a value",
        text=(
            "At each decision of an episode the policy draws candidates, and each is scored by\n"
            "what came of it. A value is trained and judged on how it ranks them."
        ),
        examples=(
            "ambidex label experiment=demo_siblings checkpoint=outputs/policy out=outputs/siblings",
        ),
        groups=("experiment", "env", "scene", "policy", "executor"),
    ),
    "train": Verb(
        line="train a policy or a value from recorded episodes",
        text=(
            "Leaves the checkpoint, a log, curves and states to resume from in OUT.\n"
            "A run that was interrupted goes on with resume=true."
        ),
        examples=(
            "ambidex train learner=policy datasets=[outputs/demonstrations] out=outputs/policy",
            "ambidex train learner=policy datasets=[outputs/demonstrations] out=outputs/policy "
            "resume=true",
            "ambidex train learner=single_horizon trainer.max_seconds=600 "
            "datasets=[outputs/demonstrations] out=outputs/single",
        ),
        groups=("experiment", "learner", "trainer"),
    ),
    "eval": Verb(
        line="run arms x tasks x seeds in simulation, journaled and paired",
        text=(
            "Leaves episodes.jsonl, summary.json and report.html in OUT. The same command goes on\n"
            "with a run that was interrupted. An arm is one way of running the policy: plain,\n"
            "random (of N), best (of N by the value), oracle (of N by trying each in copied "
            "physics)."
        ),
        examples=(
            "ambidex eval experiment=demo out=outputs/demo",
            "ambidex eval experiment=demo seeds.start=0 seeds.count=40 out=outputs/run",
            "ambidex eval checkpoint=outputs/policy/checkpoint env=[lift,slide] arms=[plain] "
            "out=outputs/plain",
            "ambidex eval experiment=demo latency_s=0.15 executor=local executor.workers=4 "
            "out=outputs/late",
        ),
        groups=("experiment", "env", "scene", "policy", "value", "arms", "executor"),
    ),
    "compare": Verb(
        line="paired statistics of two finished runs, and what differs between them",
        text="Both runs must share seeds and start states; differences are first minus second.",
        examples=("ambidex compare outputs/first outputs/second",),
        places=("a", "b"),
    ),
    "doctor": Verb(
        line="say in words what keeps this machine from running, with the remedy",
        text="Exit code 1 if something fails.",
        examples=("ambidex doctor",),
    ),
}


def overview() -> str:
    """Return what ``ambidex --help`` prints."""
    verbs = "\n".join(f"  {name:<9}{verb.line}" for name, verb in VERBS.items())
    return (
        "ambidex VERB key=value ...: value-guided manipulation with two arms\n\n"
        f"Verbs:\n{verbs}\n\n"
        "Examples:\n"
        "  ambidex eval experiment=demo out=outputs/demo\n"
        "  ambidex eval --help\n\n"
        "Options:\n"
        "  --help            explain the command, or a verb\n"
        "  --show            print the configuration that a command would use, and stop\n"
        "  --config-dir DIR  look for YAML files in DIR first, laid out like configs/\n"
        "  --version         print the version\n\n"
        "AMBIDEX_DEBUG=1 shows the traceback of an error."
    )


def teach(verb: str, folder: str | None = None) -> str:
    """Return what ``ambidex VERB --help`` prints."""
    known = VERBS[verb]
    places = "".join(f" {name.upper()}" for name in known.places)
    lines = [f"ambidex {verb}{places} key=value ...: {known.line}", "", known.text, "", "Examples:"]
    lines += [f"  {example}" for example in known.examples]
    found = {group: options(group, folder=folder) for group in known.groups}
    if found:
        lines += ["", "Choices (GROUP=NAME; several of env and arms: GROUP=[A,B]):"]
        lines += [f"  {group:<12}{', '.join(names)}" for group, names in found.items() if names]
    settings = [_setting(entry) for entry in fields(SCHEMAS[verb])]
    if settings:
        lines += ["", "Settings (--show prints them all, with those inside):"]
        lines += [f"  {setting}" for setting in settings]
    return "\n".join(lines)


def _setting(entry: object) -> str:
    name, default = getattr(entry, "name", ""), getattr(entry, "default", NO_DEFAULT)
    if default is NO_DEFAULT or default is None or default == "???":
        return str(name)
    return f"{name}={str(default).lower() if isinstance(default, bool) else default}"
