"""One self-contained page about one evaluation."""

from robot.report.page import write_report

__all__ = ["write_report"]
