"""Reports see the whole scene, as it is at that moment."""

import pickle
from types import SimpleNamespace

import mujoco
import numpy as np

from sim.overlook import Overlook

BALL = (
    "<mujoco><worldbody><light pos='0 0 4'/><body pos='0 0 1'><freejoint/>"
    "<geom size='.2' group='1' rgba='1 0 0 1'/></body></worldbody></mujoco>"
)


def test_a_picture_shows_where_things_are_now() -> None:
    model = mujoco.MjModel.from_xml_string(BALL)
    scene = SimpleNamespace(model=model, data=mujoco.MjData(model))
    mujoco.mj_forward(model, scene.data)
    picture = Overlook(height=48, width=64, quality="exact")(scene)
    before = picture()
    assert before.shape == (48, 64, 3)
    scene.data.qpos[1] = 0.5
    mujoco.mj_forward(model, scene.data)
    assert np.abs(picture().astype(int) - before).max() > 50


def test_a_viewer_that_took_no_picture_travels_to_a_worker() -> None:
    copied = pickle.loads(pickle.dumps(Overlook(height=32, width=32)))
    assert isinstance(copied, Overlook)
