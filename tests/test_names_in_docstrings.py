"""A name in back quotes, in a docstring or on a page about the code, is one that the code has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
LONGEST_VALUE = 60  # characters of a text in the source that may be the value of a setting
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")

EXAMPLES = {
    *("call_0", "function12", "m0"),
    *("DB_PASSWORD", "YOUR_API_KEY", "new_password1", "password_file"),
    *("IT", "WHO", "Infinity"),
}
OF_TESTS = {"BLOCKS", "CONSPECTUS_TEST_POSTGRES"}
OF_OTHERS = {
    "BITS",
    "ContentBlock",
    "Host",
    "Origin",
    "TextStreamOutputToken",
    "memory_flush_hook",
    "to_tsquery",
    "types.Part",
}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def names_in(tree: ast.AST, docstrings: set[int]) -> Iterator[str]:
    for node in ast.walk(tree):
        for part in ("name", "id", "attr", "arg", "asname"):
            name = getattr(node, part, None)
            if isinstance(name, str):
                yield from name.split(".")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_value = id(node) not in docstrings and len(node.value) < LONGEST_VALUE
            yield from re.findall(r"\w+", node.value) if is_value else ()


def test_names_in_docstrings_exist():
    known: set[str] = set()
    quoted: dict[str, Path] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        docs = [node for node in docs if is_text(node)]
        known.update((path.stem, *path.parent.parts))
        known.update(names_in(tree, {id(node) for node in docs}))
        for node in docs:
            quoted |= dict.fromkeys(NAME.findall(ast.literal_eval(node)), path)
    for page in PAGES:
        quoted |= dict.fromkeys(NAME.findall(page.read_text(encoding="utf-8")), page)
    unknown = {
        name: path
        for name, path in quoted.items()
        if not known.issuperset(name.split(".")) and name not in EXAMPLES | OF_TESTS | OF_OTHERS
    }
    assert not unknown
