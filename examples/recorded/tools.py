"""A set of tools that a recorded call can be carried out with."""

from __future__ import annotations

import ast
import inspect
import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Refused(Exception):
    """A tool cannot do what was asked; the agent reads the reason."""


class Toolbox:
    """Functions by name; what one refuses is told in the result, which then begins with `error:`.

    Args:
        functions: by name; each takes the arguments of a call and returns data or text.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = dict(functions)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Carry out one call; gives what the agent reads."""
        if name not in self._functions:
            return f"error: there is no tool {name}; there are {', '.join(self._functions)}"
        function = self._functions[name]
        takes = inspect.signature(function).parameters
        if set(arguments) != set(takes):
            return f"error: {name} takes {', '.join(takes)}; got {', '.join(arguments)}"
        try:
            result = function(**arguments)
        except Refused as reason:
            return f"error: {reason}"
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def calculate(expression: str) -> str:
    """Work out a sum with + - * / and brackets."""
    try:
        return f"{_value(ast.parse(expression, mode='eval').body):.2f}"
    except (SyntaxError, ZeroDivisionError) as problem:
        raise Refused(f"cannot work out {expression!r}") from problem


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return float(_ARITHMETIC[type(node.op)](_value(node.left), _value(node.right)))
    raise Refused("only + - * / and brackets can be worked out")
