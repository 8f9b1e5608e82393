# MuJoCo's modules are compiled and ship no types: what they hold is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
