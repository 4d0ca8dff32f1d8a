"""The site: it is built strictly, shows every public name, and its longest pages stay short."""

import ast
import os
import re
import textwrap

import pytest

import conspectus
from scripts import ran
from test_docs import PAGES, ROOT, blocks_of

DOCS = ROOT / "docs"
REFERENCE = re.compile(r"^::: (\S+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)(?:#[^)\s]*)?\)")
LOADED = re.compile(r"""<(?:script|img|iframe)[^>]*\ssrc=["'](?:https?:)?//""")
STYLES = re.compile(r"""<link[^>]*\shref=["'](?:https?:)?//""")


def imported() -> set[str]:
    """Each of our names that an example of the documentation imports, with its module."""
    found = set()
    for path in PAGES:
        for block in blocks_of(path.name, path.read_text(encoding="utf-8")):
            if block.language != "python" or block.text.startswith(">>>"):
                continue
            for node in ast.walk(ast.parse(textwrap.dedent(block.text))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    conspectus.__name__
                ):
                    found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def described() -> list[str]:
    """The names that the API reference asks for, as often as it does."""
    pages = (page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("reference/*.md")))
    return [name for page in pages for name in REFERENCE.findall(page)]


@pytest.mark.slow
def test_the_site_is_built_strictly_and_shows_every_public_name(tmp_path):
    options = ["--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = ran("-m", "mkdocs", "build", *options, cwd=ROOT, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = {page: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    for page, text in pages.items():
        assert not LOADED.search(text), f"{page.name} loads a script or an image from elsewhere"
        assert not STYLES.search(text), f"{page.name} loads a style from elsewhere"
    entries = {
        name
        for page, text in pages.items()
        if page.parent.name == "reference"
        for name in re.findall(r'<h\d id="([\w.]+)" class="doc', text)
    }
    wanted = {f"conspectus.{name}" for name in conspectus.__all__}
    assert sorted(wanted - entries) == []
    assert sorted(set(described()) - entries) == []


def test_the_reference_has_every_name_that_the_pages_import_and_none_twice():
    there = described()
    assert sorted({name for name in there if there.count(name) > 1}) == []
    assert sorted(imported() - {*there}) == []


def test_readme_and_architecture_stay_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
    assert len((DOCS / "architecture.md").read_text(encoding="utf-8").split()) <= 1_200


def test_the_links_of_pages_outside_of_the_site_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "examples" / "lead_agent" / "README.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_sources_name_no_page_that_is_gone():
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"\bdocs/(\w+\.md)\b", path.read_text(encoding="utf-8")):
            assert (DOCS / name).exists(), f"{path}: {name}"
