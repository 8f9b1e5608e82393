"""A value chooses among candidates, and one that cannot be trusted never does."""

import copy
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float

from policies.steer import BestOf, RandomValue
from robot.errors import InfrastructureError
from robot.protocols import ActionValue, Policy
from robot.types import ActionChunk, Observation, Plan, Task

PLAN = Plan(task=Task(name="lift", instruction="lift the pot"))
HERE = Observation(time=0.5, state=np.zeros(3))


class Numbered:
    """Proposes constant chunks that differ by candidate and by seed."""

    cameras = ("wrist",)

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def propose(self, observation: Observation, plan: Plan, count: int) -> ActionChunk:
        lead = observation.state.shape[:-1]
        targets = np.zeros((count, *lead, 4, 3))
        targets += self.rng.random() + np.arange(count).reshape(-1, *(1,) * (len(lead) + 2))
        commit = np.ones((count, *lead), dtype=np.int64)
        commit += (np.arange(count) % 4).reshape(-1, *(1,) * len(lead))
        return ActionChunk(start=0.5, period=0.1, targets=targets, commit=commit)


class Given:
    """Returns the scores it was given."""

    def __init__(self, scores: object) -> None:
        self.scores = scores

    def score(
        self, observation: Observation, plan: Plan, chunk: ActionChunk
    ) -> Float[np.ndarray, " n"]:
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores  # type: ignore[return-value]


def plain(seed: int = 0) -> ActionChunk:
    policy = Numbered()
    policy.reset(seed)
    return policy.propose(HERE, PLAN, 1)


def steered(scores: object, **options: object) -> tuple[BestOf, ActionChunk]:
    best = BestOf(Numbered(), Given(scores), 4, **options)  # type: ignore[arg-type]
    best.reset(0)
    return best, best.propose(HERE, PLAN, 1)


def test_the_best_score_runs_with_its_own_commit() -> None:
    best, chunk = steered(np.array([0.0, 3.0, 7.0, 5.0]))
    assert chunk.targets.shape == (1, 4, 3)
    assert chunk.decision is not None
    assert chunk.decision.choice == 2
    assert chunk.commit.tolist() == [3]
    np.testing.assert_array_equal(chunk.targets[0], chunk.decision.targets[2])  # type: ignore[index]
    assert (best.decisions, best.fallbacks.total()) == (1, 0)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (np.full(4, np.nan), "nan"),
        (np.array([np.inf, -np.inf, np.nan, np.inf]), "nan"),
        (np.array([np.nan, 1.0, np.nan, np.nan]), "nan"),
        (np.array([np.nan, 1.0, 1.0, 1.0]), "nan"),
        (np.ones(4), "constant"),
        (RuntimeError("no weights"), "error"),
        (np.ones(3), "error"),
        ("many", "error"),
    ],
)
def test_a_value_that_cannot_be_trusted_leaves_the_first_candidate(
    scores: object, reason: str
) -> None:
    best, chunk = steered(scores)
    np.testing.assert_array_equal(chunk.targets, plain().targets)
    assert chunk.decision is not None
    assert (chunk.decision.choice, chunk.decision.fallback) == (0, reason)
    assert dict(best.fallbacks) == {reason: 1}
    assert bool(best.last_error) == (reason == "error")


@settings(deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=4, max_size=4),
    st.sampled_from([None, 0.1]),
)
def test_no_candidate_without_a_number_is_ever_preferred(
    scores: list[float], temperature: float | None
) -> None:
    _, chunk = steered(np.array(scores), temperature=temperature)
    decision = chunk.decision
    assert decision is not None
    if decision.fallback:
        assert decision.choice == 0
    else:
        assert np.isfinite(scores[decision.choice])
        if temperature is None:
            known = [s for s in scores if np.isfinite(s)]
            assert scores[decision.choice] == max(known)


def test_a_late_value_does_not_decide_and_is_not_waited_for() -> None:
    release = Event()

    class Slow:
        calls = 0

        def score(self, observation: Observation, plan: Plan, chunk: ActionChunk) -> np.ndarray:
            Slow.calls += 1
            if Slow.calls == 1:
                release.wait(10.0)
            return np.arange(4.0)

    best = BestOf(Numbered(), Slow(), 4, deadline_s=0.02)
    best.reset(0)
    late = [best.propose(HERE, PLAN, 1).decision for _ in range(2)]
    assert [d.fallback for d in late if d] == ["late", "late"]
    assert Slow.calls == 1  # the second was late at once: the first is still being computed
    release.set()
    for _ in range(200):
        decision = best.propose(HERE, PLAN, 1).decision
        if decision and not decision.fallback:
            break
    assert decision is not None
    assert decision.choice == 3


def test_an_error_in_time_is_counted_with_a_deadline_too() -> None:
    best, _ = steered(RuntimeError("no weights"), deadline_s=5.0)
    assert dict(best.fallbacks) == {"error": 1}
    assert best.last_error == "RuntimeError: no weights"


def test_broken_machinery_is_not_taken_for_a_bad_value() -> None:
    with pytest.raises(InfrastructureError):
        steered(InfrastructureError("the physics diverged"))


def test_one_candidate_or_no_value_is_the_plain_policy() -> None:
    for best in (BestOf(Numbered(), Given(ValueError()), 1), BestOf(Numbered(), None, 8)):
        best.reset(3)
        chunk = best.propose(HERE, PLAN, 1)
        np.testing.assert_array_equal(chunk.targets, plain(3).targets)
        assert chunk.decision is None


def test_random_choice_follows_from_the_seed_alone() -> None:
    def choices(seed: int) -> list[int]:
        best = BestOf(Numbered(), RandomValue(), 8)
        best.reset(seed)
        decisions = [best.propose(HERE, PLAN, 1).decision for _ in range(40)]
        return [d.choice for d in decisions if d]

    assert choices(1) == choices(1) != choices(2)
    assert set(choices(1)) == set(range(8))


def test_a_low_temperature_takes_the_best_and_a_high_one_takes_any() -> None:
    scores = np.array([0.0, 1.0, 2.0, 3.0])

    def share_of_best(temperature: float) -> float:
        best = BestOf(Numbered(), Given(scores), 4, temperature=temperature)
        best.reset(0)
        decisions = [best.propose(HERE, PLAN, 1).decision for _ in range(400)]
        return float(np.mean([d.choice == 3 for d in decisions if d]))

    odds = np.exp(scores)
    assert share_of_best(0.01) == 1.0
    assert share_of_best(1.0) == pytest.approx(odds[3] / odds.sum(), abs=0.07)


def test_a_steered_policy_ranks_candidates_for_the_next_one() -> None:
    inner = BestOf(Numbered(), Given(np.array([1.0, 4.0, 2.0, 3.0])), 4)
    inner.reset(0)
    chunk = inner.propose(HERE, PLAN, 2)
    assert chunk.targets[:, 0, 0] - plain().targets[0, 0, 0] == pytest.approx([1.0, 3.0])
    with pytest.raises(ValueError, match="draws 4"):
        inner.propose(HERE, PLAN, 5)


def test_a_batch_of_robots_is_refused() -> None:
    batch = Observation(time=np.zeros(2), state=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one robot at a time"):
        BestOf(Numbered(), RandomValue(), 4).propose(batch, PLAN, 1)


def test_what_the_policy_tells_of_itself_is_passed_on() -> None:
    best = BestOf(Numbered(), RandomValue(), 4)
    assert best.cameras == ("wrist",)
    assert copy.deepcopy(best).cameras == ("wrist",)
    with pytest.raises(AttributeError):
        _ = best.weights


def test_roles_are_kept() -> None:
    assert isinstance(BestOf(Numbered()), Policy)
    assert isinstance(RandomValue(), ActionValue)


@pytest.mark.parametrize(
    "options", [{"count": 0}, {"deadline_s": 0.0}, {"temperature": float("nan")}]
)
def test_senseless_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"count|deadline_s|temperature"):
        BestOf(Numbered(), RandomValue(), **options)  # type: ignore[arg-type]
