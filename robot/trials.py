"""What an evaluation runs and what comes of it: arms, trials and results.

A trial is one episode, keyed by arm, task and seed. Times [s].
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from robot.protocols import Env, Policy
from robot.types import Decision, Outcome, Spec

Key = tuple[str, str, int]
EnvFactory = Callable[[], Env]
PolicyFactory = Callable[[], Policy]
ValueFactory = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of running the shared policy.

    Attributes:
        count: Candidates among which the value chooses; 1 is the policy as it is.
        value: Makes the value that chooses, in the process that runs the episode. What it makes
            is either an object with ``score``, or a ``functools.partial`` that is called with
            ``env=`` and ``policy=`` (a value that needs the simulator).
        policy: Makes another policy than the shared one, if this arm has its own.
        execute: Steps to run of each chunk before asking again; None leaves it to the policy.
        latency_s: Time from observation to chunk [s]; None is that of the evaluation.
    """

    count: int = 1
    value: ValueFactory | None = None
    policy: PolicyFactory | None = None
    execute: int | None = None
    latency_s: float | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"an arm needs at least one candidate, found count={self.count}")
        if self.count > 1 and self.value is None:
            raise ValueError(
                f"count={self.count} candidates need a value that chooses; give the arm a value "
                "(a random one is a control) or set count to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One episode to run.

    ``film`` asks for pictures, and ``judge`` names the arm whose value scores what an unsteered
    arm does; neither changes what happens.
    """

    arm: str
    task: str
    seed: int
    film: bool = False
    judge: str = ""

    @property
    def key(self) -> Key:
        """What makes a result unique in a run."""
        return self.arm, self.task, self.seed

    def __str__(self) -> str:
        return f"{self.arm}, {self.task}, seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A look at one task before anything counts: do specs fit, do seeds set the start?"""

    task: str
    seeds: tuple[int, int]
    arms: tuple[str, ...]
    policy_spec: Spec | None = None
    policy_cameras: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"check of {self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """What was seen of one episode, for the report.

    Attributes:
        mp4: The encoded pictures.
        rate: Pictures a second.
        width, height: Of a picture [px].
        frames: Number of pictures.
    """

    mp4: bytes
    rate: float
    width: int
    height: int
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one trial ended: a line of the journal.

    Attributes:
        outcome: ``error`` is machinery or a raising policy, and is never counted as a failure.
        start: Hash of the physics state after the reset.
        steps: Control steps run.
        duration: Robot time [s].
        success_once, success_at_end: Whether the goal held at any time, and at the end.
        time_to_success: Robot time until the goal first held [s]; None if it never did.
        inferences: Chunks asked for.
        latencies: Wall time of each inference [s].
        fallbacks: How often the value did not decide, by reason.
        error: What was raised, with its kind in ``fault``: ``policy`` or ``infrastructure``.
        retries: How often the trial was begun anew after an infrastructure error.
        decisions: How each chunk was chosen; kept beside the journal, not in it.
        film: Pictures, if asked for.
    """

    arm: str
    task: str
    seed: int
    outcome: Outcome
    start: str = ""
    instruction: str = ""
    steps: int = 0
    duration: float = 0.0
    success_once: bool = False
    success_at_end: bool = False
    time_to_success: float | None = None
    inferences: int = 0
    latencies: tuple[float, ...] = ()
    fallbacks: Mapping[str, int] = field(default_factory=dict[str, int])
    error: str = ""
    fault: str = ""
    retries: int = 0
    decisions: tuple[tuple[float, Decision], ...] = ()
    film: Film | None = None

    @property
    def key(self) -> Key:
        """What makes a result unique in a run."""
        return self.arm, self.task, self.seed

    @property
    def counted(self) -> bool:
        """Whether the episode says something about the policy."""
        return self.outcome is not Outcome.ERROR

    @property
    def succeeded(self) -> bool:
        """Whether the episode was a success."""
        return self.outcome is Outcome.SUCCESS

    def to_line(self) -> dict[str, Any]:
        """Return the journal's line: everything but decisions and pictures."""
        line = {k: v for k, v in asdict(self).items() if k not in ("decisions", "film")}
        line["latencies"] = [round(v, 6) for v in self.latencies]
        return line

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """Return the result that ``to_line`` wrote; unknown entries are left out.

        Raises:
            KeyError: If an entry is missing that has no default.
        """
        names = set(cls.__dataclass_fields__) - {"decisions", "film"}
        plain = {k: v for k, v in line.items() if k in names}
        plain["outcome"] = Outcome(line["outcome"])
        plain["latencies"] = tuple(line.get("latencies", ()))
        return cls(**plain)

    def to_decision_line(self) -> dict[str, Any]:
        """Return all decisions of the episode as one line: scores, choice, latency, fallback."""
        return {
            "arm": self.arm,
            "task": self.task,
            "seed": self.seed,
            "decisions": [
                {
                    "time": round(time, 6),
                    "scores": [_number(float(s)) for s in decision.scores],
                    "choice": int(decision.choice),
                    "latency": round(float(decision.latency), 6),
                    "fallback": decision.fallback,
                }
                for time, decision in self.decisions
            ],
        }


def _number(value: float) -> float | None:
    # JSON has no NaN and no infinity; None is a score that was not given.
    return float(f"{value:.6g}") if math.isfinite(value) else None
