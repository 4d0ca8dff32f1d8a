"""The package is imported without what is not asked for."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys

import pytest

import conspectus


def loaded(code: str) -> set[str]:
    """The modules that some lines load in a fresh interpreter."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return set(json.loads(shown.stdout))


def test_the_package_alone_loads_neither_langchain_nor_langgraph() -> None:
    found = loaded("import conspectus")
    assert not {"langchain_core", "langchain", "langgraph", "pydantic", "typer"} & found


def test_a_caller_with_dicts_and_a_file_loads_no_agents_and_no_numpy() -> None:
    found = loaded(
        "import tempfile; from pathlib import Path; from conspectus import Compactor\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    compactor = Compactor(window=8000, archive=str(Path(folder) / 'a.db'))\n"
        "    message = {'role': 'user', 'content': 'hi'}\n"
        "    compactor.compact([message], thread_id='t')"
    )
    assert "conspectus.compactor" in found
    assert not {"langchain.agents", "langgraph.graph", "numpy", "sqlite_vec"} & found


def test_every_public_name_is_found_and_listed() -> None:
    for name in conspectus.__all__:
        assert getattr(conspectus, name) is not None
        assert name in dir(conspectus)


def test_a_name_is_imported_from_where_type_checkers_take_it() -> None:
    tree = ast.parse(inspect.getsource(conspectus))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        name.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == conspectus._PLACES
    assert {*typed, "__version__"} == {*conspectus.__all__}


def test_another_name_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Compacter'"):
        _ = conspectus.Compacter
