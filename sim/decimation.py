"""A copy of a model whose visual meshes have a tenth of their faces, for drawing only.

Axes: ``v`` vertices, ``f`` faces, ``c`` corners (three to a face). Lengths [m].

The meshes are edited in place inside a copied ``MjModel``: a coarser mesh always fits where the
fine one was, so no other array moves and the copy can be drawn with the original ``MjData``.
"""

import copy
import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import fast_simplification
import mujoco
import numpy as np
from jaxtyping import Float, Int

SLOW_S = 0.3
SMALL = 300  # faces; a mesh of fewer is left as it is
LOST = (
    0.06  # part of the surface; a mesh of open shells falls apart beyond it, and keeps more faces
)
CREASE = np.cos(np.deg2rad(40.0))


class CoarseMesh(NamedTuple):
    """A mesh as MuJoCo draws it: each corner has a vertex and a normal of its own."""

    vertices: Float[np.ndarray, "v 3"]
    faces: Int[np.ndarray, "f 3"]
    normals: Float[np.ndarray, "n 3"]
    corners: Int[np.ndarray, "f 3"]


_meshes: dict[str, CoarseMesh] = {}


def decimated(model: mujoco.MjModel, *, keep: float = 0.1) -> mujoco.MjModel:
    """Return a copy of ``model`` to draw with: visual meshes keep a part of their faces.

    Args:
        model: The model whose physics runs on, untouched.
        keep: Part of the faces to keep, in (0, 1]; below 0.1 grippers look wrong from the wrist.

    Raises:
        ValueError: If ``keep`` lies outside (0, 1].
    """
    if not 0.0 < keep <= 1.0:
        raise ValueError(f"keep is {keep}; a part of the faces in (0, 1] is needed")
    drawn = copy.copy(model)
    if keep == 1.0:
        return drawn
    wanted = {i: _mesh_key(model, i, keep) for i in _plain_meshes(model)}
    missing = {i: key for i, key in wanted.items() if key not in _meshes}
    if missing:
        _fill(model, missing, keep)
    for i, key in wanted.items():
        _write(drawn, i, _meshes[key])
    return drawn


def _plain_meshes(model: mujoco.MjModel) -> list[int]:
    """Return the meshes that are only ever drawn, and without a texture that would smear."""
    used = model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    textured = np.zeros(model.ngeom, dtype=bool)
    with_material = model.geom_matid >= 0
    textured[with_material] = (model.mat_texid[model.geom_matid[with_material]] >= 0).any(axis=1)
    smeared = set(model.geom_dataid[used & textured].tolist())
    ids = set(model.geom_dataid[used].tolist()) - smeared
    return sorted(i for i in ids if model.mesh_facenum[i] > SMALL)


def _part(model: mujoco.MjModel, mesh: int, name: str, kind: str) -> np.ndarray:
    start, count = getattr(model, f"mesh_{kind}adr")[mesh], getattr(model, f"mesh_{kind}num")[mesh]
    part: np.ndarray = getattr(model, name)[start : start + count]
    return part


def _mesh_key(model: mujoco.MjModel, mesh: int, keep: float) -> str:
    digest = hashlib.sha256(f"{SMALL} {LOST} {keep}".encode())
    digest.update(_part(model, mesh, "mesh_vert", "vert").tobytes())
    digest.update(_part(model, mesh, "mesh_face", "face").tobytes())
    return digest.hexdigest()[:32]


def _fill(model: mujoco.MjModel, missing: dict[int, str], keep: float) -> None:
    """Put the missing coarse meshes into the process's cache, from disk if they are there."""
    name = hashlib.sha256("".join(sorted(set(missing.values()))).encode()).hexdigest()[:32]
    path = _cache_folder() / f"{name}.npz"
    if path.is_file() and _read(path):
        return
    started = time.monotonic()
    for mesh, key in missing.items():
        if key not in _meshes:
            _meshes[key] = _simplified(
                _part(model, mesh, "mesh_vert", "vert"),
                _part(model, mesh, "mesh_face", "face"),
                keep,
            )
    if time.monotonic() - started > SLOW_S:
        _store(path, set(missing.values()))


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "ambidex" / "meshes"


def _read(path: Path) -> bool:
    """Return whether the file could be read whole; a torn one is written anew."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            keys = {name.split("/")[0] for name in stored.files}
            for key in keys:
                parts = (stored[f"{key}/{field}"] for field in CoarseMesh._fields)
                _meshes[key] = CoarseMesh(*parts)
    except (OSError, ValueError, KeyError, EOFError):
        return False
    return True


def _store(path: Path, keys: set[str]) -> None:
    """Write the coarse meshes for the next process; a disk that refuses costs only time."""
    arrays = {
        f"{key}/{field}": array
        for key in keys
        for field, array in zip(CoarseMesh._fields, _meshes[key], strict=True)
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            np.savez(part, allow_pickle=False, **arrays)
        os.replace(part.name, path)
    except OSError:
        return


def _simplified(
    vertices: Float[np.ndarray, "v 3"], faces: Int[np.ndarray, "f 3"], keep: float
) -> CoarseMesh:
    # MuJoCo gives every corner its own vertex where normals differ: weld them, or edges cannot
    # collapse.
    welded, index = np.unique(vertices, axis=0, return_inverse=True)
    points = np.ascontiguousarray(welded, dtype=np.float32)
    solid = index.reshape(-1)[faces].astype(np.int32)
    surface = _surface(points, solid)
    coarse_vertices, coarse_faces = points, solid
    for part in (keep, 2 * keep, 4 * keep):
        simplify: Any = fast_simplification.simplify  # its types know float64 only
        coarse_vertices, coarse_faces = simplify(
            points, solid, target_count=max(SMALL, round(part * len(faces))), agg=3
        )
        if _surface(coarse_vertices, coarse_faces) > (1.0 - LOST) * surface:
            break
    normals, corners = _corner_normals(coarse_vertices, coarse_faces)
    return CoarseMesh(
        coarse_vertices.astype(np.float32), coarse_faces.astype(np.int32), normals, corners
    )


def _surface(vertices: Float[np.ndarray, "v 3"], faces: Int[np.ndarray, "f 3"]) -> float:
    """Return the area of all faces [m^2]."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2.0)


def _corner_normals(
    vertices: Float[np.ndarray, "v 3"], faces: Int[np.ndarray, "f 3"]
) -> tuple[Float[np.ndarray, "n 3"], Int[np.ndarray, "f 3"]]:
    """Return a normal for each corner: smooth across shallow edges, sharp across creases."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    areas = np.cross(b - a, c - a)
    units = areas / np.maximum(np.linalg.norm(areas, axis=1, keepdims=True), 1e-20)
    corner_vertex = faces.reshape(-1)
    order = np.argsort(corner_vertex, kind="stable")
    counts = np.bincount(corner_vertex, minlength=len(vertices))
    starts = np.cumsum(counts) - counts
    # Every pair of corners that share a vertex.
    repeats = counts[corner_vertex]
    first = np.repeat(np.arange(len(corner_vertex)), repeats)
    offsets = np.arange(len(first)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    second = order[starts[corner_vertex[first]] + offsets]
    near = np.einsum("pk,pk->p", units[first // 3], units[second // 3]) > CREASE
    total = np.zeros((len(corner_vertex), 3))
    np.add.at(total, first[near], areas[second[near] // 3])
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-20)
    normals, corners = np.unique(total.astype(np.float32), axis=0, return_inverse=True)
    return normals, corners.reshape(-1, 3).astype(np.int32)


def _write(drawn: mujoco.MjModel, mesh: int, coarse: CoarseMesh) -> None:
    sizes = (len(coarse.vertices), len(coarse.faces), len(coarse.normals))
    room = (drawn.mesh_vertnum[mesh], drawn.mesh_facenum[mesh], drawn.mesh_normalnum[mesh])
    if any(size > space for size, space in zip(sizes, room, strict=True)):
        return  # no smaller than before: the fine mesh stays
    vertex, face, normal = (
        int(getattr(drawn, f"mesh_{kind}adr")[mesh]) for kind in ("vert", "face", "normal")
    )
    drawn.mesh_vert[vertex : vertex + sizes[0]] = coarse.vertices
    drawn.mesh_face[face : face + sizes[1]] = coarse.faces
    drawn.mesh_normal[normal : normal + sizes[2]] = coarse.normals
    drawn.mesh_facenormal[face : face + sizes[1]] = coarse.corners
    drawn.mesh_vertnum[mesh], drawn.mesh_facenum[mesh], drawn.mesh_normalnum[mesh] = sizes
    drawn.mesh_texcoordadr[mesh] = -1
    drawn.mesh_graphadr[mesh] = -1
