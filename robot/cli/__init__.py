"""One command: ``ambidex VERB key=value ...``."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from omegaconf import OmegaConf
from rich.console import Console

from robot.cli.compose import check_targets, load
from robot.cli.help import VERBS, overview, teach
from robot.cli.verbs import RUN
from robot.errors import AmbidexError, UnknownName

EXIT_USAGE = 2
EXIT_BUG = 1
EXIT_INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    0 is success, 2 a mistake in what was asked for or a fault of the machine, 3 a run that ended
    early, 130 an interrupt, 1 a defect of ours. ``AMBIDEX_DEBUG=1`` shows tracebacks.
    """
    typed = list(sys.argv[1:] if words is None else words)
    errors = Console(stderr=True, highlight=False)
    try:
        return _run(typed)
    except KeyboardInterrupt:
        errors.print("interrupted", markup=False)
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("AMBIDEX_DEBUG") == "1":
            raise
        expected = isinstance(error, AmbidexError | OSError | ValueError)
        kind = "" if isinstance(error, AmbidexError) else f"{type(error).__name__}: "
        errors.print(f"error: {kind}{error}", markup=False, soft_wrap=True)
        if not expected:
            errors.print("this is a defect; AMBIDEX_DEBUG=1 shows where", markup=False)
        return EXIT_USAGE if expected else EXIT_BUG


def _run(words: list[str]) -> int:
    out = Console(highlight=False)
    words, folder = _take_folder(words)
    flags = {word for word in words if word.startswith("--") or word == "-h"}
    words = [word for word in words if word not in flags]
    unknown = flags - {"--help", "-h", "--show", "--version"}
    if unknown:
        raise UnknownName(
            "option", sorted(unknown)[0], ["--help", "--show", "--version", "--config-dir"]
        )
    if "--version" in flags:
        out.print(f"ambidex {version('ambidex')}", markup=False)
        return 0
    if not words:
        out.print(overview(), markup=False, soft_wrap=True)
        return 0 if flags else EXIT_USAGE
    verb, *overrides = words
    if verb not in VERBS:
        raise UnknownName("verb", verb, list(VERBS))
    if flags & {"--help", "-h"}:
        out.print(teach(verb, folder), markup=False, soft_wrap=True)
        return 0
    composed, plain = load(verb, _named(verb, overrides), folder=folder)
    if "--show" in flags:
        out.print(OmegaConf.to_yaml(composed, resolve=True), markup=False, soft_wrap=True)
        return 0
    check_targets(plain)
    return RUN[verb](plain)


def _take_folder(words: list[str]) -> tuple[list[str], str | None]:
    """Take ``--config-dir DIR`` or ``--config-dir=DIR`` out of the words."""
    rest: list[str] = []
    folder = None
    remaining = iter(words)
    for word in remaining:
        if word == "--config-dir":
            folder = next(remaining, None)
            if folder is None:
                raise AmbidexError("--config-dir needs a folder; write --config-dir DIR")
        elif word.startswith("--config-dir="):
            folder = word.partition("=")[2]
        else:
            rest.append(word)
    return rest, folder


def _named(verb: str, overrides: list[str]) -> list[str]:
    """Give the bare words of a verb their names: ``compare A B`` is ``compare a=A b=B``."""
    names = list(VERBS[verb].places)
    named: list[str] = []
    for word in overrides:
        key, equals, _ = word.partition("=")
        # A folder may have a `=` in its name; where folders are meant, only known keys are keys.
        if word.startswith(("+", "~")) or (equals and (not names or key in VERBS[verb].places)):
            named.append(word)
        elif names:
            named.append(f"{names.pop(0)}={_quoted(word)}")
        else:
            raise AmbidexError(
                f"{word!r} is no setting; write key=value, see ambidex {verb} --help"
            )
    return named


def _quoted(word: str) -> str:
    """Return a word such that Hydra's grammar takes it as it is."""
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
