"""Compare two finished runs on the seeds they share, and name what differs between them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from robot.bench import SeedsNotEffective
from robot.errors import AmbidexError, UnknownName
from robot.fingerprint import compare_fingerprints
from robot.journal import read_lines
from robot.summary import latest, pair_summary, verdict
from robot.trials import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """One arm of the first run against one of the second.

    Attributes:
        first, second: Names of the arms, with the run in front.
        pair: Paired difference, first minus second, as in a summary's ``pairs``.
        said: The same in words.
    """

    first: str
    second: str
    pair: dict[str, Any]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two runs say about each other.

    Attributes:
        arms: One entry for each pair of arms that was compared.
        differences: One sentence for each entry of the fingerprints that differs.
        alone: Starts that only one of the runs has, by run.
    """

    arms: list[ArmComparison]
    differences: list[str]
    alone: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, ready for JSON."""
        return {
            "pairs": {f"{a.first}-{a.second}": {**a.pair, "said": a.said} for a in self.arms},
            "differences": self.differences,
            "alone": list(self.alone),
        }


def compare(
    first: Path,
    second: Path,
    *,
    arms: Mapping[str, str] | None = None,
    console: Console | None = None,
) -> Comparison:
    """Return the paired differences, first run minus second, on the seeds that both ran.

    Args:
        first: Folder of one run.
        second: Folder of the other.
        arms: Which arm of the first is compared with which of the second; by default those of
            the same name, or the only arm of each.
        console: Where the tables are shown; nowhere if None.

    Raises:
        UnknownName: If a run has no arm of that name.
        SeedsNotEffective: If the runs start differently on a seed, so they are not paired.
        AmbidexError: If a folder holds no run, or the runs share no arm or no seed.
    """
    ours, theirs = _read(first), _read(second)
    _same_starts(first, ours, second, theirs)
    chosen = _choose(first, ours, second, theirs, arms)
    left, right = _labels(first, second)
    compared: list[ArmComparison] = []
    for mine, other in chosen.items():
        a = {r.key[1:]: r for r in ours if r.arm == mine}
        b = {r.key[1:]: r for r in theirs if r.arm == other}
        pair = pair_summary(a, b)
        names = f"{left}/{mine}", f"{right}/{other}"
        said = verdict(*names, pair, steered=False)
        compared.append(ArmComparison(first=names[0], second=names[1], pair=pair, said=said))
    if all(c.pair["n"] == 0 for c in compared):
        raise AmbidexError(
            f"{first} and {second} share no seed that both finished, so nothing can be paired; "
            "run one of them on the other's seeds"
        )
    starts = [{r.key[1:] for r in run} for run in (ours, theirs)]
    result = Comparison(
        arms=compared,
        differences=compare_fingerprints(_fingerprint(first), _fingerprint(second)),
        alone=(len(starts[0] - starts[1]), len(starts[1] - starts[0])),
    )
    if console is not None:
        show(result, console)
    return result


def _read(folder: Path) -> list[Result]:
    lines = read_lines(folder / "episodes.jsonl")
    if not lines:
        known = sorted(str(p.parent) for p in folder.parent.glob("*/episodes.jsonl"))
        if known:
            raise UnknownName("run", str(folder), known)
        raise AmbidexError(
            f"{folder} holds no finished run (no episodes.jsonl); give the out folder of "
            "`ambidex eval`"
        )
    return list(latest(Result.from_line(line) for line in lines).values())


def _fingerprint(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.exists():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def _labels(first: Path, second: Path) -> tuple[str, str]:
    names = first.resolve().name, second.resolve().name
    return names if names[0] != names[1] else (str(first), str(second))


def _choose(
    first: Path,
    ours: list[Result],
    second: Path,
    theirs: list[Result],
    arms: Mapping[str, str] | None,
) -> dict[str, str]:
    mine = list(dict.fromkeys(r.arm for r in ours))
    others = list(dict.fromkeys(r.arm for r in theirs))
    if arms:
        for name, known, folder in [
            *((a, mine, first) for a in arms),
            *((b, others, second) for b in arms.values()),
        ]:
            if name not in known:
                raise UnknownName(f"arm of {folder}", name, known)
        return dict(arms)
    common = {name: name for name in mine if name in others}
    if common:
        return common
    if len(mine) == len(others) == 1:
        return {mine[0]: others[0]}
    raise AmbidexError(
        f"no arm has the same name in both runs ({', '.join(mine)} against {', '.join(others)}); "
        "say which to compare, e.g. arms='{best: plain}'"
    )


def _same_starts(first: Path, ours: list[Result], second: Path, theirs: list[Result]) -> None:
    begun = {r.key[1:]: r.start for r in ours if r.start}
    for result in theirs:
        start = begun.get(result.key[1:])
        if start and result.start and start != result.start:
            differences = compare_fingerprints(_fingerprint(first), _fingerprint(second))
            raise SeedsNotEffective(
                f"{result.task}, seed {result.seed}: {first} and {second} began in different "
                f"states ({start[:12]} and {result.start[:12]}), so they cannot be paired. "
                "Their fingerprints differ in:\n  " + "\n  ".join(differences or ["nothing"])
            )


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison: one row a pair, the verdicts, and what differs."""
    table = Table(title="Paired on the same seeds", box=None)
    for title in ("first", "second", "both", "only first", "only second", "neither", "points", "p"):
        table.add_column(title, justify="left" if title in ("first", "second") else "right")
    for arm in comparison.arms:
        pair = arm.pair
        if pair["difference"] is None:
            continue
        low, high = pair["interval"]
        points = f"{100 * pair['difference']:+.1f} ({100 * low:+.1f} .. {100 * high:+.1f})"
        cells = [str(pair[k]) for k in ("both", "only_first", "only_second", "neither")]
        table.add_row(arm.first, arm.second, *cells, points, f"{pair['p']:.2g}")
    console.print(table)
    for arm in comparison.arms:
        console.print(arm.said)
    if any(comparison.alone):
        console.print(
            f"{comparison.alone[0]} starts only in the first run and {comparison.alone[1]} only in "
            "the second were left out."
        )
    console.print("The fingerprints differ in:" if comparison.differences else "Same fingerprint.")
    for said in comparison.differences:
        console.print(f"  {said}", highlight=False, markup=False)
