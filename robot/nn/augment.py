"""Changes of the images that leave the right action as it is."""

import numpy as np
from jaxtyping import UInt8


def random_shift(
    images: UInt8[np.ndarray, "b h w 3"], *, most: int, rng: np.random.Generator
) -> UInt8[np.ndarray, "b h w 3"]:
    """Return every image moved by up to ``most`` pixels each way; the border is repeated.

    Source:
        Kostrikov, Yarats and Fergus, "Image augmentation is all you need", ICLR 2021.
    """
    if most <= 0:
        return images
    b, h, w = images.shape[:3]
    shifts = rng.integers(-most, most + 1, size=(2, b, 1))
    rows = np.clip(np.arange(h) + shifts[0], 0, h - 1)
    columns = np.clip(np.arange(w) + shifts[1], 0, w - 1)
    moved = np.empty_like(images)
    for i in range(b):
        np.take(np.take(images[i], rows[i], axis=0), columns[i], axis=1, out=moved[i])
    return moved
