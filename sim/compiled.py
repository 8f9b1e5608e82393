"""Compiling Python that calls MuJoCo's C functions, and keeping the result on disk.

Addresses of ``mjModel``, ``mjData`` and arrays are plain integers.
"""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import llvmlite.binding
import mujoco
import numba
from numba import types
from numba.core import config


def _load_library() -> None:
    folder = Path(mujoco.__file__).parent
    found = sorted(p for p in folder.glob("*mujoco*") if p.suffix != ".py" and p.is_file())
    if not found:
        raise ImportError(
            f"no MuJoCo library lies in {folder}; reinstall mujoco=={mujoco.__version__}"
        )
    llvmlite.binding.load_library_permanently(str(found[0]))


_load_library()


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Compile ``function`` when first called; it must neither raise nor touch Python objects.

    The code is kept beside the source or in the user's cache folder; where neither can be written,
    in a temporary folder. ``NUMBA_CACHE_DIR`` overrides all of them.
    """
    # Tests wrap checks of shapes around every function; only what is inside compiles.
    plain = inspect.unwrap(function)
    jit: Any = numba.njit(nogil=True, cache=True, error_model="numpy")
    try:
        return jit(plain)
    except RuntimeError:  # numba found no folder that it may write to
        os.environ["NUMBA_CACHE_DIR"] = str(Path(gettempdir()) / "ambidex-numba")
        config.reload_config()
        return jit(plain)


_pair = types.void(types.intp, types.intp)
step1 = types.ExternalFunction("mj_step1", _pair)
step2 = types.ExternalFunction("mj_step2", _pair)
jac_site = types.ExternalFunction(
    "mj_jacSite", types.void(types.intp, types.intp, types.intp, types.intp, types.int32)
)
