"""The two-arm tasks under Gymnasium's names: ``gymnasium.make("ambidex/TwoArmLift-v0")``.

Importing this module registers them; installed, Gymnasium finds them by itself (its entry point
``gymnasium.envs``). It imports no simulator, so that ``import gymnasium`` stays quick.
"""

from gymnasium.envs.registration import register, registry

NAMES = {
    "ambidex/TwoArmLift-v0": "lift",
    "ambidex/TwoArmPegInHole-v0": "peg",
    "ambidex/TwoArmHandover-v0": "handover",
    "ambidex/TwoArmTransport-v0": "transport",
}


def register_all() -> None:
    """Register every task that is not registered yet."""
    for name, task in NAMES.items():
        if name not in registry:
            register(id=name, entry_point="sim.gymnasium_env:TwoArmGym", kwargs={"task": task})


register_all()
