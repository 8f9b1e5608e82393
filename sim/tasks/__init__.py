"""Goals: what is wanted in each scene, in words and as physics.

``goal_for("lift", None)`` is the scene's first goal; a scene may have several.
"""

from robot.errors import UnknownName
from sim.tasks.goal import Goal, Scene
from sim.tasks.handover import Handover
from sim.tasks.peg import Insert
from sim.tasks.pot import Lift, Slide
from sim.tasks.transport import Transport

GOALS: dict[str, tuple[type[Goal], ...]] = {
    "lift": (Lift, Slide),
    "peg": (Insert,),
    "handover": (Handover,),
    "transport": (Transport,),
}

__all__ = ["Goal", "Scene", "goal_for", "goals", "time_limit"]


def goals(task: str) -> tuple[str, ...]:
    """Return the names of a scene's goals.

    Raises:
        UnknownName: If there is no such scene.
    """
    if task not in GOALS:
        raise UnknownName("task", task, list(GOALS))
    return tuple(kind().name for kind in GOALS[task])


def goal_for(task: str, goal: str | None = None) -> Goal:
    """Return a goal of a scene, its first one by default.

    Raises:
        UnknownName: If there is no such scene, or no such goal in it.
    """
    names = goals(task)
    if goal is not None and goal not in names:
        raise UnknownName(f"goal of the task {task}", goal, list(names))
    return GOALS[task][0 if goal is None else names.index(goal)]()


def time_limit(task: str, goal: str | None = None) -> int:
    """Return the control steps (at 20 Hz) after which an episode ends."""
    return goal_for(task, goal).time_limit
