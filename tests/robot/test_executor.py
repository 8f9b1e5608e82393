"""An executor ends every job once, whoever raises or dies."""

from collections.abc import Callable

import pytest

from robot.errors import AmbidexError, InfrastructureError, UnknownName
from robot.executor import Serial
from robot.executor.base import Refusal, attempt


class Counting:
    """A bench whose odd jobs fail until their third try."""

    made = 0
    closed = 0

    def __init__(self) -> None:
        Counting.made += 1

    def __call__(self, job: int) -> int:
        TRIES[job] = TRIES.get(job, 0) + 1
        if job % 2 and TRIES[job] < 3:
            raise InfrastructureError(f"job {job} lost its renderer")
        return job * job

    def close(self) -> None:
        Counting.closed += 1


TRIES: dict[int, int] = {}


@pytest.fixture(autouse=True)
def forget() -> None:
    TRIES.clear()
    Counting.made = Counting.closed = 0


def run(bench: Callable[[], Callable[[int], int]], jobs: range, retries: int) -> list[tuple]:
    with Serial().open(bench, retries=retries) as crew:
        return [(d.job, d.result, d.error, d.retries) for d in crew.run(jobs)]


def test_a_job_is_tried_again_on_a_fresh_bench_until_its_tries_are_spent() -> None:
    assert run(Counting, range(4), 2) == [
        (0, 0, "", 0),
        (1, 1, "", 2),
        (2, 4, "", 0),
        (3, 9, "", 2),
    ]
    assert Counting.made == 5
    assert Counting.closed == 5


def test_without_a_try_left_the_error_is_the_answer_and_others_go_on() -> None:
    assert run(Counting, range(3), 1) == [
        (0, 0, "", 0),
        (1, None, "job 1 lost its renderer", 1),
        (2, 4, "", 0),
    ]


def test_a_refusal_ends_the_run_with_its_own_type_and_attributes() -> None:
    def bench(job: int) -> int:
        raise UnknownName("task", "lfit", ["lift", "peg"])

    with pytest.raises(UnknownName, match="did you mean lift") as caught:
        run(lambda: bench, range(3), 2)
    assert caught.value.near == ["lift"]


def test_an_unforeseen_exception_names_its_place() -> None:
    def bench(job: int) -> int:
        return 1 // job

    answer = attempt(bench, 0)
    assert not isinstance(answer, Refusal)
    assert answer.error.startswith("ZeroDivisionError at test_executor.py:")


def test_a_refusal_of_an_unknown_type_is_still_an_error_of_ours() -> None:
    refusal = Refusal(module="robot.errors", kind="Gone", message="no", attributes={})
    assert type(refusal.restore()) is AmbidexError
