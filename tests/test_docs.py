"""The documentation does not lie: every code block of README and docs is carried out.

Python blocks of one page share their names and run in a folder of their own, with `examples` in it.
Commands of console blocks must succeed, or end with the code that `# exits N` names. YAML and JSON
must parse. Blocks of another language fail, so that nothing escapes. The examples in the docstrings
are carried out too.
"""

import ast
import asyncio
import doctest
import importlib
import inspect
import json
import logging
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import conspectus
from conspectus.engine import compaction
from fault_server import FaultServer
from scripts import run_python

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples" / "lead_agent" / "README.md",
]
STARTING = {*"cli config deep_agents evidence lead_agent mcp measure operations sdk serve".split()}
"""Pages whose blocks start processes or a server, or replay a session."""
PROVIDERS = "serve sdk".split()
"""Pages whose clients ask a provider, by the addresses and keys of their environment."""


PACKAGES = sorted(path.parent.name for path in (ROOT / "src").glob("*/__init__.py"))


def _has_examples(module: pkgutil.ModuleInfo) -> bool:
    spec = module.module_finder.find_spec(module.name, None)  # not imported before it has to be
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text(encoding="utf-8")


MODULES = sorted(
    module.name
    for package in map(importlib.import_module, PACKAGES)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__") and _has_examples(module)
)
FENCE = re.compile(r"^( *)(`{3,}|~{3,})[ \t]*([^`]*)$")
EXITS = re.compile(r"#\s*exits\s+(\d+)\s*$")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*(?:\n# exits \d+)?)", re.MULTILINE)
PROGRAM = re.compile(r"^(\$|>>>) |^\s*(import \w|from \w+ import|def \w+\()", re.MULTILINE)
PARSERS: dict[str, Any] = {"json": json.loads, "yaml": yaml.safe_load}
INSTALLS = (["pip", "install"], ["python", "-m", "pip", "install"], ["uv", "add"])
SECONDS = 900
"""How long one command may take."""


class Wrong(AssertionError):
    """A block that does not do what it says."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: the name of its page, its first line, its language and its text.

    With `title="NAME"` behind the language, a reader saves the block as a file of that name.
    """

    page: str
    line: int
    language: str
    text: str
    title: str = ""

    def wrong(self, why: object) -> Wrong:
        return Wrong(f"{self.page}, line {self.line}: {why}")


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    end = language = title = ""
    start = 0
    lines = list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not end:
            if opening := FENCE.match(line):
                end = opening[2]
                language, _, options = opening[3].strip().partition(" ")
                language = language.lower()
                title = options.removeprefix('title="').removesuffix('"')
                lines = []
                start = number + 1
        elif line.strip().startswith(end) and not line.strip().strip(end[0]):
            yield Block(page, start, language, textwrap.dedent("\n".join(lines)), title)
            end = ""
        else:
            lines.append(line)
    if end:
        raise Wrong(f"{page}: the block in line {start} has no end")


class Page:
    """Carries out the blocks of one page, in order, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = types.ModuleType("page")
        self.names: dict[str, Any] = vars(self.module)

    def read(self, name: str, text: str) -> None:
        """Carry out all blocks of a text, or raise `Wrong`."""
        for block in blocks_of(name, text):
            try:
                self.carry_out(block)
            except Wrong:
                raise
            except Exception as error:
                raise block.wrong(f"{type(error).__name__}: {error}") from error

    def carry_out(self, block: Block) -> None:
        match block.language:
            case "python":
                # Empty lines in front, so that a traceback names the line of the page.
                source = "\n" * (block.line - 1) + block.text
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                code = compile(source, block.page, "exec", flags=flags, dont_inherit=True)
                running = eval(code, self.names)
                if code.co_flags & inspect.CO_COROUTINE:
                    asyncio.run(running)
            case "console":
                self._console(block)
            case "json" | "yaml":
                PARSERS[block.language](block.text)
                if block.title:
                    (self.folder / block.title).write_text(block.text, encoding="utf-8")
            case "diff":
                assert all(line[:1] in "+- " for line in block.text.splitlines())
            case "" | "text":  # anything that could be carried out has to say what it is
                assert not PROGRAM.search(block.text), "name the language of the block"
            case other:
                raise block.wrong(f"nobody knows how to check a block of {other!r}")

    def _console(self, block: Block) -> None:
        # A command goes on behind a backslash; the code that it ends with may stand below it.
        commands = COMMAND.findall(block.text)
        assert commands, "a console block without a line that begins with '$ '"
        for command in commands:
            if _is_setup(shlex.split(command, comments=True)):
                continue
            finished = subprocess.run(
                ["sh", "-c", command], cwd=self.folder, capture_output=True, encoding="utf-8",
                stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
            )  # fmt: skip
            exit_code = EXITS.search(command)
            printed = (finished.stderr or finished.stdout).strip()
            outcome = f"$ {command}\nexits {finished.returncode}: {printed}"
            assert finished.returncode == (int(exit_code[1]) if exit_code else 0), outcome


def _is_setup(words: list[str]) -> bool:
    """Whether a command sets things up, and so is checked without being run."""
    words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    if words[:1] == ["make"]:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
        assert {word for word in words[1:] if "=" not in word and word[0] != "-"} <= targets
    if installs := any(words[: len(start)] == start for start in INSTALLS):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        extras = re.findall(r"\[([\w,-]+)\]", " ".join(words))
        extras_named = {name for names in extras for name in names.split(",")}
        assert extras_named <= project["project"]["optional-dependencies"].keys()
    return installs or words[:1] in (["make"], ["cd"]) or words[:2] == ["git", "clone"]


@pytest.fixture
def loggers() -> Iterator[None]:
    """What a page sets the logger to is no other test's."""
    logger = logging.getLogger("conspectus")
    level, *others = logger.level, logger.propagate, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.propagate, logger.handlers = others


@pytest.fixture
def page(loggers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """A folder with the examples, an empty home, no keys, and our own commands first."""
    folder = tmp_path / "checkout"
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in os.environ:
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("CONSPECTUS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    carried_page = Page(folder)
    monkeypatch.setitem(sys.modules, "page", carried_page.module)
    return carried_page


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A server on this machine that refuses requests that are too long or torn."""
    with FaultServer(lambda request: "It is sound.", window=4_000) as server:
        for name, url in (("OPENAI", server.openai_url), ("ANTHROPIC", server.anthropic_url)):
            monkeypatch.setenv(f"{name}_API_KEY", "none")
            monkeypatch.setenv(f"{name}_BASE_URL", url)
        yield server
    assert server.requests
    assert server.too_long == server.invalid == []


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)),
            marks=pytest.mark.slow if {path.stem, path.parent.name} & STARTING else [],
        )
        for path in PAGES
    ],
)
def test_every_block_of_a_page_does_what_it_says(path, page, request):
    if path.stem in PROVIDERS:
        request.getfixturevalue("provider")
    page.read(path.name, path.read_text(encoding="utf-8"))


def test_no_two_pages_use_one_archive_file():
    named = [set(re.findall(r"[\w-]+\.db\b", path.read_text(encoding="utf-8"))) for path in PAGES]
    assert sum(map(len, named)) == len(set().union(*named))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


DOCS = ROOT / "docs"
REFERENCE = re.compile(r"^::: (\S+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)(?:#[^)\s]*)?\)")
LOADED = re.compile(r"""<(?:(?:script|img|iframe)[^>]*\ssrc|link[^>]*\shref)=["'](?:https?:)?//""")
"""A script, an image or a style of another site."""


def imported() -> set[str]:
    """Each of our names that an example of the documentation imports, with its module."""
    names = set()
    for path in PAGES:
        for block in blocks_of(path.name, path.read_text(encoding="utf-8")):
            if block.language != "python":
                continue
            for node in ast.walk(ast.parse(textwrap.dedent(block.text))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    conspectus.__name__
                ):
                    names |= {f"{node.module}.{name.name}" for name in node.names}
    return names


def described() -> list[str]:
    """The names that the API reference asks for, as often as it does."""
    pages = (page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("reference/*.md")))
    return [name for page in pages for name in REFERENCE.findall(page)]


@pytest.mark.slow
def test_the_site_is_built_strictly_and_shows_every_public_name(tmp_path):
    options = ["--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    finished = run_python("-m", "mkdocs", "build", *options, cwd=ROOT, env=environment, timeout=300)
    assert finished.returncode == 0, finished.stderr
    pages = {page: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    for page, text in pages.items():
        assert not LOADED.search(text), f"{page.name} loads something from elsewhere"
    entries = {
        name
        for page, text in pages.items()
        if page.parent.name == "reference"
        for name in re.findall(r'<h\d id="([\w.]+)" class="doc', text)
    }
    code = ast.walk(ast.parse(Path(conspectus.__file__).read_text(encoding="utf-8")))
    names = [
        alias.asname for node in code if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    public_names = {f"conspectus.{name}" for name in names if name}
    assert sorted(public_names - entries) == []
    assert sorted(set(described()) - entries) == []


def test_the_reference_has_every_imported_name_once():
    described_names = described()
    assert sorted({name for name in described_names if described_names.count(name) > 1}) == []
    assert sorted(imported() - {*described_names}) == []


def test_the_page_on_yaml_begins_with_the_smallest_preset():
    page = (DOCS / "config.md").read_text(encoding="utf-8")
    first = next(block for block in blocks_of("config.md", page) if block.language == "yaml")
    preset = (ROOT / "examples" / "config" / "minimal.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(first.text) == yaml.safe_load(preset)


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_links_of_pages_outside_of_the_site_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "examples" / "lead_agent" / "README.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_sources_name_no_page_that_is_gone():
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"\bdocs/(\w+\.md)\b", path.read_text(encoding="utf-8")):
            assert (DOCS / name).exists(), f"{path}: {name}"


def test_the_story_on_the_page_is_the_code():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for part in (compaction.compact, compaction.carry_out, compaction.put_in_force):
        assert inspect.getsource(part).rstrip() in page
