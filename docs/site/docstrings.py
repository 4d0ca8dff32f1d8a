"""Turns our docstrings into those that the API reference can show.

They begin an example with `Example:`, which Google's form knows in the plural only, and name
several parameters on one line, `first, second: as for ...`, which it wants one by one. Arguments
that are the fields of a dataclass are read from the class itself, as its source has them elsewhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
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


TAKES = re.compile(r"(function_)?takes\(")
"""The decorators under which arguments are the fields of a dataclass."""


def takes_fields(member: griffe.Object | griffe.Alias | None) -> bool:
    return isinstance(member, griffe.Function) and any(
        TAKES.match(str(decorator.value)) for decorator in member.decorators
    )


def parameters_of(function: Any) -> Iterator[griffe.Parameter]:
    """The parameters that a function shows to `inspect`."""
    for parameter in inspect.signature(function).parameters.values():
        has_default = parameter.default is not inspect.Parameter.empty
        is_plain = isinstance(parameter.default, (str, int, float, tuple, type(None)))
        yield griffe.Parameter(
            parameter.name,
            annotation=str(parameter.annotation) if parameter.name != "self" else None,
            kind=griffe.ParameterKind(parameter.kind.description),
            default=(repr(parameter.default) if is_plain else "...") if has_default else None,
        )


class Docstrings(griffe.Extension):
    """Changes each docstring as it is read."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        constructor = cls.members.get("__init__")
        if takes_fields(constructor):
            real = getattr(import_module(cls.module.path), cls.name)
            constructor.parameters = griffe.Parameters(*parameters_of(real.__init__))
            cls.docstring.value = shown(inspect.getdoc(real))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if takes_fields(func) and func.name != "__init__":
            real = getattr(import_module(func.module.path), func.name)
            func.parameters = griffe.Parameters(*parameters_of(real))
            func.docstring.value = shown(inspect.getdoc(real))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = shown(obj.docstring.value)
