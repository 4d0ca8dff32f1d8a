"""The package is imported without what is not asked for."""

import json

import pytest

import conspectus
from scripts import ran

LOADED = "import json, sys\nprint('\\n' + json.dumps(list(sys.modules)))"


def loaded(code: str) -> set[str]:
    """The modules that some lines load in a fresh interpreter."""
    shown = ran("-c", f"{code}\n{LOADED}", check=True)
    return set(json.loads(shown.stdout.splitlines()[-1]))


def test_the_package_alone_loads_neither_langchain_nor_langgraph():
    found = loaded("import conspectus")
    assert not {"langchain_core", "langchain", "langgraph", "pydantic", "typer"} & found


@pytest.mark.slow
def test_a_caller_with_dicts_and_a_file_loads_neither_langchain_nor_langgraph(tmp_path):
    found = loaded(f"""
import sys
heavy = {{"langchain", "langchain_core", "langgraph", "numpy", "pydantic", "sqlite_vec"}}
from conspectus import Compactor
assert not heavy & {{*sys.modules}}, "by the import"
messages = [{{"role": "user", "content": f"Look at module_{{n}}.py."}} for n in range(30)]
for archive in (None, {str(tmp_path / "a.db")!r}):
    compactor = Compactor(trigger=("messages", 20), keep=("messages", 4), archive=archive)
    assert compactor.compact(messages, thread_id="t").outcome == "compacted"
    assert not heavy & {{*sys.modules}}, f"by a compaction with archive={{archive}}"
assert "module_3" in compactor.recall("module_3", thread_id="t").text
assert not heavy & {{*sys.modules}}, "by recall"
""")
    assert "conspectus.engine.api" in found


@pytest.mark.slow
def test_commands_without_langchain_load_none(tmp_path):
    (tmp_path / "history.json").write_text(json.dumps([{"role": "user", "content": "hi"}] * 30))
    (tmp_path / "config.yaml").write_text("summarization:\n  trigger: {type: tokens, value: 9000}")
    commands = (
        "--version",
        "config check config.yaml",
        "tokens history.json",
        "compact history.json --archive a.db --thread t --force -o out.json",
        "recall --archive a.db --thread t hi",
        "archive list --archive a.db",
        "archive export --archive a.db -o out.jsonl",
    )
    loaded(f"""
import os, sys
from conspectus.cli import main
os.chdir({str(tmp_path)!r})
for command in {commands!r}:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    assert not {{"langchain", "langchain_core", "langgraph", "numpy"}} & {{*sys.modules}}, command
""")


def test_every_public_name_is_found_and_listed():
    for name in conspectus.__all__:
        assert getattr(conspectus, name) is not None
        assert name in dir(conspectus)
