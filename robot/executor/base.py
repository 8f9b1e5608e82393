"""What every executor agrees on: jobs in, each of them done once, whoever dies.

A *bench* is made once in each worker and then called with one job after another. A worker that
dies, or a bench that raises, costs the job one attempt and the worker its life: the job is tried
again on a new one. What a bench refuses on purpose (an ``AmbidexError`` that is not about the
machinery) ends the whole run.
"""

import os
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, Self, cast

from robot.errors import AmbidexError, InfrastructureError

Bench = Callable[[Any], Any]
BenchFactory = Callable[[], Bench]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error that a bench raised on purpose, fit to travel between processes."""

    module: str
    kind: str
    message: str
    attributes: dict[str, Any]

    @classmethod
    def of(cls, error: AmbidexError) -> Self:
        """Return ``error`` in plain parts."""
        kind = type(error)
        return cls(
            module=kind.__module__,
            kind=kind.__qualname__,
            message=str(error),
            attributes=vars(error),
        )

    def restore(self) -> AmbidexError:
        """Return an error of the same type and message."""
        kind = getattr(import_module(self.module), self.kind, AmbidexError)
        error = cast("AmbidexError", kind.__new__(kind))
        error.args = (self.message,)
        error.__dict__.update(self.attributes)
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of one job.

    Attributes:
        job: The job.
        result: What the bench returned; None if it never did.
        error: Why there is no result, in words, or empty.
        retries: Attempts that were lost to infrastructure errors before the last one.
    """

    job: Any
    result: Any = None
    error: str = ""
    retries: int = 0


Answer = Refusal | Done


def attempt(bench: Bench, job: Any) -> Answer:
    """Return what ``bench`` makes of ``job``; a ``Done`` with an error is worth another try."""
    try:
        return Done(job=job, result=bench(job))
    except InfrastructureError as error:
        return Done(job=job, error=str(error) or "infrastructure error")
    except AmbidexError as error:
        return Refusal.of(error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        return Done(job=job, error=f"{type(error).__name__} at {place}: {error}")


class Crew(Protocol):
    """Workers that stand ready."""

    def run(self, jobs: Iterable[Any]) -> Generator[Done]:
        """Yield every job once, in the order in which they end.

        Raises:
            AmbidexError: What a bench refused.
        """
        ...


class Executor(Protocol):
    """Where work runs."""

    def open(self, bench: BenchFactory, *, retries: int) -> AbstractContextManager[Crew]:
        """Return workers that each make their own bench; leaving the context ends them.

        Args:
            bench: Picklable; called once in each worker.
            retries: Further attempts at a job after infrastructure errors.
        """
        ...


def close_bench(bench: Bench | None) -> None:
    """Release what a bench holds, if it can."""
    close = getattr(bench, "close", None)
    if close is not None:
        close()


# Two workers on two cores are slower with two threads each, and sums differ with their number.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}
