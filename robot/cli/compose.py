"""From a verb and what was typed behind it to a checked configuration.

Nothing is built here. Every mistake that can be seen in the text is an error with the nearest
names: an override of a setting that does not exist, a file of a group that is not there, a value of
the wrong type, an argument that a class does not take.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra import compose
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from robot.config import register_schemas
from robot.errors import AmbidexError, UnknownName

EXAMPLES = {
    "out": "out=outputs/run",
    "datasets": "datasets=[outputs/demonstrations]",
    "policy": "policy=checkpoint checkpoint=FOLDER",
    "checkpoint": "checkpoint=FOLDER",
    "value": "value=NAME",
    "learner": "learner=policy",
}


class BadConfiguration(AmbidexError):
    """What was typed, or a YAML file, makes no configuration."""


def load(
    verb: str, overrides: Sequence[str], *, folder: str | Path | None = None
) -> tuple[DictConfig, dict[str, Any]]:
    """Return the configuration of ``verb`` as nodes and as plain values.

    Args:
        verb: Name of the primary YAML file.
        overrides: ``key=value`` as typed.
        folder: Further YAML files, laid out like ``configs/``; they come first.

    Raises:
        UnknownName: If a setting, a group's file or an argument is called otherwise.
        BadConfiguration: If a value has the wrong type or is missing.
    """
    loader = _start(folder)
    try:
        typed = _parse(overrides, loader)
        groups = [o for o in typed if _is_group(o, loader)]
        for override in groups:
            _check_option(override, loader)
        _check_keys(verb, typed, groups, loader)
        composed = compose(verb, list(overrides))
        _check_missing(verb, composed)
        plain = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise BadConfiguration(_in_words(error)) from error
    finally:
        GlobalHydra.instance().clear()
    return composed, {str(k): v for k, v in dict(plain).items()}  # type: ignore[arg-type]


def options(group: str, *, folder: str | Path | None = None) -> list[str]:
    """Return the files of a group, e.g. all experiments."""
    loader = _start(folder)
    try:
        return loader.get_group_options(group, results_filter=ObjectType.CONFIG)
    finally:
        GlobalHydra.instance().clear()


def check_targets(plain: Any, *, where: str = "") -> None:
    """Check that every ``_target_`` exists and takes the arguments it is given.

    Raises:
        UnknownName: If a class or an argument is called otherwise.
        BadConfiguration: If a class cannot be imported, or an argument is missing.
    """
    if isinstance(plain, list):
        for index, entry in enumerate(plain):
            check_targets(entry, where=f"{where}[{index}]")
    if not isinstance(plain, dict):
        return
    for key, entry in plain.items():
        check_targets(entry, where=f"{where}.{key}" if where else str(key))
    if "_target_" in plain:
        _check_call(plain, where)


def _start(folder: str | Path | None) -> ConfigLoader:
    """Start Hydra on our YAML files, and the user's before them."""
    register_schemas()
    GlobalHydra.instance().clear()
    path = create_config_search_path("pkg://configs")
    if folder is not None:
        if not Path(folder).is_dir():
            raise BadConfiguration(f"--config-dir {folder} is no folder; give one that exists")
        path.prepend(provider="user", path=f"file://{Path(folder).resolve()}")
    return Hydra.create_main_hydra2("ambidex", path).config_loader


def _parse(overrides: Sequence[str], loader: ConfigLoader) -> list[Override]:
    parser = OverridesParser.create(config_loader=loader)
    try:
        return parser.parse_overrides(list(overrides))
    except HydraException as error:
        raise BadConfiguration(
            f"{_in_words(error)}; quote values that hold = , : or spaces: \"key='a=b'\""
        ) from error


def _is_group(override: Override, loader: ConfigLoader) -> bool:
    name = override.key_or_group
    return "." not in name and name in loader.list_groups("")


def _check_option(override: Override, loader: ConfigLoader) -> None:
    group = override.key_or_group
    known = loader.get_group_options(group, results_filter=ObjectType.CONFIG)
    if override.is_sweep_override():
        raise BadConfiguration(
            f"{override.input_line} names several; put them in brackets: {group}=[a,b]"
        )
    value = override.value()
    for name in value if isinstance(value, list) else [value]:
        if name is not None and str(name).removesuffix(".yaml") not in known:
            raise UnknownName(group, str(name), known)


def _check_keys(
    verb: str, typed: list[Override], groups: list[Override], loader: ConfigLoader
) -> None:
    base = compose(verb, [str(o.input_line) for o in groups])
    keys = list(_paths(OmegaConf.to_container(base, resolve=False)))
    for override in typed:
        name = override.key_or_group
        if override in groups or override.is_add() or override.is_force_add() or name in keys:
            continue
        own = [group for group in loader.list_groups("") if group != "hydra"]
        raise UnknownName("setting of " + verb, name, list(dict.fromkeys(keys + own)))


def _paths(node: Any, *, where: str = "") -> Iterator[str]:
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    for key, entry in node.items():
        path = f"{where}.{key}" if where else str(key)
        yield path
        yield from _paths(entry, where=path)


def _check_missing(verb: str, composed: DictConfig) -> None:
    missing = set(OmegaConf.missing_keys(composed))
    # A setting that is null and still asked for by a node, as in `path: ${checkpoint}`.
    asked = set(_references(OmegaConf.to_container(composed, resolve=False)))
    missing |= {n for n in asked if not OmegaConf.is_missing(composed, n) and composed[n] is None}
    if missing:
        examples = " ".join(EXAMPLES.get(name, f"{name}=...") for name in sorted(missing))
        raise BadConfiguration(
            f"{verb} was not told {', '.join(sorted(missing))}; write: ambidex {verb} {examples}"
        )


def _references(node: Any) -> Iterator[str]:
    """Return the top-level settings that stand alone as another setting's value."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if isinstance(node, dict):
        for entry in node.values():
            yield from _references(entry)
    elif isinstance(node, str) and (found := re.fullmatch(r"\$\{(\w+)\}", node)):
        yield found[1]


def _check_call(node: Mapping[str, Any], where: str) -> None:
    target = str(node["_target_"])
    made = _find(target, where)
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):  # built in C: it says itself what it takes
        return
    taken = signature.parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return
    given = {k: v for k, v in node.items() if not str(k).startswith("_")}
    for name in given:
        if name not in taken:
            raise UnknownName(f"argument of {target} (at {where})", str(name), list(taken))
    needed = [
        name
        for name, p in taken.items()
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and name not in given
    ]
    if needed and not node.get("_partial_") and not node.get("_args_"):
        raise BadConfiguration(f"{where}: {target} also needs {', '.join(needed)}; add it there")


def _find(target: str, where: str) -> Any:
    module, _, name = target.rpartition(".")
    try:
        found = import_module(module)
    except ImportError as error:
        # A class inside a class: its outer one must be importable.
        outer, _, inner = module.rpartition(".")
        if outer and error.name == module:
            found = getattr(_import(outer, where), inner, None)
        else:
            raise BadConfiguration(f"{where}: cannot import {target}: {error}") from error
        if found is None:
            raise BadConfiguration(f"{where}: cannot import {target}: {error}") from error
    if not hasattr(found, name):
        known = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
        raise UnknownName(f"target (at {where})", target, [f"{module}.{n}" for n in known])
    return getattr(found, name)


def _import(module: str, where: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise BadConfiguration(f"{where}: cannot import {module}: {error}") from error


def _in_words(error: BaseException) -> str:
    """Return what Hydra says and why, on one line, without its internals."""
    said: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
        said += [x for x in lines if not x.startswith(("object_type=", "reference_type=", "See "))]
        cause = cause.__cause__
    return "; ".join(dict.fromkeys(said)) or type(error).__name__
