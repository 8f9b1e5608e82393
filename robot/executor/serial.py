"""One job after another in this process."""

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from robot.executor.base import Bench, BenchFactory, Crew, Done, Refusal, attempt, close_bench


class _SerialCrew:
    def __init__(self, bench: BenchFactory, retries: int) -> None:
        self._make, self._retries = bench, retries
        self._bench: Bench | None = None

    def run(self, jobs: Iterable[Any]) -> Generator[Done]:
        for job in jobs:
            answer = Done(job=job)
            for tried in range(self._retries + 1):
                answer = attempt(self._call, job)
                if isinstance(answer, Refusal):
                    raise answer.restore()
                answer = Done(job=job, result=answer.result, error=answer.error, retries=tried)
                if not answer.error:
                    break
                self._drop()
            yield answer

    def _call(self, job: Any) -> Any:
        self._bench = self._bench or self._make()
        return self._bench(job)

    def _drop(self) -> None:
        close_bench(self._bench)
        self._bench = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()


class Serial:
    """One job after another in this process: for debugging, and where nothing can be started."""

    def open(self, bench: BenchFactory, *, retries: int) -> AbstractContextManager[Crew]:
        """Return a crew of one, in this process."""
        return _SerialCrew(bench, retries)
