"""What the cameras of a simulated scene see.

Axes: ``h w 3`` an upright image, ``g`` geoms. Lengths [m], angles [rad] unless named otherwise.

``exact`` is robosuite's own picture. ``fast`` draws a copy of the model with coarser meshes and no
reflections or anti-aliasing, and only the geoms inside each camera's view; the physics does not
know of the copy. Either setting changes pixels and belongs to the spec.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

import mujoco
import numpy as np
from jaxtyping import Bool, Float, UInt8

from robot.errors import UnknownName
from sim.decimation import decimated
from sim.render import drawing

Quality = Literal["exact", "fast"]

OVERVIEW = "overview"
COLLISION_GROUP = 0
HIDDEN_GROUP = 5
# What may change between frames without a new model: looks that robosuite or a variation sets.
LOOKS = ("geom_rgba", "geom_matid", "site_rgba", "mat_rgba", "light_diffuse", "light_ambient",
         "light_specular", "light_active", "cam_fovy")  # fmt: skip


class Cameras:
    """Named cameras of one model that share a GL context.

    Args:
        model: The model whose data is drawn; it is never written to.
        sizes: ``{name: (height, width)}`` [pixel]. Names are the model's cameras, or ``overview``.
        quality: ``exact`` or ``fast``.

    Raises:
        UnknownName: If the model has no such camera.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        sizes: Mapping[str, tuple[int, int]],
        quality: Quality = "fast",
    ) -> None:
        if quality not in ("exact", "fast"):
            raise UnknownName("image quality", quality, ["exact", "fast"])
        self.model = model
        self.sizes = {name: (int(h), int(w)) for name, (h, w) in sizes.items()}
        self.quality: Quality = quality
        self._views = {name: _view(model, name) for name in sizes}
        self._stage: _Stage | None = None

    def render(
        self, data: mujoco.MjData, name: str, *, size: tuple[int, int] | None = None
    ) -> UInt8[np.ndarray, "h w 3"]:
        """Return what camera ``name`` sees of ``data``, upright.

        Args:
            data: A state of the model; positions must be up to date (after a step or forward).
            name: A camera of the model, or ``overview``.
            size: ``(height, width)`` [pixel] of this picture alone; by default the camera's own.

        Raises:
            UnknownName: If the model has no such camera, or no size is known for it.
            InfrastructureError: If no GL library can render.
        """
        if size is None:
            if name not in self.sizes:
                raise UnknownName("camera with a size", name, list(self.sizes))
            size = self.sizes[name]
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = _view(self.model, name)
        with drawing():
            if self._stage is None:
                self._stage = _Stage(self.model, self.quality)
            return self._stage.draw(data, view, size)

    def close(self) -> None:
        """Free what the GL library holds; safe to call twice. The next render opens it anew."""
        if self._stage is not None:
            with drawing():
                self._stage.free()
            self._stage = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def camera_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return every name that can be rendered."""
    return (*(model.camera(i).name for i in range(model.ncam)), OVERVIEW)


def _view(model: mujoco.MjModel, name: str) -> mujoco.MjvCamera:
    view = mujoco.MjvCamera()
    if name == OVERVIEW:
        _overlook(view)
        return view
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name)
    if index < 0:
        raise UnknownName("camera", name, list(camera_names(model)))
    view.type = mujoco.mjtCamera.mjCAMERA_FIXED
    view.fixedcamid = index
    return view


def _overlook(view: mujoco.MjvCamera) -> None:
    """Look down from the front at both arms and all that lies between them."""
    view.type = mujoco.mjtCamera.mjCAMERA_FREE
    view.lookat = (0.0, 0.0, 1.0)
    view.distance = 1.95
    view.azimuth = 180.0
    view.elevation = -32.0


def _free_pose(
    view: mujoco.MjvCamera,
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]:
    """Return where a free camera is and its axes (right, up, back) as columns."""
    azimuth, elevation = np.deg2rad((view.azimuth, view.elevation))
    forward = np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )
    right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
    axes = np.stack([right, np.cross(right, forward), -forward], axis=1)
    return view.lookat - view.distance * forward, axes


def _inside(
    centres: Float[np.ndarray, "g 3"],
    radii: Float[np.ndarray, " g"],
    at: Float[np.ndarray, " 3"],
    axes: Float[np.ndarray, "3 3"],
    *,
    fovy: float,
    aspect: float,
) -> Bool[np.ndarray, " g"]:
    """Return which spheres touch the cone of view.

    Args:
        centres: Middles of the spheres, in the world [m].
        radii: Their radii [m].
        at: Where the camera is [m].
        axes: Its axes (right, up, back) as columns.
        fovy: Vertical opening [degree].
        aspect: Width over height.
    """
    local = (centres - at) @ axes
    across, up, depth = local[:, 0], local[:, 1], -local[:, 2]
    tall = np.tan(np.deg2rad(fovy) / 2.0)
    wide = tall * aspect
    return (
        (depth > -radii)
        & (np.abs(up) - tall * depth < radii * np.sqrt(1.0 + tall * tall))
        & (np.abs(across) - wide * depth < radii * np.sqrt(1.0 + wide * wide))
    )


class _Stage:
    """What is held in GL for one model at one quality; used with the context current."""

    def __init__(self, model: mujoco.MjModel, quality: Quality) -> None:
        self._source = model
        self._fast = quality == "fast"
        self._drawn = decimated(model) if self._fast else decimated(model, keep=1.0)
        if self._fast:
            self._drawn.vis.quality.offsamples = 0
        self._option = mujoco.MjvOption()
        self._option.geomgroup[COLLISION_GROUP] = 0
        self._pert = mujoco.MjvPerturb()
        self._scene = mujoco.MjvScene(self._drawn, maxgeom=1000)
        if self._fast:
            self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        # A plane has no bounding sphere: it is everywhere.
        self._bounds = np.where(model.geom_rbound > 0.0, model.geom_rbound, np.inf)
        self._groups = model.geom_group.copy()
        self._context: Any = None
        self._room = (0, 0)
        self._pixels = np.empty(0, dtype=np.uint8)
        self._looks = [(getattr(self._drawn, n), getattr(model, n)) for n in LOOKS]

    def draw(
        self, data: mujoco.MjData, view: mujoco.MjvCamera, size: tuple[int, int]
    ) -> UInt8[np.ndarray, "h w 3"]:
        height, width = size
        if height > self._room[0] or width > self._room[1]:
            self._widen(height, width)
        for drawn, source in self._looks:
            np.copyto(drawn, source)
        if self._fast:
            # robosuite hides a site by a negative opacity, which is drawn, unseen, all the same.
            np.maximum(self._source.site_rgba, 0.0, out=self._drawn.site_rgba)
            self._cull(data, view, width / height)
        mujoco.mjv_updateScene(
            self._drawn, data, self._option, self._pert, view, mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )  # fmt: skip
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        rect = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(rect, self._scene, self._context)
        pixels = self._pixels[: height * width * 3].reshape(height, width, 3)
        mujoco.mjr_readPixels(pixels, None, rect, self._context)
        return pixels[::-1].copy()

    def _cull(self, data: mujoco.MjData, view: mujoco.MjvCamera, aspect: float) -> None:
        """Put the geoms whose bounding spheres lie outside the view into a hidden group."""
        if view.type == mujoco.mjtCamera.mjCAMERA_FIXED:
            at, axes = data.cam_xpos[view.fixedcamid], data.cam_xmat[view.fixedcamid].reshape(3, 3)
            fovy = float(self._drawn.cam_fovy[view.fixedcamid])
        else:
            at, axes = _free_pose(view)
            fovy = float(self._drawn.vis.global_.fovy)
        inside = _inside(data.geom_xpos, self._bounds, at, axes, fovy=fovy, aspect=aspect)
        np.copyto(self._drawn.geom_group, np.where(inside, self._groups, HIDDEN_GROUP))

    def _widen(self, height: int, width: int) -> None:
        """Make the drawing buffer large enough; a new one costs a second, so it only grows."""
        self.free()
        self._room = (max(height, self._room[0]), max(width, self._room[1]))
        self._drawn.vis.global_.offheight, self._drawn.vis.global_.offwidth = self._room
        self._context = mujoco.MjrContext(self._drawn, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._pixels = np.empty(self._room[0] * self._room[1] * 3, dtype=np.uint8)

    def free(self) -> None:
        if self._context is not None:
            self._context.free()
            self._context = None
