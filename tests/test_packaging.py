"""What is installed: no import of what is not asked for, hints, the engine alone, the wheel."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus import Archive
from conspectus.errors import ConspectusError, install_command
from conspectus.observe import OpenTelemetry
from conspectus.tokens import TokenMeter
from conspectus_lab.report import replay_page
from scripts import run_python
from test_docs import ROOT, blocks_of

LOADED = "import json, sys\nprint('\\n' + json.dumps(list(sys.modules)))"


def loaded(code: str) -> set[str]:
    """The modules that some lines load in a fresh interpreter."""
    shown = run_python("-c", f"{code}\n{LOADED}", check=True)
    return set(json.loads(shown.stdout.splitlines()[-1]))


def test_the_package_alone_loads_neither_langchain_nor_langgraph():
    modules = loaded("import conspectus")
    assert not {"langchain_core", "langchain", "langgraph", "pydantic", "typer"} & modules


@pytest.mark.slow
def test_commands_without_langchain_load_none(tmp_path):
    (tmp_path / "history.json").write_text(
        json.dumps([{"role": "user", "content": "hi " * 60}] * 30)
    )
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


REPOSITORY = "https://example.org/conspectus.git"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'conspectus[serve]'"),
        ({"url": "https://example.org/conspectus.whl"}, "pip install 'conspectus[serve]'"),
        ({"url": "file:///srv/my%20code", "dir_info": {}}, "pip install '/srv/my code[serve]'"),
        (
            {"url": "file:///srv/code", "dir_info": {"editable": True}},
            "pip install -e '/srv/code[serve]'",
        ),
        (
            {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
            f"pip install 'conspectus[serve] @ git+{REPOSITORY}'",
        ),
    ],
)
def test_the_command_installs_from_where_conspectus_came(
    origin: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "conspectus-9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: conspectus\nVersion: 9.9\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("serve") == command


EXTRAS: list[tuple[str, str, Callable[[], Any]]] = [
    ("opentelemetry", "otel", OpenTelemetry),
    ("jinja2", "report", lambda: replay_page([])),
    ("psycopg", "postgres", lambda: Archive.open("postgresql://localhost/test")),
    ("tiktoken", "tokens", lambda: TokenMeter("tiktoken:o200k_base")),
    ("litellm", "", lambda: importlib.import_module("conspectus_sdk.litellm_proxy")),
    ("agents", "", lambda: importlib.import_module("conspectus_sdk.openai_agents")),
]


@pytest.mark.parametrize(("package", "extra", "use"), EXTRAS)
def test_an_extra_that_is_missing_is_named_with_its_command(package, extra, use, monkeypatch):
    for name in [*sys.modules]:
        if name.split(".")[0] == package or name.startswith("conspectus_sdk."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises((ImportError, ConspectusError), match=rf"pip install .*{extra}"):
        use()


SOURCE = ROOT / "src"

LOADED_BY_OTHERS = {
    "langchain-anthropic": "`init_chat_model`, for a model named anthropic:...",
    "langchain-openai": "`init_chat_model`, for a model named openai:...",
    "httptools": "uvicorn, whose protocol for it the endpoint extends",
    "uvloop": "uvicorn, where it is installed",
}
"""What is declared and not imported in the source, and who loads it."""


def name_of(requirement: str) -> str:
    """The name of a distribution, as packages are compared by."""
    bare = re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", bare).lower()


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return {
        name_of(requirement) for part in (project["dependencies"], *extras) for requirement in part
    }


def imports_in(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports when it runs, by `import_module` too; not those of types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (
                argument.value for argument in node.args if isinstance(argument, ast.Constant)
            )
        yield from imports_in(node)


def used_distributions() -> dict[str, set[str]]:
    """The distributions that the source imports, each module with those that may have it."""
    ours = {path.name for path in SOURCE.iterdir()}
    modules: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        modules |= set(imports_in(ast.parse(path.read_text(encoding="utf-8"))))
    roots = {module.partition(".")[0] for module in modules} - ours - {*sys.stdlib_module_names}
    owners = packages_distributions()
    return {root: {name_of(name) for name in owners.get(root, [])} for root in roots}


def test_every_declared_dependency_is_used():
    imported = set().union(*used_distributions().values())
    assert declared() - imported - set(LOADED_BY_OTHERS) == set()


def test_every_used_dependency_is_declared():
    names = declared()
    assert [module for module, owners in used_distributions().items() if not owners & names] == []


START = """\
import sys
sys.path[:] = [*{ours!r}, *(path for path in sys.path if "site-packages" not in path)]
for part in ("lab", "mcp", "sdk", "secrets", "serve"):
    name = f"conspectus_{{part}}"
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{{name}} can be imported")
"""
TALK = [
    {"role": role, "content": f"message {turn}: the port is {8000 + turn}, and nothing else is new"}
    for turn in range(30)
    for role in ("user", "assistant")
]


YAML = """\
summarization:
  enabled: true
  redact: true
  trigger: {type: messages, value: 40}
"""
NO_REDACTOR = (
    "redact=True needs the package conspectus_secrets, which is not installed; install it, or give "
    "redact= a function from text to text or a Redactor"
)


@dataclass(frozen=True, slots=True)
class EngineAlone:
    """An interpreter that has the engine only."""

    paths: tuple[str, ...]
    folder: Path

    def run(self, code: str, *args: object) -> subprocess.CompletedProcess[str]:
        """Run code with arguments, in a folder of its own."""
        plain = {"HOME": str(self.folder), "TERM": "dumb", "COLUMNS": "100"}
        whole = START.format(ours=self.paths) + code
        return run_python("-I", "-S", "-c", whole, *args, cwd=self.folder, env=plain)


@pytest.fixture(scope="module")
def engine_alone(tmp_path_factory: pytest.TempPathFactory) -> EngineAlone:
    folder = tmp_path_factory.mktemp("alone")
    source = Path(conspectus.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / "engine" / "conspectus", ignore=skipped)
    site_packages = folder / "site-packages"
    site_packages.mkdir()
    for name in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(name)).iterdir():
            ours = path.name.startswith(("conspectus", "_conspectus", "_editable", "__editable__"))
            is_there = (site_packages / path.name).is_symlink()
            if not is_there and not ours:
                (site_packages / path.name).symlink_to(path)
    return EngineAlone((str(folder / "engine"), str(site_packages)), folder)


def test_a_history_is_compacted_and_recalled(engine_alone):
    code = f"""
from conspectus import Compactor
compactor = Compactor(window=2_000, trigger={{"messages": 20}}, archive="memory:")
result = compactor.compact({TALK!r}, thread_id="t")
print(result.outcome, len(result.messages), "8003" in compactor.recall("8003", thread_id="t").text)
assert not [name for name in sys.modules if name.startswith("conspectus_")]
"""
    finished = engine_alone.run(code)
    assert finished.returncode == 0, finished.stderr
    outcome, messages, was_recalled = finished.stdout.split()
    assert (outcome, was_recalled) == ("compacted", "True")
    assert int(messages) < len(TALK)


@pytest.mark.slow
@pytest.mark.sampled(1)
def test_redaction_without_the_scanner_is_refused_and_never_passed_over(engine_alone):
    code = """
from pathlib import Path
from conspectus import Compactor, ConspectusError, ContextGuard, SummarizationMiddleware
from conspectus.config import load_config
Path("on.yaml").write_text(sys.argv[1])
asked = [
    lambda: Compactor(window=1_000, redact=True),
    lambda: Compactor(window=1_000, redact="secrets"),
    lambda: SummarizationMiddleware(None, redact=True),
    lambda: ContextGuard(window=1_000, redact=True),
    lambda: load_config("on.yaml"),
]
for one in asked:
    try:
        one()
    except ConspectusError as error:
        print(type(error).__name__, error)
    else:
        print("passed over")
"""
    finished = engine_alone.run(code, YAML)
    assert finished.returncode == 0, finished.stderr
    python = finished.stdout.splitlines()[:4]
    yaml = finished.stdout.splitlines()[4:]
    assert python == [f"PolicyError {NO_REDACTOR}"] * 4
    assert yaml[0].startswith("ConfigError ")
    assert "line 3" in "".join(yaml)
    assert NO_REDACTOR in "".join(yaml)


UV = Path(sys.executable).with_name("uv")


def carried_out(*command: str | Path, folder: Path) -> str:
    """What a command prints, run without this project's own folders in its path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    finished = subprocess.run(
        list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, timeout=500
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.mark.slow
def test_the_wheel_alone_runs_the_examples_of_the_readme(tmp_path):
    carried_out(UV, "build", "--wheel", "--out-dir", tmp_path / "dist", ROOT, folder=tmp_path)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    for package in (
        "conspectus", "conspectus_lab", "conspectus_mcp", "conspectus_sdk", "conspectus_secrets",
    ):  # fmt: skip
        assert f"{package}/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]

    fresh = tmp_path / "fresh"
    carried_out(UV, "venv", "--python", sys.executable, fresh, folder=tmp_path)
    python = fresh / ("Scripts" if os.name == "nt" else "bin") / "python"
    carried_out(
        UV, "pip", "install", "--python", python, "--constraint", ROOT / "requirements.lock",
        f"{wheel}[deepagents]", folder=tmp_path,
    )  # fmt: skip
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [block.text for block in blocks_of("README.md", text) if block.language == "python"]
    assert len(blocks) >= 2
    (tmp_path / "readme.py").write_text("\n\n".join(blocks), encoding="utf-8")
    carried_out(python, tmp_path / "readme.py", folder=tmp_path)
    module_path = carried_out(
        python, "-c", "import conspectus; print(conspectus.__file__)", folder=tmp_path
    )
    assert Path(module_path.strip()).is_relative_to(fresh)
    shown = carried_out(python.with_name("conspectus"), "--version", folder=tmp_path)
    assert shown.startswith("conspectus ")
