"""Killed at any moment, an evaluation goes on as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from test_evaluate import outcomes, run

from robot.executor import Ray
from robot.journal import read_lines

KILLABLE = Path(__file__).with_name("killable.py")


def start(out: Path, workers: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(KILLABLE), str(out), str(workers)], stdout=subprocess.DEVNULL
    )


def wait_for_lines(out: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        path = out / "episodes.jsonl"
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.002)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_run_ends_as_an_uninterrupted_one(
    workers: int, tmp_path: Path
) -> None:
    run(tmp_path / "whole", seeds=range(8))
    moments = random.Random(workers)
    kept = 0
    for kill in range(3):
        process = start(tmp_path / "cut", workers)
        wait_for_lines(tmp_path / "cut", kept + 1 + kill, process)
        time.sleep(moments.uniform(0.0, 0.08))
        children = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = len(read_lines(tmp_path / "cut" / "episodes.jsonl"))
        deadline = time.monotonic() + 10.0
        while not all(gone(child.pid) for child in children) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert all(gone(child.pid) for child in children)
    assert 0 < kept < 24
    process = start(tmp_path / "cut", workers)
    assert process.wait() == 0
    assert outcomes(tmp_path / "cut") == outcomes(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_ray_gives_what_one_process_gives(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run(tmp_path / "serial")
    run(tmp_path / "ray", executor=Ray(2))
    assert outcomes(tmp_path / "serial") == outcomes(tmp_path / "ray")
