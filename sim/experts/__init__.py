"""Scripted experts with a dial for quality: demonstrations, good and bad, without a human.

``expert_for(env)`` is the expert of the environment's goal.
"""

from robot.errors import UnknownName
from sim.experts.expert import QUALITIES, Expert, ExpertScene, Quality, Segment
from sim.experts.handover import HandoverExpert
from sim.experts.peg import PegExpert
from sim.experts.pot import PotExpert
from sim.experts.transport import TransportExpert

EXPERTS: dict[str, type[Expert]] = {
    "lift": PotExpert,
    "peg": PegExpert,
    "handover": HandoverExpert,
    "transport": TransportExpert,
}

__all__ = ["QUALITIES", "Expert", "Quality", "Segment", "expert_for"]


def expert_for(
    env: ExpertScene, *, quality: Quality = "clean", seed: int = 0, noise: float = 0.0
) -> Expert:
    """Return the expert for an environment and its goal.

    Args:
        env: The environment to act in.
        quality: ``clean``, ``hesitating`` (pauses, sways), ``retrying`` (misses or drops first)
            or ``failing`` (never succeeds).
        seed: From which all its randomness follows.
        noise: Standard deviation of the noise that ``perturb`` adds to the joints [rad].

    Raises:
        UnknownName: If there is no such quality, or no expert for the task.
    """
    if quality not in QUALITIES:
        raise UnknownName("quality", quality, list(QUALITIES))
    if env.goal.task not in EXPERTS:
        raise UnknownName("expert", env.goal.task, list(EXPERTS))
    return EXPERTS[env.goal.task](env, quality=quality, seed=seed, noise=noise)
