"""Answer a misspelt keyword argument with the one that was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from conspectus.errors import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def unknown_argument(where: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for a keyword argument that a function does not know.

    Example:
        >>> unknown_argument("Compactor", "windows", ["window", "keep"])
        TypeError("Compactor: unexpected keyword argument 'windows'; did you mean 'window'?")
    """
    meant = did_you_mean(name, known) or f" help({where}) lists the known ones"
    return TypeError(f"{where}: unexpected keyword argument '{name}';{meant}")


def suggesting(where: str, more: Iterable[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator under which a function names the keyword argument that was meant.

    `where` is the name of the function, or of its class, in the error; `more` are names that it
    takes beside those of its parameters.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        takes = signature(function).parameters.values()
        known = {one.name for one in takes if one.kind is not Parameter.VAR_KEYWORD} | {*more}

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if unknown := kwargs.keys() - known:
                raise unknown_argument(where, min(unknown), known - {"self"})
            return function(*args, **kwargs)

        return checked

    return decorated
