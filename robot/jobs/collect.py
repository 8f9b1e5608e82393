"""Collect episodes from scripted experts or a policy into one store, and go on where it stopped.

An episode is named by seed, task and quality; what it holds follows from these alone, whoever runs
it. Workers render, drive and encode; one writer stores. Times are wall seconds.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from robot.clock import Stopwatch
from robot.episodes import EpisodeReader, EpisodeWriter, Packed, layout
from robot.errors import AmbidexError, DatasetError, SpecMismatch
from robot.executor import Crew, Done, Executor, Local
from robot.jobs.takes import EnvFactory, ExpertFactory, Job, Made, PolicyFactory, TakeBench
from robot.types import Spec

log = structlog.get_logger(__name__)

ROLLOUT = "rollout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a run of ``collect`` did.

    Attributes:
        out: Folder of the store.
        stored: Episodes added by this run.
        kept: Episodes that were there before and not run again.
        successes: How many of those run now reached the goal.
        dropped: Failures that were run and not stored, by wish.
        errors: Episodes that could not be run, with the reason; they are tried again next time.
        retries: Attempts lost to infrastructure errors.
        frames: Rows added.
        seconds: Wall time of the run [s].
        spent: Seconds of all workers together, by what they went into.
        complete: Whether every episode asked for has been run.
    """

    out: Path
    stored: int = 0
    kept: int = 0
    successes: int = 0
    dropped: int = 0
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    retries: int = 0
    frames: int = 0
    seconds: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict[str, float])
    complete: bool = False


def jobs_for(
    *, seeds: Iterable[int], tasks: Iterable[str], qualities: Sequence[str] | Mapping[str, float]
) -> list[Job]:
    """Return the episodes to run.

    Args:
        seeds: Start states.
        tasks: Each is run on every seed.
        qualities: Each is run on every seed if it is a sequence; if it gives shares, each task
            and seed gets one quality, drawn by these shares from the seed.

    Raises:
        AmbidexError: If nothing is left to run, or shares are not positive.
    """
    numbers, names = list(dict.fromkeys(int(s) for s in seeds)), list(tasks)
    if not numbers or not names or not qualities:
        raise AmbidexError("a collection needs at least one seed, one task and one quality")
    if not isinstance(qualities, Mapping):
        return [Job(seed=s, task=t, quality=q) for s in numbers for t in names for q in qualities]
    kinds, shares = list(qualities), np.array(list(qualities.values()), dtype=np.float64)
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise AmbidexError(f"shares of qualities must be positive, found {dict(qualities)}")
    found: list[Job] = []
    for seed in numbers:
        for number, task in enumerate(names):
            draw = np.random.default_rng([seed, number, 0xC011]).random()
            kind = int(np.searchsorted(np.cumsum(shares / shares.sum()), draw, side="right"))
            found.append(Job(seed=seed, task=task, quality=kinds[min(kind, len(kinds) - 1)]))
    return found


def collect(
    *,
    out: str | Path,
    tasks: Mapping[str, EnvFactory],
    seeds: Iterable[int],
    expert: ExpertFactory | None = None,
    policy: PolicyFactory | None = None,
    qualities: Sequence[str] | Mapping[str, float] = ("clean",),
    cameras: Sequence[str] | None = None,
    successes_only: bool = False,
    executor: Executor | None = None,
    retries: int = 2,
    latency_s: float = 0.0,
    console: Console | None = None,
) -> Collected:
    """Run every task on every seed and store what happened in ``out``.

    Args:
        out: Folder of the store; episodes that are in it are not run again.
        tasks: Makes the environment of each task; the name is the goal's key in the store.
        seeds: Start states.
        expert: Called with an environment, ``quality=`` and ``seed=``.
        policy: Makes a policy; its episodes have the quality ``rollout``.
        qualities: How the expert works: all of these, or shares of them.
        cameras: Whose images are kept; all of the environment's if None.
        successes_only: Whether failures are left out. They are run again next time.
        executor: Where episodes run; two local processes by default.
        retries: Further attempts at an episode after an infrastructure error.
        latency_s: Time from the policy's observation to its chunk on the robot's clock [s].
        console: Where progress is shown.

    Raises:
        DatasetError: If ``out`` cannot be written or is full; finished episodes are kept.
        SpecMismatch: If the tasks, or the store, speak of different robots.
        AmbidexError: If there is nothing to run, or not exactly one of expert and policy.
    """
    if (expert is None) == (policy is None):
        raise AmbidexError("give either an expert or a policy to collect from")
    kinds = qualities if policy is None else (ROLLOUT,)
    jobs = jobs_for(seeds=seeds, tasks=tasks, qualities=kinds)
    bench = TakeBench(
        tasks=tasks, expert=expert, policy=policy, cameras=cameras, latency_s=latency_s
    )
    run = _Run(Path(out), jobs, successes_only=successes_only, console=console)
    with (executor or Local()).open(bench, retries=retries) as crew:
        return run.go(crew, list(tasks))


class _Shelf:
    """Stores episodes in a thread of its own: forcing them to disk is waiting, not work."""

    def __init__(self, writer: EpisodeWriter) -> None:
        self._writer = writer
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._waiting: deque[Future[None]] = deque()
        self.stored, self.seconds = 0, 0.0

    def __enter__(self) -> Self:
        self._writer.open()
        return self

    def put(self, packed: Packed) -> None:
        """Take an episode; an earlier one that could not be stored raises here."""
        self._waiting.append(self._pool.submit(self._store, packed))
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > 4):
            self._waiting.popleft().result()

    def _store(self, packed: Packed) -> None:
        watch = Stopwatch()
        self._writer.append(packed)
        self.stored += 1
        self.seconds += watch.elapsed

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True)
        self._writer.close()
        if kind is None:
            for stored in self._waiting:
                stored.result()


class _Run:
    def __init__(
        self, out: Path, jobs: list[Job], *, successes_only: bool, console: Console | None
    ) -> None:
        self._out, self._jobs, self._successes_only = out, jobs, successes_only
        self._console = console or Console(stderr=True)
        self._counts = dict.fromkeys(("stored", "successes", "dropped", "retries", "frames"), 0)
        self._errors: dict[str, str] = {}
        self._spent: dict[str, float] = {}

    def go(self, crew: Crew, tasks: list[str]) -> Collected:
        watch = Stopwatch()
        before = EpisodeReader(self._out).keys() if (self._out / layout.INFO).exists() else []
        there = set(before)
        missing = [job for job in self._jobs if job.key not in there]
        complete = True
        if missing:
            spec = _one_spec(crew, tasks)
            with self._progress() as bar, _Shelf(EpisodeWriter(self._out, spec)) as shelf:
                shown = bar.add_task("episodes", total=len(missing), note="")
                try:
                    for done in crew.run(missing):
                        self._keep(done, shelf)
                        bar.update(shown, advance=1, note=self._note(watch.elapsed))
                except KeyboardInterrupt:
                    complete = False
                    log.warning("interrupted", out=str(self._out))
            self._counts["stored"], self._spent["store"] = shelf.stored, shelf.seconds
        for key, error in self._errors.items():
            log.error("episode not run", episode=key, error=error)
        return Collected(
            out=self._out,
            kept=len(self._jobs) - len(missing),
            errors=self._errors,
            seconds=watch.elapsed,
            spent=self._spent,
            complete=complete and not self._errors,
            **self._counts,
        )

    def _keep(self, done: Done, shelf: "_Shelf") -> None:
        self._counts["retries"] += done.retries
        if done.error:
            self._errors[str(done.job.key)] = done.error
            return
        made: Made = done.result
        for what, seconds in made.spent.items():
            self._spent[what] = self._spent.get(what, 0.0) + seconds
        self._counts["successes"] += made.success
        if self._successes_only and not made.success:
            self._counts["dropped"] += 1
            return
        shelf.put(made.packed)
        self._counts["frames"] += made.packed.length

    def _note(self, seconds: float) -> str:
        counts = self._counts
        errors = f", {len(self._errors)} errors" if self._errors else ""
        rate = counts["frames"] / max(seconds, 1e-9)
        return f"{counts['successes']} succeeded, {rate:.0f} frames/s{errors}"

    def _progress(self) -> Progress:
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )


def _one_spec(crew: Crew, tasks: list[str]) -> Spec:
    """Return the spec that all tasks share, before anything is written."""
    found: dict[str, Spec] = {}
    for done in crew.run(tasks):
        if done.error:
            raise DatasetError(f"the environment of {done.job} cannot be made: {done.error}")
        found[done.job] = done.result
    first = tasks[0]
    for task in tasks[1:]:
        differences = found[first].differences(found[task])
        if differences:
            raise SpecMismatch(f"task {first}", f"task {task}", differences)
    return found[first]
