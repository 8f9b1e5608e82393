"""The two-arm tasks under Gymnasium's names.

``import sim.gym`` registers them, then ``gymnasium.make("ambidex/TwoArmLift-v0")`` makes one; or in
one go ``gymnasium.make("sim.gym:ambidex/TwoArmLift-v0")``. Gymnasium 1 looks for no entry points of
other packages. Nothing here imports a simulator.
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
