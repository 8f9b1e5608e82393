import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import mujoco
import numpy as np
import pytest

from robot.errors import UnknownName
from sim.cameras import OVERVIEW, Cameras, camera_names
from sim.decimation import decimated
from sim.suite import make_suite

SIZES = {"agentview": (64, 64), "robot0_eye_in_hand": (48, 64)}


@pytest.fixture(scope="module")
def suite() -> Any:
    return make_suite(task="lift", robots=("Panda", "Panda"))


@pytest.fixture(scope="module")
def model(suite: Any) -> mujoco.MjModel:
    return suite.sim.model._model


@pytest.fixture(scope="module")
def data(suite: Any) -> mujoco.MjData:
    return suite.sim.data._data


@pytest.fixture(scope="module")
def exact(model: mujoco.MjModel) -> Iterator[Cameras]:
    with Cameras(model, SIZES, "exact") as cameras:
        yield cameras


@pytest.fixture(scope="module")
def fast(model: mujoco.MjModel) -> Iterator[Cameras]:
    with Cameras(model, SIZES, "fast") as cameras:
        yield cameras


def psnr(left: np.ndarray, right: np.ndarray) -> float:
    error = np.mean((left.astype(np.float64) - right) ** 2)
    return float(10 * np.log10(255**2 / error))


@pytest.mark.parametrize("name", ["agentview", "frontview", "robot1_eye_in_hand"])
def test_exact_is_robosuites_picture_upright(suite: Any, exact: Cameras, name: str) -> None:
    from robosuite.utils.binding_utils import MjRenderContextOffscreen

    suite.sim.data._data.qpos  # noqa: B018  the state that both draw
    theirs = MjRenderContextOffscreen(suite.sim, device_id=-1)
    theirs.vopt.geomgroup[0] = 0
    try:
        theirs.render(96, 80, camera_id=suite.sim.model.camera_name2id(name))
        picture = theirs.read_pixels(96, 80)[::-1]
    finally:
        suite.sim._render_context_offscreen = None
        del theirs
    ours = exact.render(suite.sim.data._data, name, size=(80, 96))
    np.testing.assert_array_equal(ours, picture)


@pytest.mark.parametrize(
    ("name", "least"), [("agentview", 22.0), ("robot0_eye_in_hand", 22.0), (OVERVIEW, 18.0)]
)
def test_fast_looks_like_exact(
    data: mujoco.MjData, exact: Cameras, fast: Cameras, name: str, least: float
) -> None:
    size = (128, 128)
    assert psnr(exact.render(data, name, size=size), fast.render(data, name, size=size)) > least


def test_culling_changes_no_pixel(data: mujoco.MjData, fast: Cameras) -> None:
    name = "robot0_eye_in_hand"
    culled = fast.render(data, name)
    stage = fast._stage
    assert stage is not None
    bounds = stage._bounds
    stage._bounds = np.full_like(bounds, np.inf)
    try:
        whole = fast.render(data, name)
        assert (stage._drawn.geom_group == stage._groups).all()
    finally:
        stage._bounds = bounds
    np.testing.assert_array_equal(culled, whole)
    fast.render(data, name)
    assert (stage._drawn.geom_group != stage._groups).any()


def test_a_free_camera_culls_as_it_sees(data: mujoco.MjData, fast: Cameras) -> None:
    culled = fast.render(data, OVERVIEW, size=(64, 64))
    stage = fast._stage
    assert stage is not None
    bounds = stage._bounds
    stage._bounds = np.full_like(bounds, np.inf)
    try:
        np.testing.assert_array_equal(culled, fast.render(data, OVERVIEW, size=(64, 64)))
    finally:
        stage._bounds = bounds


def test_drawing_leaves_model_and_physics_as_they_were(
    model: mujoco.MjModel, data: mujoco.MjData, fast: Cameras
) -> None:
    before = (model.mesh_vert.copy(), model.mesh_facenum.copy(), model.geom_group.copy())
    state = data.qpos.copy(), data.geom_xpos.copy()
    fast.render(data, "agentview")
    after = (model.mesh_vert, model.mesh_facenum, model.geom_group)
    for left, right in zip((*before, *state), (*after, data.qpos, data.geom_xpos), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_tenth_of_the_faces_is_left(model: mujoco.MjModel) -> None:
    drawn = decimated(model)
    link = model.mesh("robot0_link5_vis_2").id
    assert drawn.mesh_facenum[link] == pytest.approx(0.1 * model.mesh_facenum[link], rel=0.05)
    fine = model.mesh("robot0_link0_vis_6").id
    assert drawn.mesh_facenum[fine] == model.mesh_facenum[fine]


def test_coarse_meshes_come_back_from_disk(
    model: mujoco.MjModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sim.decimation._meshes", {})
    monkeypatch.setattr("sim.decimation.SLOW_S", 0.0)
    first = decimated(model)
    (path,) = tmp_path.rglob("*.npz")
    monkeypatch.setattr("sim.decimation._meshes", {})
    monkeypatch.setattr("sim.decimation._simplified", None)
    np.testing.assert_array_equal(decimated(model).mesh_vert, first.mesh_vert)
    path.write_bytes(path.read_bytes()[:1000])
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    np.testing.assert_array_equal(decimated(model).mesh_vert, first.mesh_vert)


def test_changed_looks_are_seen(model: mujoco.MjModel, data: mujoco.MjData, fast: Cameras) -> None:
    before = fast.render(data, "agentview")
    colours = model.geom_rgba.copy()
    try:
        model.geom_matid[:], materials = -1, model.geom_matid.copy()
        model.geom_rgba[:, :3] = (0.0, 1.0, 0.0)
        assert (fast.render(data, "agentview") != before).mean() > 0.5
    finally:
        model.geom_rgba[:], model.geom_matid[:] = colours, materials
    np.testing.assert_array_equal(fast.render(data, "agentview"), before)


def test_another_thread_gets_the_same_picture(data: mujoco.MjData, fast: Cameras) -> None:
    here = fast.render(data, "agentview")
    there: list[np.ndarray] = []
    thread = Thread(target=lambda: there.append(fast.render(data, "agentview")))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(there[0], here)


def test_a_larger_picture_leaves_later_small_ones_alone(data: mujoco.MjData, fast: Cameras) -> None:
    small = fast.render(data, "agentview")
    assert fast.render(data, "agentview", size=(200, 300)).shape == (200, 300, 3)
    np.testing.assert_array_equal(fast.render(data, "agentview"), small)


def test_each_picture_is_its_own_array(data: mujoco.MjData, fast: Cameras) -> None:
    first = fast.render(data, "agentview")
    kept = first.copy()
    fast.render(data, "robot0_eye_in_hand")
    np.testing.assert_array_equal(first, kept)
    assert first.flags.writeable


def test_closed_cameras_open_again(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    cameras = Cameras(model, SIZES, "fast")
    before = cameras.render(data, "agentview")
    cameras.close()
    cameras.close()
    np.testing.assert_array_equal(cameras.render(data, "agentview"), before)
    cameras.close()


def test_the_nearest_camera_is_offered(model: mujoco.MjModel) -> None:
    with pytest.raises(UnknownName, match="agentview"):
        Cameras(model, {"agentveiw": (64, 64)})
    with pytest.raises(UnknownName, match="exact"):
        Cameras(model, SIZES, "exactt")  # pyright: ignore[reportArgumentType]
    assert OVERVIEW in camera_names(model)


def test_a_camera_without_a_size_says_which_have_one(data: mujoco.MjData, fast: Cameras) -> None:
    with pytest.raises(UnknownName, match="agentview"):
        fast.render(data, "frontview")


def test_memory_stays_flat_over_renders_and_reopenings(
    model: mujoco.MjModel, data: mujoco.MjData, fast: Cameras
) -> None:
    def resident() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(20):
        fast.render(data, "agentview")
    before = resident()
    for _ in range(200):
        fast.render(data, "agentview")
    assert resident() - before < 8e6


@pytest.mark.slow
def test_the_probe_names_the_packages_when_nothing_can_render() -> None:
    environment = {**os.environ, "PYOPENGL_PLATFORM": "glx"}
    environment.pop("MUJOCO_GL", None)
    said = subprocess.run(
        [sys.executable, "-c", "from sim.render import probe; print(probe())"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "apt-get install libegl1 libgl1-mesa-dri libosmesa6" in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_the_probe_draws_in_a_process_of_its_own() -> None:
    from sim.render import probe

    assert probe().startswith("rendering works (")


def test_a_backend_that_needs_a_screen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from robot.errors import InfrastructureError
    from sim.render import candidates

    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(InfrastructureError, match="egl, osmesa"):
        candidates()
    monkeypatch.delenv("MUJOCO_GL")
    assert candidates() == ("egl", "osmesa")
