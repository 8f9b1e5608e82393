"""Every sickness is named with its remedy, and only a sickness makes the exit code 1."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from robot.jobs.doctor import Health, diagnose, doctor
from robot.machine import Facts, gather

HEALTHY = Facts(
    python=(3, 12),
    versions={
        "numpy": "2.2.6",
        "mink": "1.1.0",
        "mujoco": "3.3.7",
        "robosuite": "1.5.1",
        "torch": "2.11.0",
        "lerobot": "0.6.1",
        "opencv-python": "4.13.0.92",
    },
    package="somewhere/robot",
    free=5e10,
    writable=True,
    folder="somewhere",
    rendering="rendering works (egl)",
    encoders=frozenset({"libx264"}),
    cores=2,
)


def sick(**versions: str) -> Facts:
    return replace(HEALTHY, versions={**HEALTHY.versions, **versions})


def told(facts: Facts) -> tuple[int, str]:
    console = Console(file=StringIO(), width=300)
    code = doctor(facts=facts, console=console)
    return code, console.file.getvalue()  # type: ignore[attr-defined]


def test_a_healthy_machine_has_nothing_to_mend() -> None:
    assert {f.health for f in diagnose(HEALTHY)} == {Health.OK}
    assert told(HEALTHY)[0] == 0


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (sick(**{"opencv-python-headless": "4.11.0.86"}), "the same folder cv2 at different"),
        (sick(**{"opencv-python": "4.14.0.1"}), "OpenCV below 4.14"),
        (sick(numpy="1.26.4"), "numpy>=2,<2.3"),
        (sick(mink="0.0.5"), "mink>=0.0.10"),
        (sick(mujoco="3.8.1"), "pip install mujoco==3.3.7"),
        (sick(robotframework="7.0"), "pip uninstall robotframework"),
        (replace(HEALTHY, python=(3, 13)), "need Python 3.12"),
        (replace(HEALTHY, rendering="rendering fails: no EGL"), "apt-get install libegl1"),
        (replace(HEALTHY, free=1e8), "free at least 1 GB"),
        (replace(HEALTHY, writable=False), "choose another out folder"),
    ],
)
def test_a_sickness_fails_with_its_remedy(facts: Facts, words: str) -> None:
    code, said = told(facts)
    assert code == 1
    assert words in said


@pytest.mark.parametrize(
    "facts",
    [
        sick(**{"opencv-python-headless": "4.13.0.92"}),
        sick(mujoco="3.3.0"),
        replace(HEALTHY, free=1e9),
        replace(HEALTHY, encoders=frozenset()),
        replace(HEALTHY, environment={"OMP_NUM_THREADS": "64"}),
    ],
)
def test_a_weakness_warns_with_a_remedy_and_does_not_fail(facts: Facts) -> None:
    warned = [f for f in diagnose(facts) if f.health is Health.WARN]
    assert len(warned) == 1
    assert warned[0].remedy
    assert told(facts)[0] == 0


def test_a_remedy_that_the_renderer_names_is_not_said_twice() -> None:
    line = "rendering fails: no EGL; install a software renderer: apt-get install libegl1"
    said = told(replace(HEALTHY, rendering=line))[1]
    assert said.count("apt-get") == 1


def test_the_facts_of_this_machine_can_be_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robot.machine.RENDER", "print('rendering works (trial)')")
    facts = gather(tmp_path / "not" / "yet")
    assert facts.writable
    assert facts.folder == str(tmp_path)
    assert facts.rendering == "rendering works (trial)"
    assert "numpy" in facts.versions
