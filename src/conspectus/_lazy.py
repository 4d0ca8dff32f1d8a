"""Import the public names of a package at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def places_of(modules: Mapping[str, str]) -> dict[str, str]:
    """Map each name to its module, given the names of each module in one text."""
    return {name: module for module, names in modules.items() for name in names.split()}


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package."""

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
