"""The books of one evaluation: what is kept, what must agree with it, what is still to be run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from robot.bench import SeedsNotEffective
from robot.errors import AmbidexError, InfrastructureError
from robot.executor import Crew, Done
from robot.fingerprint import DECISIVE, compare_fingerprints
from robot.journal import Journal, write_whole
from robot.live import LiveTable
from robot.summary import choose_seeds, latest, summarise
from robot.trials import Arm, Check, Result, Trial
from robot.types import Outcome, Spec

log = structlog.get_logger(__name__)

# More films side by side are too small to see.
MOST_FILMED = 4
# So many episodes in a row without one that counts are no accident.
HOPELESS = 12


class ResumeRefused(AmbidexError):
    """The out folder holds a run that depends on something else."""


class Ledger:
    """The state of one evaluation: what is kept, and what must agree with it."""

    def __init__(
        self,
        journal: Journal,
        *,
        out: Path,
        trials: Sequence[Trial],
        arms: Mapping[str, Arm],
        fingerprint: dict[str, Any],
    ) -> None:
        self._journal, self._out, self._trials = journal, out, trials
        self._fingerprint = fingerprint
        self._arms = list(dict.fromkeys(trial.arm for trial in trials))
        self._tasks = list(dict.fromkeys(trial.task for trial in trials))
        self._steered = [name for name in self._arms if arms[name].count > 1]
        self._wanted = {trial.key for trial in trials}
        self._kept = [Result.from_line(line) for line in journal.kept]
        self._starts: dict[tuple[str, int], Result] = {}
        self._simulated: set[str] = set()
        self._lost = 0
        self.judge = ""
        self._remarks: list[str] = []

    def results(self) -> list[Result]:
        """Return one result for each trial that has ended."""
        return [r for key, r in latest(self._kept).items() if key in self._wanted]

    def accept(self) -> None:
        """Go on with what the folder holds, or refuse to mix two different runs."""
        path = self._out / "run.json"
        if not self._journal.kept:
            write_whole(path, json.dumps(self._fingerprint, indent=1))
            return
        if not path.exists():
            raise ResumeRefused(
                f"{self._out} holds episodes but no run.json that says where they come from; "
                "choose another out folder"
            )
        before = json.loads(path.read_text(encoding="utf-8"))
        refused = compare_fingerprints(before, self._fingerprint, only=DECISIVE)
        if refused:
            lines = "\n  ".join(refused)
            raise ResumeRefused(
                f"{self._out} holds {len(self._journal.kept)} episodes of another run, before "
                f"against now:\n  {lines}\nChoose another out folder, or go back to that "
                "configuration and those weights"
            )
        if "specs" in before:
            self._fingerprint.setdefault("specs", before["specs"])
        others = [s for s in before if s not in (*DECISIVE, "specs")]
        self._remarks = [
            f"Resumed with a difference in {text}."
            for text in compare_fingerprints(before, self._fingerprint, only=others)
        ]
        log.info("resumed", kept=len(self._kept), dropped_bytes=self._journal.dropped)

    def resume(self, table: LiveTable) -> list[Trial]:
        """Return the trials that have no result yet; those that ended as errors run again."""
        for result in self._kept:
            self._agree(result)
        finished = {r.key: r for r in self.results() if r.counted}
        for result in finished.values():
            table.add(result, fresh=False)
        return [trial for trial in self._trials if trial.key not in finished]

    def check(
        self,
        workers: Crew,
        seeds: tuple[int, int],
        spec: Spec | None,
        cameras: tuple[str, ...] | None,
    ) -> None:
        """Let a worker prove the seeds and compare the specs of every task."""
        checks = [
            Check(
                task=task,
                seeds=seeds,
                arms=tuple(self._arms),
                policy_spec=spec,
                policy_cameras=cameras,
            )
            for task in self._tasks
        ]
        specs: dict[str, Any] = {}
        for done in workers.run(checks):
            if done.error:
                raise InfrastructureError(f"the {done.job} failed, nothing was run: {done.error}")
            specs[done.job.task] = done.result["spec"]
            self._simulated.update(done.result["simulated"])
        self._fingerprint["specs"] = specs
        path = self._out / "run.json"
        before = json.loads(path.read_text(encoding="utf-8"))
        if "specs" in before and self._kept:
            refused = compare_fingerprints(before, self._fingerprint, only=["specs"])
            if refused:
                raise ResumeRefused(
                    f"{self._out} holds episodes of another robot or other cameras, before against "
                    "now:\n  " + "\n  ".join(refused) + "\nChoose another out folder"
                )
        write_whole(path, json.dumps(self._fingerprint, indent=1))

    def _agree(self, result: Result) -> None:
        """Refuse a result whose start differs from that of another arm on the same seed."""
        if not result.start:
            return
        other = self._starts.setdefault((result.task, result.seed), result)
        if other.start != result.start:
            raise SeedsNotEffective(
                f"{result.task}, seed {result.seed}: arms {other.arm!r} and {result.arm!r} began "
                f"in different states ({other.start[:12]} and {result.start[:12]}), so they cannot "
                "be compared; nothing was reported. Its reset must draw everything from the seed"
            )

    def keep(self, done: Done, decisions: Journal, table: LiveTable) -> None:
        """Journal what became of one trial.

        Raises:
            AmbidexError: If nothing but errors came for a long time.
        """
        trial: Trial = done.job
        result: Result = done.result or Result(
            arm=trial.arm,
            task=trial.task,
            seed=trial.seed,
            outcome=Outcome.ERROR,
            error=done.error,
            fault="infrastructure",
        )
        result = replace(result, retries=done.retries)
        self._agree(result)
        if result.decisions:
            decisions.append(result.to_decision_line())
        self._journal.append(result.to_line())
        self._kept.append(replace(result, decisions=()))
        table.add(result)
        self._lost = 0 if result.counted else self._lost + 1
        if self._lost >= HOPELESS:
            raise AmbidexError(
                f"the last {self._lost} episodes all ended as errors, so the run was ended; the "
                f"last one ({trial}) said: {result.error}. Mend that and run the same command to "
                "go on"
            )

    def write_summary(self) -> dict[str, Any]:
        """Write and return the summary of what is kept."""
        summary = summarise(
            self.results(),
            arms=self._arms,
            tasks=self._tasks,
            fingerprint=self._fingerprint,
            steered=self._steered,
        )
        summary["notes"] += self._remarks
        write_whole(self._out / "summary.json", json.dumps(summary, indent=1, allow_nan=False))
        return summary

    def films(self, workers: Crew, count: int, arms: Mapping[str, Arm]) -> list[Result]:
        """Return ``count`` seeds run once more with pictures, those first on which arms differ."""
        plain = next((n for n in self._arms if arms[n].count == 1), self._arms[0])
        learned = [n for n in self._arms if arms[n].value and n not in self._simulated]
        self.judge = "best" if "best" in learned else (learned or [""])[-1]
        first = self.judge or self._arms[-1]
        chosen = choose_seeds(self.results(), first=first, second=plain, count=count)
        trials = [
            Trial(arm=arm, task=task, seed=seed, film=True, judge=self.judge)
            for task, seed in chosen
            for arm in self._arms[:MOST_FILMED]
        ]
        ended = list(workers.run(trials))
        for done in ended:
            if done.error:
                log.warning("no film", trial=str(done.job), error=done.error)
        return [done.result for done in ended if done.result is not None]
