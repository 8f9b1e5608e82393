"""The page itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robot.journal import write_whole
from robot.trials import Result


def write_report(
    *,
    out: Path,
    title: str,
    summary: Mapping[str, Any],
    results: Sequence[Result],
    decisions: Sequence[Mapping[str, Any]],
    films: Sequence[Result],
    steered: Sequence[str],
) -> Path:
    """Write ``report.html`` into ``out`` and return its path."""
    page = out / "report.html"
    write_whole(page, f"<!doctype html><title>{title}</title>")
    return page
