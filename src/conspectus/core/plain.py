"""Dataclasses as plain JSON data, and back, each part checked by its annotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return a dataclass as plain data, without fields that have their default."""
    if value is None or isinstance(value, (str, int, list)):
        return value  # a list is plain already
    if isinstance(value, tuple):
        return [to_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: to_plain(one) for name, one in value.items()}
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    form = _form(kind)
    parts = ((name, getattr(value, name), usual) for name, (_, usual) in form.items())
    return {name: to_plain(part) for name, part, usual in parts if part != usual}


def from_plain(cls: type[T], data: Any) -> T:
    """Read what `to_plain` wrote; fields that a newer version added are left out.

    Raises:
        TypeError: a field is missing, or is not of its type.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"a {cls.__name__} is no {type(data).__name__}")
    kind: Any = cls
    form = _form(kind)
    return cls(**{name: _read(form[name][0], data[name]) for name in data if name in form})


@cache
def _form(cls: Any) -> dict[str, tuple[Any, Any]]:
    """Return the annotation and the default of each field."""
    hints, form = get_type_hints(cls), {}
    for one in fields(cls):
        usual = one.default if one.default_factory is MISSING else one.default_factory()
        form[one.name] = (hints[one.name], usual)
    return form


def _read(hint: Any, value: Any) -> Any:
    if hint is Any:
        return value
    if isinstance(hint, type):
        if is_dataclass(hint):
            return from_plain(hint, value)
        if isinstance(value, hint) and (hint is not int or not isinstance(value, bool)):
            return value
        if hint is float and isinstance(value, int):
            return value
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal and value in args:
        return value
    if origin is type(int | None):
        return None if value is None else _read(args[0], value)
    if origin is tuple and isinstance(value, (list, tuple)):
        if args == (str, ...) and {*map(type, value)} <= {str}:  # often a hundred thousand keys
            return tuple(value)
        each = args[:1] * len(value) if args[-1] is Ellipsis else args
        if len(each) == len(value):
            return tuple(_read(one, part) for one, part in zip(each, value, strict=True))
    if origin is Mapping and isinstance(value, Mapping):
        return {str(name): _read(args[1], part) for name, part in value.items()}
    raise TypeError(f"{value!r} is no {hint}")
