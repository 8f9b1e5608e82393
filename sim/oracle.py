"""The oracle: every candidate chunk is tried in the simulator before one of them runs.

Axes: ``n`` candidates, ``t`` steps, ``d`` action dimensions, ``b`` branches (tries of candidates).
It says how much there is to gain by choosing well, and labels siblings for learned values.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from robot.errors import BadAction
from robot.protocols import Policy, Robot
from robot.siblings import Trial
from robot.types import ActionChunk, Observation, Outcome, Plan


class Simulation(Protocol):
    """What the oracle needs of an environment beyond ``Env``: moments to go back to."""

    @property
    def robot(self) -> Robot:
        """The robot in it."""
        ...

    def judge(self, observation: Observation) -> Outcome | None:
        """Return how the episode ended, or None while it goes on."""
        ...

    def potential(self) -> float:
        """Return the progress in [0, 1]."""
        ...

    def snapshot(self) -> Any:
        """Return a copy of this moment."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Put a moment back."""
        ...


class Oracle:
    """An action value that tries each candidate and then goes on with the policy's own chunks.

    A try ends with success, with the episode or with the look-ahead. Its score is
    ``1 + share of the look-ahead left`` after a success and the progress in [0, 1] else, so that
    success and the time to it come first. Environment, clock and the policy's randomness are left
    as they were: the oracle has a policy of its own, a copy.

    Args:
        env: The environment in which the policy acts.
        policy: Who proposes; copied.
        steps: How many targets of a chunk a try follows; None follows each chunk's commit.
        continuations: How many chunks of the policy follow the candidate.
        repeats: Tries of each candidate, with other continuations; scores are their mean.

    Raises:
        ValueError: If a number makes no sense.
    """

    def __init__(
        self,
        env: Simulation,
        policy: Policy,
        *,
        steps: int | None = 8,
        continuations: int = 2,
        repeats: int = 1,
    ) -> None:
        if (steps is not None and steps < 1) or continuations < 0 or repeats < 1:
            raise ValueError(
                f"an oracle with steps={steps}, continuations={continuations}, repeats={repeats} "
                "tries nothing; give steps >= 1, continuations >= 0 and repeats >= 1"
            )
        self.steps, self.continuations, self.repeats = steps, continuations, repeats
        self._env = env
        self._policy = copy.deepcopy(policy)
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """Let all continuations from here on follow from ``seed``."""
        self._rng = np.random.default_rng([seed, 0x0AC1E])

    def score(
        self, observation: Observation, plan: Plan, chunk: ActionChunk
    ) -> Float[np.ndarray, " n"]:
        """Return one score for each candidate; NaN for one that no robot may follow."""
        return self.try_out(observation, plan, chunk).scores

    def try_out(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> Trial:
        """Return what comes of each candidate.

        Raises:
            InfrastructureError: If the physics diverges.
        """
        env = self._env
        # Who looks at this moment later must still see it: the physics is about to move on.
        for name in observation.images:
            _ = observation.images[name]
        self._policy.reset(int(self._rng.integers(2**31)))
        here, before = env.snapshot(), env.potential()
        branches = [_Branch(at=here) for _ in chunk.targets]
        try:
            self._follow(branches, chunk.targets, np.asarray(chunk.commit), look=False)
            branches = [copy.copy(b) for b in branches for _ in range(self.repeats)]
            for left in range(self.continuations, 0, -1):
                going = [b for b in branches if b.over is None]
                if not going:
                    break
                self._look(going)
                seen = Observation.stack([b.seen for b in going if b.seen is not None])
                own = self._policy.propose(seen, plan, 1)
                commit = np.broadcast_to(np.asarray(own.commit)[0], (len(going),))
                self._follow(going, own.targets[0], commit, look=left > 1)
        finally:
            env.restore(here)
        steps = chunk.targets.shape[1] if self.steps is None else self.steps
        ahead = min(steps, chunk.targets.shape[1]) * (1 + self.continuations)
        return self._summary(branches, before=before, ahead=ahead)

    def _follow(
        self,
        branches: "Sequence[_Branch]",
        targets: Float[np.ndarray, "b t d"],
        commit: Any,
        *,
        look: bool,
    ) -> None:
        """Move each branch on by the head of its chunk."""
        env = self._env
        for branch, chunk, trusted in zip(branches, targets, commit, strict=True):
            env.restore(branch.at)
            try:
                for target in chunk[: int(trusted) if self.steps is None else self.steps]:
                    env.robot.command(target)
                    branch.steps += 1
                    branch.over = env.judge(env.robot.observe())
                    if branch.over is not None:
                        break
            except BadAction:
                branch.over = Outcome.FAILURE
                branch.valid = False
            branch.at = env.snapshot()
            branch.potential = env.potential()
            branch.seen = self._see() if look and branch.over is None else None

    def _look(self, branches: "Sequence[_Branch]") -> None:
        """Let branches that have not looked yet do so; tries of one candidate share a picture."""
        seen: dict[int, Observation] = {}
        for branch in branches:
            if branch.seen is None:
                if id(branch.at) not in seen:
                    self._env.restore(branch.at)
                    seen[id(branch.at)] = self._see()
                branch.seen = seen[id(branch.at)]

    def _see(self) -> Observation:
        """Return this moment with the images that the policy looks at."""
        now = self._env.robot.observe()
        names = getattr(self._policy, "cameras", None)
        images = {n: now.images[n] for n in (now.images if names is None else names)}
        return Observation(time=now.time, state=now.state, images=images)

    def _summary(self, branches: "Sequence[_Branch]", *, before: float, ahead: int) -> Trial:
        success = np.array([b.over is Outcome.SUCCESS for b in branches])
        steps = np.array([float(b.steps) for b in branches])
        potential = np.array([b.potential for b in branches])
        scores = np.where(success, 2.0 - steps / ahead, np.clip(potential, 0.0, 1.0))
        scores[[not b.valid for b in branches]] = np.nan

        def mean(values: Any) -> Float[np.ndarray, " n"]:
            return np.asarray(values, dtype=np.float64).reshape(-1, self.repeats).mean(axis=1)

        return Trial(
            scores=mean(scores),
            success=mean(success),
            steps=mean(np.where(success, steps, ahead)),
            potential=mean(potential),
            before=before,
        )


@dataclass(slots=True)
class _Branch:
    """One try of a candidate."""

    at: Any
    steps: int = 0
    over: Outcome | None = None
    valid: bool = True
    potential: float = 0.0
    seen: Observation | None = None
