"""Say what keeps this machine from running, in words and with the remedy.

Facts are gathered first and judged second, so that every sickness can be tried on a healthy
machine.
"""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.table import Table

from robot.machine import OPENCV, Facts, gather

# Versions that are known to give other results, or none.
NEWEST_MUJOCO = (3, 3, 7)
FEW_BYTES, TOO_FEW_BYTES = 5e9, 2e8
WORKS = "rendering works"


class Health(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        subject: What was looked at.
        health: How bad it is.
        found: What was found.
        remedy: What to do; empty if nothing.
    """

    subject: str
    health: Health
    found: str
    remedy: str = ""


def doctor(
    *,
    out: Path = Path(),
    facts: Facts | None = None,
    console: Console | None = None,
) -> int:
    """Print the diagnosis and return the exit code: 1 if something fails, else 0.

    Args:
        out: Where results will go.
        facts: A machine to judge; this one by default.
        console: Where the diagnosis is shown.
    """
    findings = diagnose(facts or gather(out))
    console = console or Console()
    table = Table(box=None, pad_edge=False)
    for title in ("", "subject", "found and remedy"):
        table.add_column(title, overflow="fold")
    colour = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "red"}
    for finding in findings:
        said = finding.found + (f"\n-> {finding.remedy}" if finding.remedy else "")
        mark = f"[{colour[finding.health]}]{finding.health}[/]"
        table.add_row(mark, finding.subject, said.replace("[", "\\["))
    console.print(table)
    return 1 if any(f.health is Health.FAIL for f in findings) else 0


def diagnose(facts: Facts) -> list[Finding]:
    """Return what the facts mean, one finding a subject."""
    return [check(facts) for check in CHECKS]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _ok(subject: str, found: str) -> Finding:
    return Finding(subject=subject, health=Health.OK, found=found)


def _warn(subject: str, found: str, remedy: str) -> Finding:
    return Finding(subject=subject, health=Health.WARN, found=found, remedy=remedy)


def _fail(subject: str, found: str, remedy: str) -> Finding:
    return Finding(subject=subject, health=Health.FAIL, found=found, remedy=remedy)


def _python(facts: Facts) -> Finding:
    found = ".".join(map(str, facts.python))
    if facts.python != (3, 12):
        return _fail("python", found, "LeRobot 0.6.1 and the pinned packages need Python 3.12")
    return _ok("python", f"{found} on {platform.system()}")


def _rendering(facts: Facts) -> Finding:
    if facts.rendering.startswith(WORKS):
        return _ok("rendering", facts.rendering)
    known = "apt-get" in facts.rendering or "MUJOCO_GL" in facts.rendering
    remedy = "apt-get install libegl1 libgl1-mesa-dri libosmesa6, or set MUJOCO_GL=egl or osmesa"
    return _fail("rendering", facts.rendering, "" if known else remedy)


def _opencv(facts: Facts) -> Finding:
    there = {name: facts.versions[name] for name in OPENCV if name in facts.versions}
    found = ", ".join(f"{name} {version}" for name, version in there.items()) or "none"
    if not there:
        return _fail("opencv", found, "pip install 'opencv-python>=4.9,<4.14'")
    if len(set(there.values())) > 1:
        return _fail(
            "opencv",
            f"{found}: they write the same folder cv2 at different versions",
            f"pip uninstall {' '.join(there)}, then pip install 'opencv-python>=4.9,<4.14'",
        )
    if _numbers(next(iter(there.values())))[:2] >= (4, 14):
        return _fail(
            "opencv", found, "LeRobot needs OpenCV below 4.14: pip install 'opencv-python<4.14'"
        )
    if len(there) > 1:
        return _warn(
            "opencv",
            f"{found}: they share the folder cv2; uninstalling one breaks the other",
            "keep one of them, or uninstall both and install one anew",
        )
    return _ok("opencv", found)


def _numpy(facts: Facts) -> Finding:
    numpy, mink = facts.versions.get("numpy", "none"), facts.versions.get("mink")
    found = f"numpy {numpy}, mink {mink or 'none'}"
    if _numbers(numpy)[:1] < (2,):
        return _fail("numpy and mink", found, "LeRobot needs numpy 2: pip install 'numpy>=2,<2.3'")
    if mink is not None and _numbers(mink) < (0, 0, 10):
        return _fail(
            "numpy and mink",
            f"{found}: this mink was built for numpy 1",
            "pip install 'mink>=0.0.10'; robosuite 1.5.2 pins an old one, robosuite 1.5.1 does not",
        )
    return _ok("numpy and mink", found)


def _mujoco(facts: Facts) -> Finding:
    mujoco, robosuite = facts.versions.get("mujoco"), facts.versions.get("robosuite")
    found = f"mujoco {mujoco or 'none'}, robosuite {robosuite or 'none'}"
    remedy = "pip install mujoco==3.3.7 'robosuite>=1.5.1,<1.5.2'"
    if mujoco is None or robosuite is None:
        return _fail("mujoco and robosuite", found, remedy)
    if _numbers(mujoco) > NEWEST_MUJOCO and _numbers(robosuite)[:2] == (1, 5):
        return _fail(
            "mujoco and robosuite",
            f"{found}: MuJoCo after 3.3.7 changed mj_fullM, which robosuite 1.5 calls",
            remedy,
        )
    if _numbers(mujoco) != NEWEST_MUJOCO or _numbers(robosuite) != (1, 5, 1):
        return _warn(
            "mujoco and robosuite",
            f"{found}: other versions change success rates by several points",
            f"{remedy} before comparing with published numbers",
        )
    return _ok("mujoco and robosuite", found)


def _name(facts: Facts) -> Finding:
    there = facts.versions.get("robotframework")
    if there is not None:
        return _fail(
            "package name",
            f"robotframework {there} also ships a package `robot`",
            "pip uninstall robotframework, then install ambidex anew",
        )
    return _ok("package name", f"`robot` is imported from {facts.package}")


def _learning(facts: Facts) -> Finding:
    torch, lerobot = facts.versions.get("torch"), facts.versions.get("lerobot")
    found = f"torch {torch or 'none'}, lerobot {lerobot or 'none'}"
    remedy = "pip install lerobot==0.6.1 'torch>=2.7,<2.12'"
    if torch is None or lerobot is None:
        return _fail("torch and lerobot", found, remedy)
    if not (2, 7) <= _numbers(torch)[:2] < (2, 12) or lerobot != "0.6.1":
        return _warn("torch and lerobot", f"{found}: not the versions this was tested with", remedy)
    return _ok("torch and lerobot", found)


def _threads(facts: Facts) -> Finding:
    asked = facts.environment.get("OMP_NUM_THREADS", "")
    found = f"{facts.cores} cores, OMP_NUM_THREADS={asked or 'unset'}; a worker uses one thread"
    if asked.isdigit() and int(asked) > facts.cores:
        return _warn("threads", found, f"set OMP_NUM_THREADS to at most {facts.cores}")
    return _ok("threads", found)


def _disk(facts: Facts) -> Finding:
    found = f"{facts.free / 1e9:.1f} GB free in {facts.folder}"
    if not facts.writable:
        return _fail("disk", f"{facts.folder} is not writable", "choose another out folder")
    if facts.free < TOO_FEW_BYTES:
        return _fail("disk", found, "free at least 1 GB, or choose another out folder")
    if facts.free < FEW_BYTES:
        return _warn("disk", found, "a data set and its checkpoints take a few GB; free some")
    return _ok("disk", found)


def _video(facts: Facts) -> Finding:
    if "libx264" not in facts.encoders:
        return _warn(
            "video", "no H.264 encoder, so reports have no films", "pip install 'av>=15,<16'"
        )
    return _ok("video", "H.264 encoder is there")


def _ray(facts: Facts) -> Finding:
    there = facts.versions.get("ray")
    return _ok("ray", there or "not installed; only executor=ray needs it (ambidex[ray])")


CHECKS: tuple[Callable[[Facts], Finding], ...] = (
    _python,
    _rendering,
    _opencv,
    _numpy,
    _mujoco,
    _name,
    _learning,
    _threads,
    _disk,
    _video,
    _ray,
)
