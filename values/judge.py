"""Judge a value by how it ranks the siblings of a store, through the way it is used.

Axes: ``g`` decisions, ``n`` candidates.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from robot.errors import DatasetError
from robot.protocols import ActionValue
from robot.siblings import SiblingReader, Siblings, joined, outcomes_of
from robot.types import ActionChunk, Observation, Plan, Task
from values.ranking import SiblingReport, sibling_report


def scores_of(value: ActionValue, labels: Siblings, *, period: float) -> Float[np.ndarray, "g n"]:
    """Return what a value says of every candidate, one decision at a time."""
    found: list[np.ndarray] = []
    for i in range(len(labels)):
        text = labels.instructions[int(labels.instruction[i])]
        targets = labels.targets[i]
        found.append(
            value.score(
                Observation(
                    time=0.0,
                    state=labels.state[i],
                    images={name: pixels[i] for name, pixels in labels.images.items()},
                ),
                Plan(task=Task(name="", instruction=text)),
                ActionChunk(
                    start=0.0,
                    period=period,
                    targets=targets,
                    commit=np.ones(len(targets), dtype=np.int64),
                ),
            )
        )
    return np.stack(found)


def judge_value(
    value: ActionValue, stores: Sequence[str | Path], *, seeds: Sequence[int] | None = None
) -> SiblingReport:
    """Return how a value ranks the candidates of stores.

    Args:
        value: The value.
        stores: Folders of sibling labels.
        seeds: Only these episodes; those held out in training are in its checkpoint's notes.

    Raises:
        DatasetError: If no decision is left.
    """
    readers = [SiblingReader(Path(root)) for root in stores]
    cameras = getattr(value, "cameras", None)
    labels = joined([reader.load(cameras=cameras) for reader in readers])
    if seeds is not None:
        labels = labels[np.isin(labels.seed, list(seeds))]
    if not len(labels):
        raise DatasetError("none of these seeds is in the stores; give seeds that were labelled")
    found = scores_of(value, labels, period=readers[0].spec.period)
    return sibling_report(found, labels.scores.astype(np.float64), success=outcomes_of(labels))
