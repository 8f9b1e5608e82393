"""Building robosuite's two-arm environments as models: the MJCF, the object references, no loop.

robosuite is asked for neither renderer nor observations; both are made elsewhere, and cheaper.
Lengths [m], angles [rad].
"""

import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from types import ModuleType
from typing import Any

import numpy as np

from robot.errors import UnknownName

TASKS = {
    "lift": "TwoArmLift",
    "peg": "TwoArmPegInHole",
    "handover": "TwoArmHandover",
    "transport": "TwoArmTransport",
}
CONTROLS = ("joint_position", "osc_pose")
ROBOTS = ("IIWA", "Kinova3", "Panda", "Sawyer", "UR5e")
STIFFNESS = 150.0
"""Gain of both controllers [1/s^2]. robosuite's 50 for joints is too soft to lift a pot."""

PHYSICS_STEP = 0.002
"""Time step of the physics [s]: robosuite's."""

MODEL_SEED = 0
"""robosuite draws the size of pegs and hammers while building; everybody gets the same ones."""

_generator = RLock()


@contextmanager
def global_seed(seed: int) -> Generator[None]:
    """Seed numpy's global generator, from which robosuite draws, and give it back as it was.

    Threads share that generator, so only one of them is in here at a time.
    """
    with _generator:
        before = np.random.get_state()  # noqa: NPY002  robosuite draws from nothing else
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


@cache
def import_robosuite() -> ModuleType:
    """Return robosuite, imported without its warnings, with a Sawyer that compiles."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # Invalid escapes in its docstrings: said once, when no byte code is cached yet.
            warnings.simplefilter("ignore", SyntaxWarning)
            import robosuite
            from robosuite.models.robots.robot_model import REGISTERED_ROBOTS
    finally:
        logging.disable(logging.NOTSET)
    logging.getLogger("robosuite_logs").setLevel(logging.ERROR)

    _mend(REGISTERED_ROBOTS["Sawyer"])
    return robosuite


def _mend(sawyer: Any) -> None:
    """Let a Sawyer compile: MuJoCo refuses its flat screen as a body without volume.

    Masses are unchanged, since the robot's inertias are given apart from its meshes.
    """
    build = sawyer.__init__

    def build_with_shells(self: Any, idn: int | str = 0) -> None:
        build(self, idn=idn)
        for mesh in self.asset.findall("mesh"):
            mesh.set("inertia", "shell")

    sawyer.__init__ = build_with_shells


def make_suite(
    *, task: str, robots: Sequence[str], control: str = "joint_position", rate: float = 20.0
) -> Any:
    """Return robosuite's environment, reset once.

    Args:
        task: One of ``TASKS``.
        robots: Names of the two robots; the first becomes the left arm.
        control: One of ``CONTROLS``.
        rate: Control steps a second [Hz].

    Raises:
        UnknownName: If nothing is called so.
        ValueError: If there are not two robots, or a control step is no multiple of 2 ms.
    """
    if task not in TASKS:
        raise UnknownName("task", task, list(TASKS))
    if control not in CONTROLS:
        raise UnknownName("control", control, list(CONTROLS))
    for name in robots:
        if name not in ROBOTS:
            raise UnknownName("robot", name, list(ROBOTS))
    if len(robots) != 2:
        raise ValueError(f"two arms need two robots, and {list(robots)} was given")
    substeps = 1.0 / (rate * PHYSICS_STEP) if rate > 0 else 0.0
    if substeps < 1 or abs(substeps - round(substeps)) > 1e-6:
        raise ValueError(
            f"a rate of {rate:g} Hz is no whole number of physics steps of "
            f"{PHYSICS_STEP} s; use 20, 25, 50 or 100 Hz"
        )
    kwargs: dict[str, Any] = {"gripper_types": None} if task == "peg" else {}
    with global_seed(MODEL_SEED):
        suite = import_robosuite().make(
            TASKS[task],
            robots=list(robots),
            controller_configs=[_controller(name, control) for name in robots],
            has_renderer=False,
            has_offscreen_renderer=False,
            use_camera_obs=False,
            hard_reset=False,
            ignore_done=True,
            control_freq=rate,
            renderer="mujoco",
            **kwargs,
        )
        suite.reset()
    return suite


def _controller(robot: str, control: str) -> dict[str, Any]:
    from robosuite.controllers import load_composite_controller_config

    config: Any = load_composite_controller_config(robot=robot)
    arm = config["body_parts"]["right"]
    common = {
        "type": control.upper(),
        "input_type": "absolute",
        "input_max": 1,
        "input_min": -1,
        "output_max": 1,
        "output_min": -1,
        "kp": STIFFNESS,
        "damping_ratio": 1,
        "impedance_mode": "fixed",
        "kp_limits": [0, 300],
        "damping_ratio_limits": [0, 10],
        "interpolation": None,
        "ramp_ratio": 0.2,
        "gripper": arm["gripper"],
    }
    if control == "joint_position":
        config["body_parts"]["right"] = {**common, "qpos_limits": None}
    else:
        config["body_parts"]["right"] = {
            **common,
            "position_limits": None,
            "orientation_limits": None,
            "uncouple_pos_ori": True,
            "input_ref_frame": "world",
        }
    return config
