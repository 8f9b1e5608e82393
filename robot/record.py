"""What is kept of one episode. Times [s] on the robot's clock unless said otherwise."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from robot.types import Outcome, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """How one episode went.

    Attributes:
        outcome: How it ended; ``ERROR`` is infrastructure and never counted as a failure.
        task: What was asked for.
        seed: The seed that chose the start.
        steps: Control steps taken.
        duration: Time from the first observation to the last [s].
        success_once: The goal held at some control step.
        success_at_end: The goal held at the last control step.
        time_to_success: Time of the first control step at which the goal held [s]; None if never.
        state_hash: Hash of the start state: proof that a seed was effective; empty if the
            environment cannot tell.
        inferences: Chunks that were put to use.
        latencies: Wall time of each answer of the policy [s].
        misses: Control deadlines that were missed.
        starved: Control steps without a chunk that covered them; the last target was held.
        error: What went wrong, in words; empty if nothing did.
    """

    outcome: Outcome
    task: Task
    seed: int
    steps: int
    duration: float
    success_once: bool = False
    success_at_end: bool = False
    time_to_success: float | None = None
    state_hash: str = ""
    inferences: int = 0
    latencies: tuple[float, ...] = field(default=())
    misses: int = 0
    starved: int = 0
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, ready for JSON."""
        plain = asdict(self)
        plain["outcome"] = self.outcome.value
        plain["latencies"] = list(self.latencies)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the record that ``to_dict`` wrote."""
        rest = dict(plain)
        rest["outcome"] = Outcome(rest["outcome"])
        rest["task"] = Task(**rest["task"])
        rest["latencies"] = tuple(rest["latencies"])
        return cls(**rest)
