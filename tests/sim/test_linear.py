"""Linear algebra of the compiled control laws, and where its code is kept."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba.core import caching, config
from scipy.spatial.transform import Rotation

import sim.compiled
from sim.linear import factor, rotation, solve

numbers = st.floats(-3, 3, allow_subnormal=False)


@given(arrays(float, (6, 6), elements=numbers), arrays(float, 6, elements=numbers))
@settings(max_examples=50, deadline=None)
def test_factor_and_solve_invert_a_positive_matrix(half: np.ndarray, x: np.ndarray) -> None:
    matrix = half @ half.T + np.eye(6)
    root, answer = np.zeros((6, 6)), x.copy()
    factor(matrix, 6, root)
    solve(root, 6, answer)
    np.testing.assert_allclose(matrix @ answer, x, atol=1e-8)


@given(arrays(float, 3, elements=st.floats(-6, 6, allow_subnormal=False)))
@settings(max_examples=50, deadline=None)
def test_rotation_is_that_of_scipy(vector: np.ndarray) -> None:
    out = np.zeros((3, 3))
    rotation(vector, out)
    np.testing.assert_allclose(out, Rotation.from_rotvec(vector).as_matrix(), atol=1e-12)


def test_singular_matrix_gives_finite_numbers() -> None:
    root, x = np.zeros((3, 3)), np.ones(3)
    factor(np.ones((3, 3)), 3, root)
    solve(root, 3, x)
    assert np.isfinite(x).all()


def test_code_is_kept_in_a_temporary_folder_if_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only = [caching.UserProvidedCacheLocator]
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", only)
    monkeypatch.setattr(sim.compiled, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    config.reload_config()

    def double(x: float) -> float:
        return 2.0 * x

    try:
        assert sim.compiled.compiled(double)(1.5) == 3.0
        assert os.environ["NUMBA_CACHE_DIR"].startswith(str(tmp_path))
        assert list(tmp_path.rglob("*.nbi"))
    finally:
        monkeypatch.undo()
        config.reload_config()
