"""What each verb may be told: one typed schema per verb, checked before anything is built.

Nodes typed ``Any`` are built by ``_target_``. Times [s], rates [Hz].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.utils import instantiate
from omegaconf import MISSING


@dataclass(kw_only=True)  # none is frozen: Hydra merges YAML into them
class SeedsConfig:
    """Which start states: ``start``, ``start + 1`` ... ``start + count - 1``."""

    start: int = 0
    count: int = 40


@dataclass(kw_only=True)
class SceneConfig:
    """What all tasks of a run share: robots, control and images."""

    robots: list[str] = MISSING
    control: str = MISSING
    cameras: dict[str, Any] = MISSING
    quality: str = MISSING
    rate_hz: float = MISSING


@dataclass(kw_only=True)
class ArmConfig:
    """One way of running the shared policy; see ``robot.trials.Arm``."""

    count: int = 1
    value: Any = None
    policy: Any = None
    execute: int | None = None
    latency_s: float | None = None


@dataclass(kw_only=True)
class CollectConfig:
    """``ambidex collect``: episodes of a scripted expert, or of a policy, into a dataset.

    With ``splits`` each split and task is a dataset of its own, ``OUT/SPLIT/TASK``: tasks may then
    differ in their robots, and ``seeds`` is not looked at.
    """

    tasks: dict[str, Any] = MISSING
    scene: SceneConfig = field(default_factory=SceneConfig)
    expert: Any = None
    checkpoint: str | None = None
    policy: Any = None
    qualities: dict[str, float] = MISSING
    seeds: SeedsConfig = field(default_factory=SeedsConfig)
    splits: dict[str, SeedsConfig] = field(default_factory=dict[str, SeedsConfig])
    successes_only: bool = False
    latency_s: float = 0.0
    executor: Any = MISSING
    retries: int = 2
    out: str = MISSING


@dataclass(kw_only=True)
class LabelConfig:
    """``ambidex label``: candidates of a policy, each tried in copied physics."""

    tasks: dict[str, Any] = MISSING
    scene: SceneConfig = field(default_factory=SceneConfig)
    checkpoint: str | None = None
    policy: Any = MISSING
    oracle: Any = MISSING
    candidates: int = 8
    behaviours: dict[str, float] = MISSING
    seeds: SeedsConfig = field(default_factory=SeedsConfig)
    executor: Any = MISSING
    retries: int = 2
    out: str = MISSING


@dataclass(kw_only=True)
class EvaluateConfig:
    """``ambidex eval``: arms x tasks x seeds."""

    tasks: dict[str, Any] = MISSING
    scene: SceneConfig = field(default_factory=SceneConfig)
    checkpoint: str | None = None
    policy: Any = MISSING
    value: Any = None
    candidates: int = 8
    arms: dict[str, ArmConfig] = MISSING
    steer: Any = None
    executor: Any = MISSING
    seeds: SeedsConfig = field(default_factory=SeedsConfig)
    latency_s: float = 0.0
    retries: int = 2
    viewer: Any = None
    videos: int = 3
    report: bool = True
    title: str = "Evaluation"
    weights: dict[str, str] = field(default_factory=dict[str, str])
    out: str = MISSING


@dataclass(kw_only=True)
class TrainConfig:
    """``ambidex train``: a policy or a value from recorded frames."""

    datasets: list[str] = MISSING
    learner: Any = MISSING
    trainer: Any = MISSING
    resume: bool = False
    cache: str | None = None
    out: str = MISSING


@dataclass(kw_only=True)
class CompareConfig:
    """``ambidex compare A B``: paired statistics of two finished runs."""

    a: str = MISSING
    b: str = MISSING


@dataclass(kw_only=True)
class DoctorConfig:
    """``ambidex doctor``: what keeps this machine from running."""


SCHEMAS: Mapping[str, type] = {
    "collect": CollectConfig,
    "label": LabelConfig,
    "eval": EvaluateConfig,
    "train": TrainConfig,
    "compare": CompareConfig,
    "doctor": DoctorConfig,
}


def register_schemas() -> None:
    """Let every ``configs/VERB.yaml`` name its schema as ``VERB_schema``."""
    store = ConfigStore.instance()
    for verb, schema in SCHEMAS.items():
        store.store(name=f"{verb}_schema", node=schema, provider="ambidex")


@dataclass(frozen=True, slots=True)
class Factory:
    """Builds what a node describes, in whatever process calls it; picklable.

    Attributes:
        node: Plain dicts and lists with ``_target_``.
    """

    node: Mapping[str, Any]

    def __call__(self) -> Any:
        """Return a new object, or a partial where the node says so."""
        return build(self.node)


def build(node: Mapping[str, Any] | None) -> Any:
    """Return the object that a node describes; None for no node.

    Raises:
        Exception: What its constructor raised, without Hydra's wrapping.
    """
    if node is None:
        return None
    try:
        return instantiate(dict(node), _convert_="all")
    except Exception as error:
        cause = error.__cause__
        if type(error).__name__ == "InstantiationException" and cause is not None:
            raise cause from None
        raise
