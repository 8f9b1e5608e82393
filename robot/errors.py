"""What can go wrong, as types that a caller can act on.

Every message says what was found, what was needed and what to do.
"""


class AmbidexError(Exception):
    """Base of every error that ambidex raises on purpose."""


class SpecMismatch(AmbidexError):
    """A checkpoint, a dataset and a robot do not speak of the same entries.

    Args:
        left: Name of the first party, as the user knows it.
        right: Name of the second party.
        differences: One sentence for each entry that differs.
    """

    def __init__(self, left: str, right: str, differences: list[str]) -> None:
        lines = "\n  ".join(differences)
        super().__init__(
            f"{left} does not fit {right}; nothing was built or moved. They differ in:\n  {lines}"
        )
        self.differences = differences


class UnknownName(AmbidexError):
    """A name that nothing answers to; the nearest known names are offered."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=3, cutoff=0.4) or sorted(known)[:8]
        offer = f"did you mean {', '.join(near)}?" if near else "there is none at all"
        super().__init__(f"no {kind} is called {name!r}; {offer}")
        self.near = near


class BadAction(AmbidexError):
    """A target or chunk that must not reach a robot (wrong shape, not finite)."""


class StaleFrame(AmbidexError):
    """An image was asked for after the physics had moved on from its moment."""


class CheckpointError(AmbidexError):
    """A checkpoint cannot be loaded as it stands (missing or unexpected weights, bad file)."""


class DatasetError(AmbidexError):
    """A dataset cannot be read or written as it stands."""


class InfrastructureError(AmbidexError):
    """The machinery failed, not the policy: the episode counts as an error, never as a failure."""
