"""Shapes in our signatures are checked at run time in all tests."""

from jaxtyping import install_import_hook

install_import_hook(["robot", "policies", "values", "sim", "hardware"], "shapes.check")
