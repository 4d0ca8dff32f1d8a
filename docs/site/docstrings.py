"""Turns our docstrings into those that the API reference can show.

They begin an example with `Example:`, which Google's form knows in the plural only, and name
several parameters on one line, `first, second: as for ...`, which it wants one by one.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)
SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", re.MULTILINE)


def shown(text: str) -> str:
    """A docstring with its examples and parameters in Google's form.

    Example:
        >>> print(shown("Do it." + chr(10) + "Args:" + chr(10) + "    a, b: as above."))
        Do it.
        Args:
            a: as above.
            b: as above.
    """
    return SEVERAL.sub(_one_by_one, EXAMPLE.sub(r"\1Examples:", text))


def _one_by_one(found: re.Match[str]) -> str:
    indent, names, description = found.groups()
    return "\n".join(f"{indent}{name}: {description}" for name in names.split(", "))


class Docstrings(griffe.Extension):
    """Changes each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = shown(obj.docstring.value)
