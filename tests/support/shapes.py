"""The checker behind jaxtyping: array shapes and dtypes, nothing else.

Other hints are pyright's business: beartype knows no ``Self`` in methods, and small stand-ins need
not have every method of a protocol.
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray


def check[F: Callable[..., Any]](function: F) -> F:
    """Return the function, checked where a hint has a shape."""
    hints = getattr(function, "__annotations__", {})
    kept = {name: hint for name, hint in hints.items() if _has_shape(hint)}
    if not kept:
        return function
    function.__annotations__ = kept
    return beartype(function)


def _has_shape(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    if get_origin(hint) is Mapping:
        return False  # looking into a mapping of images would render them
    return any(_has_shape(part) for part in get_args(hint))
