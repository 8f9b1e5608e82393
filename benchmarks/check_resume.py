"""Does ``kill -9`` at ten random moments of an evaluation lose or double anything?

Run: python -m benchmarks.check_resume --out outputs/resume -- experiment=demo seeds.count=10

The evaluation is run once without interruption and once killed at random moments, each time
resumed by the same command. Both must end with the same outcomes, each episode once.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from robot.journal import read_lines

WALL = ("latencies", "retries")


def command(out: Path, settings: list[str]) -> list[str]:
    """Return the command of one run."""
    ambidex = Path(sys.executable).with_name("ambidex")
    return [str(ambidex), "eval", *settings, f"out={out}", "report=false"]


def outcomes(out: Path) -> dict[str, dict[str, Any]]:
    """Return each episode by its key, without wall times; a doubled key ends the check."""
    found: dict[str, dict[str, Any]] = {}
    for line in read_lines(out / "episodes.jsonl"):
        key = f"{line['arm']}/{line['task']}/{line['seed']}"
        if key in found:
            raise SystemExit(f"{key} is in {out} twice")
        found[key] = {k: v for k, v in line.items() if k not in WALL}
    return found


def kill_once(out: Path, settings: list[str], wait_s: float) -> bool:
    """Start or resume the run, kill it after ``wait_s``; return whether it was still running."""
    process = subprocess.Popen(command(out, settings), stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def main() -> None:
    """Run, kill, resume and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("settings", nargs="+", help="settings of ambidex eval")
    told = parser.parse_args()
    whole, cut = told.out / "whole", told.out / "cut"
    shutil.rmtree(told.out, ignore_errors=True)
    began = time.monotonic()
    subprocess.run(command(whole, told.settings), check=True, stderr=subprocess.DEVNULL)
    duration = time.monotonic() - began
    expected = outcomes(whole)
    moments = random.Random(told.seed)
    kept = kill = attempts = 0
    while kill < told.kills:
        attempts += 1
        # Late enough that most moments fall among episodes, early enough that some fall before.
        wait_s = moments.uniform(0.2, 1.0) * min(duration, 0.5 * duration + 5.0)
        if not kill_once(cut, told.settings, wait_s):
            # It ended before the moment came: that is no kill, and a new run begins.
            print(f"the run was complete before {wait_s:.1f} s")
            complete = told.out / f"complete-{attempts}"
            shutil.move(cut, complete)
            done = outcomes(complete)
            if done != expected:
                raise SystemExit("the resumed run differs from the uninterrupted one")
            kept = 0
            continue
        kill += 1
        before, kept = kept, len(outcomes(cut))
        if kept < before:
            raise SystemExit(f"kill {kill} lost {before - kept} episodes")
        print(f"kill {kill} after {wait_s:.1f} s: {kept} of {len(expected)} episodes kept")
    subprocess.run(command(cut, told.settings), check=True, stderr=subprocess.DEVNULL)
    found = outcomes(cut)
    equal = found == expected
    print(
        json.dumps(
            {
                "kills": told.kills,
                "episodes": len(expected),
                "lost": len(expected.keys() - found.keys()),
                "doubled": 0,
                "equal": equal,
            }
        )
    )
    if not equal:
        raise SystemExit("the resumed run differs from the uninterrupted one")


if __name__ == "__main__":
    main()
