"""Processes on this machine, one bench each; a process that dies is replaced."""

import os
import signal
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from types import TracebackType
from typing import Any, Self, cast

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


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone, whatever it is doing."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    Thread(target=watch, name="leave-with-parent", daemon=True).start()


def _serve(make: BenchFactory, pipe: Connection) -> None:
    """Answer jobs from ``pipe`` until it says None; runs in a worker."""
    # Ctrl-C reaches the whole process group; the parent decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave_with_parent()
    bench: Bench | None = None

    def call(job: Any) -> Any:
        nonlocal bench
        bench = bench or make()
        return bench(job)

    while (job := pipe.recv()) is not None:
        pipe.send(attempt(call, job))
    close_bench(bench)


class _Worker:
    """A process, the pipe to it and what it is busy with."""

    def __init__(self, bench: BenchFactory) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(bench, theirs), name="ambidex-worker", daemon=True
        )
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()
        self.job: Any = None
        self.tried = 0

    def give(self, job: Any, tried: int) -> None:
        self.job, self.tried = job, tried
        try:
            self.pipe.send(job)
        except OSError:
            # Its death is noticed, and the job given again, when the pipe is read.
            return

    def take(self) -> Answer:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(timeout=5.0)
            code = self.process.exitcode
            why = f"killed by signal {-code}" if code is not None and code < 0 else f"exit {code}"
            return Done(job=self.job, error=f"the worker process died ({why})")

    def end(self, *, patience: float) -> None:
        try:
            self.pipe.send(None)
        except OSError:
            patience = min(patience, 1.0)
        self.process.join(timeout=patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()
        self.process.close()


class _LocalCrew:
    def __init__(self, bench: BenchFactory, workers: int, retries: int) -> None:
        self._bench, self._size, self._retries = bench, workers, retries
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}

    def run(self, jobs: Iterable[Any]) -> Generator[Done]:
        waiting = deque((job, 0) for job in jobs)
        while waiting or self._busy:
            while waiting and len(self._busy) < self._size:
                worker = self._idle.pop() if self._idle else _Worker(self._bench)
                worker.give(*waiting.popleft())
                self._busy[worker.pipe] = worker
            for pipe in wait(list(self._busy)):
                worker = self._busy.pop(cast("Connection", pipe))
                answer, job, tried = worker.take(), worker.job, worker.tried
                if isinstance(answer, Refusal):
                    self._idle.append(worker)
                    raise answer.restore()
                if answer.error:
                    worker.end(patience=1.0)
                    if tried < self._retries:
                        waiting.appendleft((job, tried + 1))
                        continue
                else:
                    self._idle.append(worker)
                yield Done(job=job, result=answer.result, error=answer.error, retries=tried)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._busy.values():
            worker.process.kill()
        for worker in [*self._idle, *self._busy.values()]:
            worker.end(patience=5.0 if kind is None else 0.5)
        self._idle, self._busy = [], {}


class Local:
    """Processes on this machine, one bench each."""

    def __init__(self, workers: int = 2) -> None:
        if workers < 1:
            raise ValueError(f"at least one worker is needed, found workers={workers}")
        self._workers = workers

    def open(self, bench: BenchFactory, *, retries: int) -> AbstractContextManager[Crew]:
        """Return a crew of processes; they are started as jobs come."""
        return _LocalCrew(bench, self._workers, retries)
