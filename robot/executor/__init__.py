"""Where work runs: in this process, in local processes, or on a Ray cluster. Same results.

An executor makes a *bench* once in each worker and calls it with one job after another.
"""

from robot.executor.base import Bench, BenchFactory, Crew, Done, Executor
from robot.executor.local import Local
from robot.executor.ray import Ray
from robot.executor.serial import Serial

__all__ = ["Bench", "BenchFactory", "Crew", "Done", "Executor", "Local", "Ray", "Serial"]
