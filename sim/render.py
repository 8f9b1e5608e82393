"""The OpenGL context that all cameras of a process draw in, and what to install if there is none.

Software rendering needs no screen: EGL is tried first, OSMesa second; ``MUJOCO_GL=egl`` or
``osmesa`` in the environment decides instead. One context serves every thread: whoever draws holds
its lock, so that a policy's thread may ask for a frame that the control loop did not need.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Protocol

import numpy as np

from robot.errors import InfrastructureError

BACKENDS = ("egl", "osmesa")
PACKAGES = "libegl1 libgl1-mesa-dri libosmesa6"
SIDE = 64  # [pixel]

_REMEDY = f"install a software renderer: apt-get install {PACKAGES}"
_TRIAL = """
import mujoco
from sim.cameras import Cameras
from sim.render import backend

model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><camera name='eye' pos='0 0 3'/>"
    "<geom size='1' group='1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
picture = Cameras(model, {"eye": (16, 16)}, "exact").render(data, "eye")
if picture.max() == picture.min():
    raise SystemExit("the picture is blank: the GL library draws nothing")
print(backend())
"""

_lock = RLock()
_opened: tuple[int, "_Context"] | None = None  # process id


def candidates() -> tuple[str, ...]:
    """Return the backends to try, best first: the one that ``MUJOCO_GL`` names, or all.

    Raises:
        InfrastructureError: If ``MUJOCO_GL`` names a backend that needs a screen, or none.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    if asked in BACKENDS:
        return (asked,)
    if asked:
        raise InfrastructureError(
            f"MUJOCO_GL={asked} cannot render without a screen; unset it, or set one of "
            f"{', '.join(BACKENDS)}"
        )
    return BACKENDS


@contextmanager
def drawing() -> Generator[None]:
    """Hold the process's GL context in this thread; open it on first use.

    The context that was current before is given back: robosuite never asks for its own again.

    Raises:
        InfrastructureError: If no backend can be opened; the message names the packages.
    """
    with _lock:
        context = _context()
        before = context.current()
        context.take()
        try:
            yield
        finally:
            context.give(before)


def backend() -> str:
    """Return the backend in use, ``egl`` or ``osmesa``; open it on first use.

    Raises:
        InfrastructureError: If no backend can be opened.
    """
    with drawing():
        return _context().name


def probe(*, timeout_s: float = 60.0) -> str:
    """Return one line on whether a process of its own can draw a tiny picture, and the remedy.

    A broken GL library may end the process that tries it; so another one tries.

    Args:
        timeout_s: How long to wait for that process [s].
    """
    try:
        tried = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _TRIAL],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"rendering hangs for {timeout_s:g} s; {_REMEDY}"
    if tried.returncode == 0:
        return f"rendering works ({tried.stdout.strip()})"
    if tried.returncode < 0:
        return f"the GL library ended its process with signal {-tried.returncode}; {_REMEDY}"
    said = [line for line in tried.stderr.splitlines() if line.strip()]
    reason = said[-1].partition("InfrastructureError: ")
    return f"rendering fails: {reason[2] or reason[0]}"


def _context() -> "_Context":
    global _opened
    if _opened is None or _opened[0] != os.getpid():
        # One that came through a fork belongs to the parent: it is left alone.
        _opened = (os.getpid(), _open())
    return _opened[1]


def _open() -> "_Context":
    failures: list[str] = []
    for name in candidates():
        try:
            context = _Egl() if name == "egl" else _Osmesa()
        # Each binding fails in its own way: no library, no symbol, no display.
        except Exception as error:
            failures.append(f"{name}: {' '.join(str(error).split()) or type(error).__name__}")
            continue
        os.environ.setdefault("MUJOCO_GL", name)
        return context
    raise InfrastructureError(
        f"no OpenGL library can render without a screen ({'; '.join(failures)}); {_REMEDY}"
    )


class _Context(Protocol):
    """A GL context that threads take in turn."""

    name: str

    def current(self) -> Any:
        """Return whatever is current in this thread."""
        ...

    def take(self) -> None:
        """Make this context current."""
        ...

    def give(self, before: Any) -> None:
        """Make current what was so before, or nothing."""
        ...


class _Egl:
    name = "egl"

    def __init__(self) -> None:
        from mujoco import egl

        self._egl: Any = egl.EGL
        before = self.current()
        context = egl.GLContext(1, 1)
        self._display: Any = egl.EGL_DISPLAY
        self._own: tuple[Any, Any] = (self._display, context._context)
        self._kept = context  # it destroys the context when it is collected,
        # and must not once the interpreter ends: EGL may be shut down before it by then.
        atexit.register(setattr, context, "_context", None)
        self.give(before)

    def current(self) -> tuple[Any, Any] | None:
        context = self._egl.eglGetCurrentContext()
        return (self._egl.eglGetCurrentDisplay(), context) if context else None

    def take(self) -> None:
        self._make(self._own)

    def give(self, before: tuple[Any, Any] | None) -> None:
        if before is None:
            before = (getattr(self, "_display", None), self._egl.EGL_NO_CONTEXT)
        self._make(before)

    def _make(self, pair: tuple[Any, Any]) -> None:
        display, context = pair
        surface = self._egl.EGL_NO_SURFACE
        if not self._egl.eglMakeCurrent(display, surface, surface, context):
            raise InfrastructureError(
                "EGL refused to switch contexts; another library holds the display of this "
                "process: set MUJOCO_GL=osmesa"
            )


class _Osmesa:
    name = "osmesa"

    def __init__(self) -> None:
        from mujoco import osmesa
        from OpenGL import GL
        from OpenGL import osmesa as mesa

        self._mesa: Any = mesa
        self._float: Any = GL.GL_FLOAT
        before = self.current()
        self._kept = osmesa.GLContext(SIDE, SIDE)
        # Pictures are drawn into buffers of MuJoCo's own; OSMesa only insists on having one too.
        self._unused = np.zeros((SIDE, SIDE, 4), dtype=np.float32)
        self.give(before)

    def current(self) -> Any:
        return self._mesa.OSMesaGetCurrentContext() or None

    def take(self) -> None:
        self._kept.make_current()

    def give(self, before: Any) -> None:
        if before is None:
            self._mesa.OSMesaMakeCurrent(None, None, self._float, 0, 0)
        else:
            self._mesa.OSMesaMakeCurrent(before, self._unused, self._float, SIDE, SIDE)
