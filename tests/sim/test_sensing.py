import numpy as np
import pytest

from robot.errors import StaleFrame
from sim.sensing import LazyImages


class World:
    def __init__(self) -> None:
        self.moment = 0
        self.drawn: list[str] = []

    def draw(self, name: str) -> np.ndarray:
        self.drawn.append(name)
        return np.full((2, 2, 3), self.moment, dtype=np.uint8)

    def look(self) -> LazyImages:
        return LazyImages(("left", "right"), self.draw, lambda: self.moment)


def test_nothing_is_drawn_until_somebody_looks() -> None:
    world = World()
    images = world.look()
    assert list(images) == ["left", "right"]
    assert len(images) == 2
    assert "left" in images
    assert world.drawn == []


def test_an_image_is_drawn_once() -> None:
    world = World()
    images = world.look()
    assert images["left"] is images["left"]
    assert world.drawn == ["left"]


def test_an_image_asked_for_too_late_is_refused() -> None:
    world = World()
    images = world.look()
    world.moment += 1
    with pytest.raises(StaleFrame, match="camera right"):
        images["right"]


def test_an_image_drawn_in_time_outlives_its_moment() -> None:
    world = World()
    images = world.look()
    images["left"]
    world.moment += 1
    assert images["left"].max() == 0


def test_all_can_be_drawn_at_once() -> None:
    world = World()
    images = world.look()
    images.draw_all()
    world.moment += 1
    assert [image.max() for image in images.values()] == [0, 0]


def test_an_unknown_camera_is_a_key_error_that_lists_the_others() -> None:
    with pytest.raises(KeyError, match="left, right"):
        World().look()["middle"]
    assert World().look().get("middle") is None
