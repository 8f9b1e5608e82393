"""A table that lives while an evaluation runs: one row an arm."""

from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from robot.statistics import wilson
from robot.trials import Result


class LiveTable:
    """Shows k of n, rate, interval and errors of each arm, and the time left.

    On a console that is no terminal only the last state is printed.
    """

    def __init__(self, *, arms: Sequence[str], total: int, console: Console | None = None) -> None:
        self._arms = arms
        self._successes: dict[str, int] = defaultdict(int)
        self._counted: dict[str, int] = defaultdict(int)
        self._errors: dict[str, int] = defaultdict(int)
        self._retries = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = self._progress.add_task("episodes", total=total)
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        self._live.update(self._picture())
        return self

    def add(self, result: Result, *, fresh: bool = True) -> None:
        """Count one episode; ``fresh`` is False for one kept from an earlier run."""
        if result.counted:
            self._counted[result.arm] += 1
            self._successes[result.arm] += result.succeeded
        else:
            self._errors[result.arm] += 1
        self._retries += result.retries if fresh else 0
        self._progress.advance(self._bar)
        self._live.update(self._picture())

    def say(self, text: str) -> None:
        """Show what is going on."""
        self._progress.update(self._bar, description=text)
        self._live.update(self._picture())

    def _picture(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for title in ("arm", "k/n", "rate", "95 % interval", "errors"):
            table.add_column(title, justify="left" if title == "arm" else "right")
        for arm in self._arms:
            k, n = self._successes[arm], self._counted[arm]
            rate, interval = "-", "-"
            if n:
                low, high = wilson(k, n)
                rate, interval = f"{100 * k / n:.1f} %", f"{100 * low:.1f} .. {100 * high:.1f} %"
            errors = self._errors[arm]
            shown = f"[red]{errors}[/red]" if errors else "0"
            table.add_row(arm, f"{k}/{n}", rate, interval, shown)
        again = (
            [Table(title=f"{self._retries} attempts retried", box=None)] if self._retries else []
        )
        return Group(table, *again, self._progress)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)
        if not self._console.is_terminal:
            self._console.print()
