"""Evaluate arms on tasks and seeds: journaled, resumable, paired, proven.

Every seed is run by every arm, whoever finishes first. One line is journaled an episode; what was
journaled is never run again, and what was not is run from its start. Times [s].
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from rich.console import Console

from robot.bench import BenchPlan, Steer, Viewer
from robot.checkpoint import read_cameras, read_spec
from robot.errors import AmbidexError
from robot.executor import Executor, Local
from robot.fingerprint import take_fingerprint
from robot.journal import Journal
from robot.ledger import Ledger
from robot.live import LiveTable
from robot.trials import Arm, EnvFactory, PolicyFactory, Trial

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A finished (or interrupted) run.

    Attributes:
        out: Its folder.
        summary: What ``summary.json`` holds.
        report: The page, if one was written.
        complete: Whether every trial has ended.
    """

    out: Path
    summary: dict[str, Any]
    report: Path | None
    complete: bool


def evaluate(
    *,
    tasks: Mapping[str, EnvFactory],
    policy: PolicyFactory,
    arms: Mapping[str, Arm],
    seeds: Iterable[int],
    out: Path,
    steer: Steer | None = None,
    executor: Executor | None = None,
    latency_s: float = 0.0,
    retries: int = 2,
    checkpoint: Path | None = None,
    configuration: Mapping[str, Any] | None = None,
    weights: Mapping[str, Path] | None = None,
    viewer: Viewer | None = None,
    videos: int = 3,
    report: bool = True,
    title: str = "Evaluation",
    console: Console | None = None,
) -> Evaluation:
    """Run every arm on every task and seed, and leave journal, summary and report in ``out``.

    Factories are called in worker processes and must be picklable.

    Args:
        tasks: Makes the environment of each task.
        policy: Makes the policy that the arms share.
        arms: What is compared, by name.
        seeds: Start states; all arms run the same ones.
        out: Folder of the results; a run that is there already is gone on with.
        steer: Called with ``policy=``, ``value=``, ``count=`` for arms with a value.
        executor: Where episodes run; two local processes by default.
        latency_s: Time from observation to chunk on the robot's clock [s].
        retries: Further attempts at an episode after an infrastructure error.
        checkpoint: Folder of the policy, whose ``spec.json`` is compared before weights load.
        configuration: The resolved configuration, stored and compared on resume.
        weights: Weights that the configuration does not name by a path.
        viewer: Called with an environment; returns what takes a picture of it for the report.
        videos: Seeds to film again for the report.
        report: Whether to write ``report.html``.
        title: Headline of the report.
        console: Where the live table is shown.

    Raises:
        SpecMismatch: If the checkpoint does not fit a task's robot.
        SeedsNotEffective: If a seed does not decide the start, or arms start differently.
        ResumeRefused: If ``out`` holds a run of another configuration or other weights.
        JournalError: If ``out`` cannot be written, or the disk is full.
        AmbidexError: If no episode ends without an error.
    """
    numbers = list(dict.fromkeys(int(seed) for seed in seeds))
    _validate(tasks, arms, numbers)
    spec = read_spec(checkpoint) if checkpoint else None
    cameras = read_cameras(checkpoint) if checkpoint else None
    plan = BenchPlan(
        tasks=tasks, policy=policy, arms=arms, steer=steer, latency_s=latency_s, viewer=viewer
    )
    trials = [
        Trial(arm=arm, task=task, seed=seed) for seed in numbers for task in tasks for arm in arms
    ]
    fingerprint = take_fingerprint(
        configuration={"latency_s": latency_s, **(configuration or {})},
        weights={**({"checkpoint": checkpoint} if checkpoint else {}), **(weights or {})},
    )
    with Journal(out / "episodes.jsonl") as journal:
        run = Ledger(journal, out=out, trials=trials, arms=arms, fingerprint=fingerprint)
        run.accept()
        crew = (executor or Local()).open(plan, retries=retries)
        with (
            Journal(out / "decisions.jsonl") as decisions,
            LiveTable(arms=list(arms), total=len(trials), console=console) as table,
            crew as workers,
        ):
            missing = run.resume(table)
            pair = (numbers[0], numbers[1] if len(numbers) > 1 else numbers[0] + 1)
            if missing or report:
                table.say("checking seeds and specs")
                run.check(workers, pair, spec, cameras)
            complete = True
            try:
                table.say("episodes")
                for done in workers.run(missing):
                    run.keep(done, decisions, table)
                run.write_summary()
                table.say("films for the report")
                films = run.films(workers, videos, arms) if report else []
            except KeyboardInterrupt:
                complete, films = False, []
                log.warning("interrupted", kept=len(journal.kept), out=str(out))
            summary = run.write_summary()
            page = None
            if report:
                from robot.report import write_report

                page = write_report(
                    out=out,
                    title=title,
                    summary=summary,
                    results=run.results(),
                    decisions=decisions.kept,
                    films=films,
                    steered=[name for name, arm in arms.items() if arm.count > 1],
                    judge=run.judge,
                )
            table.say("done" if complete else "interrupted")
    console = console or Console(stderr=True)
    for line in [*(v["said"] for v in summary["verdicts"]), *summary["notes"]]:
        console.print(line, markup=False)
    console.print(f"Results: {page or out / 'summary.json'}", markup=False)
    return Evaluation(out=out, summary=summary, report=page, complete=complete)


def _validate(tasks: Mapping[str, EnvFactory], arms: Mapping[str, Arm], seeds: list[int]) -> None:
    for name, entries in (("task", tasks), ("arm", arms), ("seed", seeds)):
        if not entries:
            raise AmbidexError(f"an evaluation needs at least one {name}, found none")
