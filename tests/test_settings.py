"""A setting is described once; every way in shows its name, type, default and meaning."""

import inspect
import re
from dataclasses import fields
from typing import Any

import pytest

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus._arguments import descriptions, meaning
from conspectus.config import SummarizationConfig, json_schema
from conspectus.deep_agents import summarization_middleware
from conspectus.engine.settings import CompactorSettings, FileSettings, PolicySettings, Settings
from conspectus.errors import PolicyError
from conspectus.langchain.settings import SummarizationSettings
from conspectus.short_term import SummarizationNode, asummarize_messages, summarize_messages
from conspectus_sdk import Fitter
from scripts import run_python
from test_docs import ROOT

SURFACES: tuple[Any, ...] = (
    Compactor,
    SummarizationMiddleware,
    ContextGuard,
    summarization_middleware,
    Fitter,
    SummarizationNode,
    summarize_messages,
    asummarize_messages,
)
EVERYWHERE = ("archive", "on_failure", "redact", "alternate_roles")

USER_PROGRAM = """
from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.short_term import SummarizationNode
from conspectus_sdk import Fitter

Compactor("openai:gpt-5", trigger=[("tokens", 4_000), {"messages": 9}], keep=("fraction", 0.3))
SummarizationMiddleware(None, trigger=("messages", 3), keep=("messages", 1), recall="auto")
ContextGuard(SummarizationMiddleware(None), window=8_000, on_stuck="send")
Fitter(archive="memory:", window={"gpt-5": 272_000})
SummarizationNode(model=None, max_tokens=900)
"""

MISTAKES = {
    "Compactor(windows=3)": 'Unexpected keyword argument "windows" for "Compactor"',
    'Compactor(notes="yes")': 'Argument "notes" to "Compactor" has incompatible type "str"',
    'Compactor(on_failure="ignore")': 'Argument "on_failure" to "Compactor"',
    "SummarizationMiddleware()": 'Missing positional argument "model"',
    'SummarizationMiddleware(None, keep="all")': 'Argument "keep" to "SummarizationMiddleware"',
    "ContextGuard(reserved=3)": 'Unexpected keyword argument "reserved" for "ContextGuard"',
    "Fitter(window=3)": 'Missing named argument "archive" for "Fitter"',
    "SummarizationNode(model=None)": 'Missing named argument "max_tokens"',
}
"""Calls with a mistake, and what a type checker says of each."""


@pytest.mark.slow
def test_a_type_checker_sees_each_name_and_type(tmp_path):
    program = tmp_path / "program.py"
    revealed = "reveal_type(Compactor.__init__)"
    program.write_text("\n".join([USER_PROGRAM, revealed, *MISTAKES]))
    cache = ROOT / ".mypy_cache"
    checked = run_python("-m", "mypy", "--strict", "--cache-dir", cache, program, cwd=ROOT)
    lines = [line.split(": ", 1)[1] for line in checked.stdout.splitlines() if "program.py" in line]
    signature = lines.pop(0)
    for field in fields(CompactorSettings):
        assert f" {field.name}: " in signature, field.name
    assert signature.count(" =") == len(fields(CompactorSettings))  # each has a default
    assert "max_summary_tokens: int | None =" in signature
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(MISTAKES)
    for error, mistake in zip(errors, MISTAKES.values(), strict=True):
        assert mistake in error


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_each_way_in_describes_all_that_it_takes(surface):
    taken = inspect.signature(surface).parameters
    shown = inspect.getdoc(surface)
    for name, parameter in taken.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            assert re.search(rf"^    {name}: [A-Z\"`]", shown, re.MULTILINE), name
    text = " ".join(shown.split())
    for name in EVERYWHERE:
        assert f"{name}: {meaning(PolicySettings, name)}" in text


def test_a_default_of_a_way_in_follows_the_common_meaning():
    compactor = " ".join(inspect.getdoc(Compactor).split())
    middleware = " ".join(inspect.getdoc(SummarizationMiddleware).split())
    assert "trigger: When to compact." in compactor
    assert "trigger: When to compact." in middleware
    assert 'is enough. Default: `("fraction", 0.85)` with a `window`' in compactor
    assert "is enough. Default: never." in middleware
    stale = [
        inspect.signature(surface).parameters["stale_results"].default for surface in SURFACES[:2]
    ]
    assert stale == [True, False]


def test_a_key_of_a_file_has_its_settings_meaning_and_bounds():
    keys = json_schema()["$defs"]["SummarizationConfig"]["properties"]
    for field in fields(FileSettings):
        text = meaning(FileSettings, field.name).replace("None", "null")
        assert keys[field.name]["description"].startswith(text)
    assert keys["max_summary_tokens"]["anyOf"][0]["minimum"] == 64
    with pytest.raises(PolicyError, match="at least 64"):
        Compactor(max_summary_tokens=63)


def test_a_setting_has_the_same_default_wherever_it_is_set():
    """Where another library's default has to stand, the page of that surface says so."""

    def defaults(surface: Any) -> dict[str, Any]:
        return {
            name: parameter.default
            for name, parameter in inspect.signature(surface).parameters.items()
        }

    compactor_defaults = defaults(Compactor)
    middleware = defaults(SummarizationMiddleware)
    differ = {
        name
        for name in compactor_defaults.keys() & middleware
        if compactor_defaults[name] != middleware[name]
    }
    assert differ == {"keep", "model", "token_counter", "stale_results", "summary_prompt"}
    file = {name: key.default for name, key in SummarizationConfig.model_fields.items()}
    common = file.keys() & middleware
    differ = {name for name in common if (file[name] or None) != (middleware[name] or None)}
    assert differ == {"keep", "summary_prompt", "token_counter"}


@pytest.mark.parametrize("surface", SURFACES[:6], ids=lambda surface: surface.__name__)
def test_a_misspelt_setting_is_answered_with_the_right_one(surface):
    needed = {"archive": "memory:"} if surface is Fitter else {}
    first = [None] if surface in (SummarizationMiddleware, summarization_middleware) else []
    with pytest.raises(TypeError, match="'on_falure'; did you mean 'on_failure'"):
        surface(*first, **needed, on_falure="keep")


def test_what_is_missing_or_there_twice_is_named():
    with pytest.raises(TypeError, match=r"SummarizationMiddleware: .*'model'"):
        SummarizationMiddleware()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Fitter: .*'archive'"):
        Fitter()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Compactor: multiple values for argument 'model'"):
        Compactor(None, model=None)  # type: ignore[misc]


def test_every_setting_of_the_engine_has_a_docstring():
    for settings in (CompactorSettings, SummarizationSettings, Settings):
        assert {field.name for field in fields(settings)} <= descriptions(settings).keys()


def test_a_compactor_takes_a_prompt_hooks_and_skills_of_its_own():
    heard: list[Any] = []
    compactor = Compactor(
        trigger=("messages", 4),
        keep=("messages", 1),
        before_summarization=heard.append,
        summary_prompt="Sum up: {messages}",
    )
    history = [{"role": "user", "content": f"Look at module {n}. " * 9} for n in range(6)]
    assert compactor.compact(history, thread_id="t").outcome == "compacted"
    assert heard[0].messages_to_summarize
