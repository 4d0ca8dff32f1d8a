"""Arguments of constructors, each described once: as a field of a dataclass, with its docstring.

A field has the name, the type, the default and the meaning of a setting, and its type says which
values are valid. One class describes a setting for all ways in. A way in (a class, a function, a
file or a command that takes settings) has a subclass, which only adds what differs.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from itertools import pairwise
from types import UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from annotated_types import Ge, Gt, Le, Unit

from conspectus.errors import PolicyError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Instance = TypeVar("Instance")
Documented = TypeVar("Documented", bound=type)

LINE_CHARACTERS = 100
"""Characters of a line of a docstring."""

SECTIONS = ("Returns:", "Raises:", "Example:")
"""Sections of a docstring that come after the one of the arguments."""


def unknown_argument(callee: str, name: str, parameters: Iterable[str]) -> TypeError:
    """Return the error for a keyword argument that a function or class does not know.

    Example:
        >>> unknown_argument("Compactor", "windows", ["window", "keep"])
        TypeError("Compactor: unexpected keyword argument 'windows'; did you mean 'window'?")
    """
    meant = did_you_mean(name, parameters) or f" help({callee}) lists the known ones"
    return TypeError(f"{callee}: unexpected keyword argument '{name}';{meant}")


# Functions and constructors that take the fields of a dataclass


def function_takes(settings: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Make a decorator under which a function takes the fields of a dataclass as arguments.

    The function gets one object of that dataclass. Callers, `help`, editors and type checkers see
    each field by its name, its type and its default, and the docstring describes it.
    """

    def decorated(function: Callable[[T], R]) -> Callable[P, R]:
        callee = function.__name__

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(_built(settings, callee, args, kwargs))

        @wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            coroutine: Any = function(_built(settings, callee, args, kwargs))
            return await coroutine

        shown: Any = awaited if inspect.iscoroutinefunction(function) else called
        shown.__signature__ = signature(function).replace(parameters=_parameters(settings))
        shown.__doc__ = with_arguments(function.__doc__ or "", cast("type", settings))
        return cast("Callable[P, R]", shown)

    return decorated


def takes(
    settings: Callable[P, T],
) -> Callable[[Callable[[Instance, T], None]], Callable[Concatenate[Instance, P], None]]:
    """Make a decorator under which a constructor takes the fields of a dataclass as arguments.

    It is `function_takes` for `__init__`; `documented`, over the class, adds to its docstring. If
    the constructor has a parameter like `**names`, it gets all keyword arguments that are no
    fields.

    Example:
        >>> @dataclass
        ... class Settings:
        ...     size: int = 3
        >>> class Box:
        ...     @takes(Settings)
        ...     def __init__(self, settings: Settings) -> None:
        ...         self.settings = settings
        >>> signature(Box), Box(size=5).settings
        (<Signature (size: 'int' = 3)>, Settings(size=5))
    """
    parameters = _parameters(settings)
    names = {parameter.name for parameter in parameters}

    def decorated(
        constructor: Callable[[Instance, T], None],
    ) -> Callable[Concatenate[Instance, P], None]:
        callee = constructor.__qualname__.split(".")[-2]
        instance, _, *var_keyword = signature(constructor).parameters.values()

        @wraps(constructor)
        def constructed(self: Instance, *args: Any, **kwargs: Any) -> None:
            unknown: dict[str, Any] = {}
            if var_keyword:
                unknown = {name: value for name, value in kwargs.items() if name not in names}
            known = {name: value for name, value in kwargs.items() if name not in unknown}
            build: Any = constructor
            build(self, _built(settings, callee, args, known), **unknown)

        shown: Any = constructed
        shown.__signature__ = Signature([instance, *parameters, *var_keyword])
        shown.settings = settings
        return cast("Callable[Concatenate[Instance, P], None]", constructed)

    return decorated


def _parameters(settings: Any) -> list[Parameter]:
    """Return the fields of a dataclass as parameters, those of a subclass before inherited ones.

    So a way in shows its own settings before those that all ways in share.
    """
    names: dict[str, None] = {}
    for described in settings.__mro__:
        names |= dict.fromkeys(vars(described).get("__annotations__", ()))
    order = list(names)
    parameters = signature(settings).parameters.values()
    return sorted(parameters, key=lambda parameter: (parameter.kind, order.index(parameter.name)))


@cache
def _signature_of(settings: Any) -> Signature:
    """Return the cached signature of a dataclass; to inspect it takes most of a call."""
    return signature(settings)


def _built(
    settings: Callable[..., T], callee: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> T:
    """Build settings from the arguments of a call; `callee` is the name of the called object.

    Raises:
        TypeError: an argument is unknown, missing, or given twice.
    """
    taken = _signature_of(settings)
    if unknown := kwargs.keys() - taken.parameters:
        raise unknown_argument(callee, min(unknown), taken.parameters)
    try:
        taken.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{callee}: {error}") from None
    return settings(*args, **kwargs)


def documented(cls: Documented) -> Documented:
    """Add the arguments that the constructor of a class `takes` to the docstring of the class."""
    constructor = vars(cls)["__init__"]
    shown: Any = cls
    shown.__doc__ = _Docstring(cls.__doc__ or "", constructor.settings)
    return cls


class _Docstring:
    """The docstring of a class. It is made when it is used, because the source is read for it."""

    def __init__(self, text: str, settings: type) -> None:
        self._text = text
        self._settings = settings

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return with_arguments(self._text, self._settings)


def with_arguments(docstring: str, settings: type) -> str:
    """Return a docstring with a section `Args:`, before the errors and the example."""
    lines = inspect.cleandoc(docstring).splitlines()
    sections = (number for number, line in enumerate(lines) if line in SECTIONS)
    start = next(sections, len(lines))
    arguments = ["Args:", *_argument_lines(settings), ""]
    if start == len(lines):
        arguments = ["", *arguments[:-1]]
    return "\n".join([*lines[:start], *arguments, *lines[start:]])


def _argument_lines(settings: type) -> Iterator[str]:
    texts = descriptions(settings)
    for parameter in _parameters(settings):
        text = " ".join(texts.get(parameter.name, "").split())
        if "Default:" not in text and parameter.default is not Parameter.empty:
            text = f"{text} Default: {_shown(parameter.default)}."
        yield from textwrap.wrap(
            f"{parameter.name}: {text}",
            LINE_CHARACTERS,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _shown(default: object) -> str:
    return f"`{default!r}`" if default is not None else "None"


# What a field says of its setting


@cache
def descriptions(settings: type) -> Mapping[str, str]:
    """Return the docstring of each field of a dataclass, by name.

    It begins with the text of the class that describes the field first; a subclass adds to it.
    Without the source, for example in a frozen program, there are none.
    """
    texts: dict[str, str] = {}
    for described in filter(is_dataclass, reversed(settings.__mro__)):
        for name, text in _docstrings_in(described):
            texts[name] = f"{texts[name]}\n\n{text}" if name in texts else text
    return texts


def meaning(settings: type, name: str) -> str:
    """Return the first paragraph of a setting's docstring, which is true for every way in."""
    return " ".join(descriptions(settings).get(name, "").partition("\n\n")[0].split())


def _docstrings_in(described: type) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each field that the body of a class has."""
    for definition in _parsed(described.__module__).body:
        if isinstance(definition, ast.ClassDef) and definition.name == described.__name__:
            for statement, following in pairwise(definition.body):
                if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
                    name = ast.unparse(statement.target)
                    yield name, inspect.cleandoc(ast.literal_eval(following.value))


@cache
def _parsed(module: str) -> ast.Module:
    try:
        return ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return ast.Module([], [])


def default_of(settings: type, name: str) -> Any:
    """Return the default of a field; raise `LookupError` for one that must be given."""
    for field in fields(settings):
        if field.name == name and field.default is not MISSING:
            return field.default
    raise LookupError(f"{settings.__name__} has no default for {name!r}")


@dataclass(frozen=True)
class Check:
    """Which values of a setting are valid, if its type alone does not say so."""

    passes: Callable[[Any], bool]
    form: str  # completes "... must be"


class Checked:
    """A dataclass that checks its fields by their types.

    Raises:
        PolicyError: a value is not valid.
    """

    def __post_init__(self) -> None:
        for name, default, check in _checks(cast("Any", type(self))):
            value = getattr(self, name)
            if value is not default and not check.passes(value):
                raise PolicyError(f"{name} must be {check.form}, not {value!r:.200}")


@cache
def _checks(settings: Any) -> tuple[tuple[str, object, Check], ...]:
    """Return the checks of a dataclass by the names of its fields, with their defaults."""
    hints: dict[str, Any] = {}
    for base in reversed(settings.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, text in vars(base).get("__annotations__", {}).items():
            # A type that only type checkers load gives no check.
            with suppress(NameError, TypeError):
                hints[name] = eval(text, names)
    checks: list[tuple[str, object, Check]] = []
    for field in fields(settings):
        check = _check_of(hints.get(field.name))
        if check is not None:
            checks.append((field.name, field.default, check))
    return tuple(checks)


def _check_of(hint: Any) -> Check | None:
    """Return the check for a type: a flag, a choice, a number, or a `Check` in its marks."""
    is_union = get_origin(hint) in (Union, UnionType)
    members = get_args(hint) if is_union else (hint,)
    optional = type(None) in members
    kinds = [member for member in members if member is not type(None)]
    if len(kinds) != 1:
        return None
    kind = kinds[0]
    if kind is bool:
        return Check(lambda value: isinstance(value, bool), "True or False")
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return Check(lambda value: value in choices, f"one of {choices}")
    if get_origin(kind) is Annotated:
        base, *marks = get_args(kind)
        checks = [mark for mark in marks if isinstance(mark, Check)]
        return checks[0] if checks else _number_check(base, marks, optional=optional)
    return None


def _number_check(number_type: type, marks: Iterable[object], *, optional: bool) -> Check:
    """Return the check of a number: its type, and the bounds among its marks."""
    classes = (int,) if number_type is int else (int, float)
    noun = "a whole number" if number_type is int else "a number"
    least = -math.inf
    above = -math.inf
    most = math.inf
    bounds: list[str] = []
    for mark in marks:
        match mark:
            case Unit(unit):
                noun = unit
            case Ge(bound):
                least = cast("float", bound)
                bounds.append(f"of at least {least:,}")
            case Gt(bound):
                above = cast("float", bound)
                bounds.append(f"above {above:,}")
            case Le(bound):
                most = cast("float", bound)
                bounds.append(f"at most {most:,}")

    def passes(value: Any) -> bool:
        if value is None:
            return optional
        if isinstance(value, bool) or not isinstance(value, classes):
            return False
        return least <= value <= most and value > above

    form = f"{noun} {' and '.join(bounds)}"
    return Check(passes, f"{form}, or None" if optional else form)
