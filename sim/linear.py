"""Small linear algebra for compiled code: results go into arrays that the caller keeps.

Axes: ``n`` joints of one arm, ``v`` degrees of freedom of the model, ``m`` entries of its sparse
mass matrix. Angles [rad].
"""

import numpy as np
from jaxtyping import Float, Int

from sim.compiled import compiled

SMALLEST_PIVOT = 1e-12
"""Bound of a Cholesky pivot relative to its diagonal; only singular poses come near it."""


@compiled
def mass_block(
    inertia: Float[np.ndarray, " m"],
    address: Int[np.ndarray, " v"],
    parent: Int[np.ndarray, " v"],
    dofs: Int[np.ndarray, " n"],
    place: Int[np.ndarray, " v"],
    n: int,
    out: Float[np.ndarray, "n n"],
) -> None:
    """Fill ``out`` with one arm's block of MuJoCo's mass matrix.

    MuJoCo keeps for each degree of freedom the entries with itself and all its ancestors.

    Args:
        inertia: ``qM``.
        address: ``dof_Madr``.
        parent: ``dof_parentid``.
        dofs: Degrees of freedom of the arm's joints.
        place: Joint of the arm for each degree of freedom, or -1.
        n: Number of joints.
        out: The block; only its first ``n`` rows and columns are written.
    """
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
    for i in range(n):
        dof, entry = dofs[i], address[dofs[i]]
        while dof >= 0:
            j = place[dof]
            if j >= 0:
                out[i, j] = out[j, i] = inertia[entry]
            entry += 1
            dof = parent[dof]


@compiled
def factor(matrix: Float[np.ndarray, "n n"], n: int, out: Float[np.ndarray, "n n"]) -> None:
    """Fill the lower triangle of ``out`` with the Cholesky factor of a positive matrix."""
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            if i == j:
                out[i, i] = np.sqrt(max(total, SMALLEST_PIVOT * matrix[i, i]))
            else:
                out[i, j] = total / out[j, j]


@compiled
def solve_lower(root: Float[np.ndarray, "n n"], n: int, x: Float[np.ndarray, " n"]) -> None:
    """Replace ``x`` by the solution of ``root @ y = x``, ``root`` a lower triangle."""
    for i in range(n):
        for k in range(i):
            x[i] -= root[i, k] * x[k]
        x[i] /= root[i, i]


@compiled
def solve(root: Float[np.ndarray, "n n"], n: int, x: Float[np.ndarray, " n"]) -> None:
    """Replace ``x`` by the solution of ``root @ root.T @ y = x``."""
    solve_lower(root, n, x)
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= root[k, i] * x[k]
        x[i] /= root[i, i]


@compiled
def rotation(vector: Float[np.ndarray, "3"], out: Float[np.ndarray, "3 3"]) -> None:
    """Fill ``out`` with the matrix of a rotation vector [rad]."""
    x, y, z = vector[0], vector[1], vector[2]
    angle = np.sqrt(x * x + y * y + z * z)
    if angle < 1e-4:
        s, c = 1.0 - angle * angle / 6.0, 0.5 - angle * angle / 24.0
    else:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / (angle * angle)
    out[0, 0] = 1.0 - c * (y * y + z * z)
    out[0, 1] = c * x * y - s * z
    out[0, 2] = c * x * z + s * y
    out[1, 0] = c * x * y + s * z
    out[1, 1] = 1.0 - c * (x * x + z * z)
    out[1, 2] = c * y * z - s * x
    out[2, 0] = c * x * z - s * y
    out[2, 1] = c * y * z + s * x
    out[2, 2] = 1.0 - c * (x * x + y * y)
