"""Ray actors, one bench each: for more than one machine. Needs the extra ``ray``."""

from collections import deque
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from robot.errors import AmbidexError, InfrastructureError
from robot.executor.base import (
    ONE_THREAD,
    Answer,
    Bench,
    BenchFactory,
    Crew,
    Done,
    Refusal,
    attempt,
    close_bench,
)


class _Hand:
    """Runs in an actor: makes its bench at the first job."""

    def __init__(self, make: BenchFactory) -> None:
        self._make = make
        self._bench: Bench | None = None

    def work(self, job: Any) -> Answer:
        return attempt(self._call, job)

    def _call(self, job: Any) -> Any:
        self._bench = self._bench or self._make()
        return self._bench(job)

    def close(self) -> None:
        close_bench(self._bench)
        self._bench = None


class _RayCrew:
    def __init__(
        self, bench: BenchFactory, workers: int, retries: int, address: str | None
    ) -> None:
        self._bench, self._size, self._retries = bench, workers, retries
        self._address = address
        self._actors: list[Any] = []
        self._idle: list[Any] = []
        self._started = False

    def _hire(self) -> Any:
        import ray

        # A hand that dies is replaced here, so that every executor counts retries alike.
        hand = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Hand)
        actor = hand.options(runtime_env={"env_vars": ONE_THREAD}).remote(self._bench)
        self._actors.append(actor)
        return actor

    def _dismiss(self, actor: Any) -> None:
        import ray

        self._actors.remove(actor)
        ray.kill(actor)

    def run(self, jobs: Iterable[Any]) -> Generator[Done]:
        import ray

        waiting = deque((job, 0) for job in jobs)
        busy: dict[Any, tuple[Any, Any, int]] = {}
        while waiting or busy:
            while waiting and len(busy) < self._size:
                actor = self._idle.pop() if self._idle else self._hire()
                job, tried = waiting.popleft()
                busy[actor.work.remote(job)] = (actor, job, tried)
            ready, _ = ray.wait(list(busy), num_returns=1)
            for reference in ready:
                actor, job, tried = busy.pop(reference)
                answer = _take(reference, job)
                if isinstance(answer, Refusal):
                    self._idle.append(actor)
                    raise answer.restore()
                if answer.error:
                    self._dismiss(actor)
                    if tried < self._retries:
                        waiting.appendleft((job, tried + 1))
                        continue
                else:
                    self._idle.append(actor)
                yield Done(job=job, result=answer.result, error=answer.error, retries=tried)

    def __enter__(self) -> Self:
        import ray

        if not ray.is_initialized():
            local: dict[str, Any] = {"num_cpus": self._size, "include_dashboard": False}
            try:
                ray.init(
                    address=self._address,
                    log_to_driver=False,
                    logging_level=30,
                    **({} if self._address else local),
                )
            except Exception as error:
                raise InfrastructureError(
                    f"Ray did not start ({error}); a loaded machine may be too slow for it: "
                    "try again, name a running cluster by its address, or use executor=local"
                ) from error
            self._started = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import ray

        for actor in list(self._actors):
            self._dismiss(actor)
        self._idle = []
        if self._started:
            ray.shutdown()
            self._started = False


def _take(reference: Any, job: Any) -> Answer:
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(reference)
    except RayError as error:
        first = str(error).strip().splitlines()[0]
        return Done(job=job, error=f"the worker died ({type(error).__name__}: {first})")


class Ray:
    """Actors of a Ray cluster, or of one that is started here for the run.

    Args:
        workers: Number of actors; each asks for one core.
        address: Of a running cluster, e.g. ``auto``; None starts one on this machine.
    """

    def __init__(self, workers: int = 2, *, address: str | None = None) -> None:
        if workers < 1:
            raise ValueError(f"at least one worker is needed, found workers={workers}")
        self._workers, self._address = workers, address

    def open(self, bench: BenchFactory, *, retries: int) -> AbstractContextManager[Crew]:
        """Return a crew of actors; they are started as jobs come.

        Raises:
            AmbidexError: If Ray is not installed.
        """
        from importlib.util import find_spec

        if find_spec("ray") is None:
            raise AmbidexError(
                "the ray executor needs Ray, which is not installed; "
                "install `ambidex[ray]` or use executor=local"
            )
        return _RayCrew(bench, self._workers, retries, self._address)
