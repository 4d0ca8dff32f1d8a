"""Scripts that edit a file when they are run, told by their edits and not by their outline."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from conspectus.summarize.cutting import cut, one_line
from conspectus.summarize.edits import BECOMES, SHORT, change_of
from conspectus.summarize.outputs import outline

EDITS = "edits: "
"""Stands before the edits of a script."""

EDIT = 240
"""Characters that the text of an edit has at any scale: it is what was changed."""

LARGEST = 20_000
"""Characters of a script up to which it is read: more hold data, and no edits."""

_OPENED = re.compile(
    r"""\bopen\(\s*(?:['"]([^'"]+)['"]|(\w+))\s*,\s*(?:mode\s*=\s*)?['"][wax]"""
    r"""|\bPath\(\s*['"]([^'"]+)['"]\s*\)\.write_"""
)
_NAMED = re.compile(r"""^[^\S\n]*(\w+)[^\S\n]*=[^\S\n]*['"]([\w./-]+)['"][^\S\n]*$""", re.MULTILINE)
"""How a script opens a file to write it, by its name or by a variable that holds that."""

_REMARKS = re.compile(r"\"\"\"[^\"]*\"\"\"|^[^\S\n]*#.*$", re.MULTILINE)
_READS = re.compile(r"\.read(?:lines|_text)?\(")


def opened(script: str) -> list[str]:
    """Return the files that a script opens to write them.

    Example:
        >>> opened("name = 'menu.py'\\nwith open(name, 'w') as file:")
        ['menu.py']
    """
    names = dict(_NAMED.findall(script))
    found = (a or b or names.get(name, "") for a, name, b in _OPENED.findall(script))
    return [path for path in found if path]


def written(text: str, room: int) -> str:
    """Return what stands for a text that is written into a file, in so many characters."""
    if len(text) <= LARGEST and (edits := edits_of(text)):
        return cut(f"{EDITS}{edits}", max(room, EDIT))
    return outline(text, room)


@lru_cache(maxsize=512)  # the same script is told anew in each length that is tried
def edits_of(script: str) -> str:
    """Return the edits that a Python script makes to a file; empty where it makes none.

    These are the old and the new text of each replacement, else the texts that it holds and does
    not print.

    Example:
        >>> edits_of("text = open('a.py').read()\\nnew = text.replace('x = 1', 'x = 2')\\n"
        ...          "open('a.py', 'w').write(new)")
        'x = 1 ⇒ x = 2'
    """
    if not (opened(script) and _READS.search(script)):
        return ""
    try:
        tree = ast.parse(script)
        tree.body = _used(tree.body)
        nodes = list(_nodes(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    named, pairs, held = dict[str, str](), list[str](), list[str]()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if (text := _text(node.value, named)) is not None:
                named[node.targets[0].id] = text
        elif isinstance(node, ast.Call):
            texts = [_text(arg, named) for arg in node.args[:2]]
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in ("replace", "sub") and len(texts) == 2 and texts[0] and texts[1]:
                old, new = texts[0], texts[1]
                change = change_of(old, new) if len(old) + len(new) > SHORT else ""
                pairs.append(change or f"{one_line(old)}{BECOMES}{one_line(new)}")
        elif (text := _text(node, {})) is not None and " " in text.strip():
            held += [one_line(row) for row in _REMARKS.sub("", text).splitlines() if row.strip()]
    return "; ".join(dict.fromkeys(pairs)) or " ⏎ ".join(dict.fromkeys(held))


def _used(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements without those whose name gets another value before any use."""
    waiting, gone = dict[str, int](), set[int]()
    for at, step in enumerate(body):
        for node in ast.walk(step):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
                waiting.pop(node.id, None)
        target = step.targets[0] if isinstance(step, ast.Assign) else None
        if isinstance(target, ast.Name):
            gone.update([waiting[target.id]] if target.id in waiting else [])
            waiting[target.id] = at
    return [step for at, step in enumerate(body) if at not in gone]


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a script in order, without those of what it prints or raises."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Raise) or (isinstance(called, ast.Name) and called.id == "print"):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child)


def _text(node: ast.AST, named: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return named.get(node.id) if isinstance(node, ast.Name) else None
