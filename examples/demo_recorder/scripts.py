"""Python that the agent runs in its workspace."""

from __future__ import annotations

LONG_FUNCTIONS = """\
import ast, pathlib
for file in sorted(pathlib.Path("src").rglob("*.py")):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > {cap}:
                print(f"{{file.as_posix()}}:{{node.lineno}}: {{node.name}} {{lines}}")
"""

BARE_FUNCTIONS = """\
import ast, pathlib
bare = count = 0
for file in sorted(pathlib.Path("src").rglob("*.py")):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for owner in [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                count += 1
                if not ast.get_docstring(node):
                    bare += 1
                    print(f"{file.as_posix()}:{node.lineno}: {node.name}")
print(f"{count} public functions, {bare} without a docstring")
"""

KINDS_OF = """\
from conspectus.ledger import identifiers
for text in {texts!r}:
    print(repr(text), [(kind, value) for kind, value, _ in identifiers(text)])
"""

SIZES_OF = """\
from conspectus.tokens import estimate
for text in {texts!r}:
    print(f"{{text}}  x10: {{estimate(text * 10)}} tokens")
"""

RAISED = """\
import ast, pathlib
for file in sorted(pathlib.Path("src").rglob("*.py")):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and call.args:
            said = ast.unparse(call.args[0])
            hint = any(mark in said for mark in (";", "must", "FORM", "raise ", "pass ", "give "))
            if not hint:
                print(f"{file.as_posix()}:{node.lineno}: {said}")
"""

INNER_FUNCTIONS = """\
import ast, pathlib
tree = ast.parse(pathlib.Path({path!r}).read_text(encoding="utf-8"))
for node in ast.walk(tree):
    if isinstance(node, ast.FunctionDef) and node.name == {name!r}:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef) and inner is not node:
                print(f"{path}:{{inner.lineno}}: {{inner.name}} "
                      f"{{inner.end_lineno - inner.lineno + 1}}")
"""

DOCUMENTED_LITERALS = """\
import ast, pathlib, re
for line in pathlib.Path("docs/limits.md").read_text(encoding="utf-8").splitlines():
    row = re.match(r"\\| `(\\w+)` \\| `(.+?)` \\|", line)
    if row:
        print(row[1], "=", ast.literal_eval(row[2]))
"""

DOCUMENTED_VALUES = """\
import importlib, pathlib, re
checked = wrong = 0
for line in pathlib.Path("docs/limits.md").read_text(encoding="utf-8").splitlines():
    row = re.match(r"\\| `(\\w+)` \\| `(.+?)` \\| `src/(.+?)\\.py` \\|", line)
    if row:
        module = importlib.import_module(row[3].replace("/", "."))
        checked += 1
        if eval(row[2]) != getattr(module, row[1]):
            wrong += 1
            print(f"{row[1]} is {getattr(module, row[1])!r}, the page says {row[2]}")
print(f"{checked} values checked, {wrong} wrong")
"""
