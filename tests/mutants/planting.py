"""Plant a defect in the text of a module: a function or a constant gets a wrong form.

A defect names what it changes, as `package.module.Class.function`, and gives the wrong form. So it
goes on to mean the same after the function was rewritten. The wrong form may call `right`, which is
the function as it is.
"""

import ast
import builtins
import textwrap
from pathlib import Path

READ_LIKE_FIELDS = frozenset(("property", "cached_property"))
"""Decorators that turn a function into a value, so that `right` is used without them."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def split_name(name: str, source: Path) -> tuple[Path, list[str]]:
    """Return the file below `source` that a dotted name stands in, and the names inside it.

    Raises:
        ValueError: there is no such module.
    """
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = Path(*parts[:count])
        for path in (module.with_suffix(".py"), module / "__init__.py"):
            if (source / path).is_file():
                return path, parts[count:]
    raise ValueError(f"there is no module of {name}")


def planted(text: str, names: list[str], wrong: str) -> str:
    """Return the text of a module with a wrong form of a function or a constant.

    Args:
        text: the module as it is.
        names: the name of what is changed, with the classes around it.
        wrong: a function of the same name, or the value of a constant.

    Raises:
        ValueError: the module has no such function or constant, or the result is no Python.
    """
    scope: list[ast.stmt] = ast.parse(text).body
    for class_name in names[:-1]:
        classes = [node for node in scope if isinstance(node, ast.ClassDef)]
        scope = next((node.body for node in classes if node.name == class_name), [])
    node = _find(scope, names[-1])
    if node is None:
        raise ValueError(f"there is no {'.'.join(names)}")
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        lines = _wrong_function(text, node, names, wrong)
    else:
        lines = _wrong_constant(text, node, wrong)
    try:
        ast.parse(lines)
    except SyntaxError as error:
        raise ValueError(f"with the defect it is no Python: {error}") from error
    if lines == text:
        raise ValueError("nothing is changed")
    unknown = _unknown_names(ast.parse(lines))
    if unknown:
        raise ValueError(f"the wrong form uses what the module does not have: {unknown}")
    return lines


def _unknown_names(module: ast.Module) -> list[str]:
    """Return names that are used in a module and defined nowhere in it.

    A wrong form with such a name fails whatever the test looks at, so it proves nothing.
    """
    known = {*dir(builtins), "__file__", "__name__"}
    used: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.Name):
            known.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.alias):
            known.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name:
            known.add(node.name)
    return sorted(used - known)


def _find(scope: list[ast.stmt], name: str) -> Function | ast.Assign | ast.AnnAssign | None:
    for node in scope:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return node
    return None


def _wrong_function(text: str, node: Function, names: list[str], wrong: str) -> str:
    """Put the wrong form behind the right one, which gets another name."""
    lines = text.splitlines(keepends=True)
    first_line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines_before = lines[: first_line - 1]
    lines_after = lines[node.end_lineno :]
    decorators = ["@" + ast.unparse(decorator) + "\n" for decorator in node.decorator_list]
    wrong_tree = ast.parse(textwrap.dedent(wrong))
    if [getattr(part, "name", "") for part in wrong_tree.body] != [node.name]:
        raise ValueError(f"the wrong form must be one function of the name {node.name}")
    right_name = f"_right_{node.name.strip('_')}"
    right = textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
    right = right.replace(f"def {node.name}(", f"def {right_name}(", 1)
    is_read_like_field = any(
        ast.unparse(decorator).rpartition(".")[2] in READ_LIKE_FIELDS
        for decorator in node.decorator_list
    )
    if not is_read_like_field:
        right = "".join(decorators) + right
    reference = ".".join([*names[:-1], right_name])
    for part in ast.walk(wrong_tree):
        if isinstance(part, ast.Name) and part.id == "right":
            part.id = reference
    wrong_form = "".join(decorators) + ast.unparse(wrong_tree) + "\n"
    both = textwrap.indent(f"{right}\n{wrong_form}", " " * node.col_offset)
    return "".join([*lines_before, both, *lines_after])


def _wrong_constant(text: str, node: ast.Assign | ast.AnnAssign, wrong: str) -> str:
    lines = text.splitlines(keepends=True)
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    lines_before = lines[: node.lineno - 1]
    lines_after = lines[node.end_lineno :]
    assignment = f"{ast.unparse(target)} = {wrong}\n"
    return "".join(
        [*lines_before, textwrap.indent(assignment, " " * node.col_offset), *lines_after]
    )
