"""What people type at the entry points: names, misspelt settings, copies of a compactor."""

import asyncio
import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import summarization as theirs
from langgraph.checkpoint.memory import InMemorySaver

import conspectus
from conspectus import Compactor, ContextGuard, PolicyError, StuckError, SummarizationMiddleware
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.langchain import DEFAULT_SUMMARY_PROMPT
from conspectus.short_term import SummarizationNode, asummarize_messages, summarize_messages
from conspectus_sdk import Fitter
from graph_support import (
    new_agent,
    new_middleware,
    new_summariser,
    thread_config,
    tool_steps,
    user_input,
)
from scripted_models import ScriptedChatModel

MODEL = ScriptedChatModel(answers=[])

MISSPELT: list[tuple[str, Any]] = [
    ("window", lambda: Compactor(windows=8_000)),  # type: ignore[call-arg]
    ("archive", lambda: Compactor(window=8_000, archives="a.db")),  # type: ignore[call-arg]
    ("trigger", lambda: SummarizationMiddleware(None, triggers=("tokens", 9))),
    ("window", lambda: ContextGuard(windows=8_000)),
    ("on_stuck", lambda: ContextGuard(new_middleware(), on_stucks="send")),
    ("window", lambda: Fitter(archive="memory:", windows=8_000)),
    ("archive", lambda: Fitter(archives="memory:")),  # type: ignore[call-arg]
    ("middleware", lambda: create_deep_agent(MODEL, middlewares=[])),
    ("archive", lambda: summarization_middleware(MODEL, archives="memory:")),
    ("max_tokens", lambda: summarize_messages([], max_token=9)),  # type: ignore[call-arg]
    ("max_tokens", lambda: SummarizationNode(model=MODEL, max_token=9)),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("meant", "build"), MISSPELT)
def test_a_misspelt_argument_names_the_one_that_was_meant(meant, build):
    with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
        build()


def test_the_async_function_names_it_too():
    with pytest.raises(TypeError, match="did you mean 'running_summary'"):
        asyncio.run(asummarize_messages([], running_summarys=None))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "name", ["Fitter", "create_deep_agent", "load_config", "summarize_messages"]
)
def test_a_name_that_stands_elsewhere_says_where(name):
    assert not hasattr(conspectus, name)
    statement = f"from {conspectus.ELSEWHERE[name]} import {name}"
    with pytest.raises(AttributeError, match=statement):
        getattr(conspectus, name)
    with pytest.raises(ImportError, match=statement):
        exec(f"from conspectus import {name}")
    exec(statement)


@pytest.mark.slow
def test_every_name_that_stands_elsewhere_is_there():
    import importlib

    for name, module in conspectus.ELSEWHERE.items():
        assert hasattr(importlib.import_module(module), name), (module, name)


def test_names_of_langchains_module_can_be_imported():
    import conspectus.langchain as ours
    import conspectus.short_term

    for name in ("ContextFraction", "ContextTokens", "ContextMessages", "ContextSize"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.TriggerClause.__annotations__.keys() == theirs.TriggerClause.__annotations__.keys()
    assert callable(ours.TokenCounter)
    assert conspectus.short_term.TokenCounter is not None


def prompt_with(prompt: Any) -> str:
    """What the summariser of an agent is told."""
    writer = new_summariser()
    setting = {} if prompt == "" else {"summary_prompt": prompt}
    graph, _ = new_agent(tool_steps(12), new_middleware(model=writer, **setting))
    graph.invoke(user_input("Look at all modules."), thread_config())
    return re.sub(r"\[[0-9a-f]{8}\]|id=\"[0-9a-f]{8}\"", "", writer.calls[0].text)


@pytest.mark.parametrize("settings", [{}, {"summary_prompt": None}, {"summary_prompt": "Sum up."}])
def test_the_summary_prompt_in_use_can_be_read(settings):
    middleware = SummarizationMiddleware(None, **settings)
    assert middleware.summary_prompt == (settings.get("summary_prompt") or DEFAULT_SUMMARY_PROMPT)


def test_the_default_prompt_may_be_passed_and_extended():
    instructions = DEFAULT_SUMMARY_PROMPT.replace("{messages}", "").strip()
    assert instructions in prompt_with("")
    assert prompt_with(DEFAULT_SUMMARY_PROMPT) == prompt_with("")
    extended = prompt_with(f"{DEFAULT_SUMMARY_PROMPT}\n\nWrite in German.")
    assert instructions in extended
    assert "Write in German." in extended


def test_a_preview_without_a_checkpointer_is_refused_at_the_first_step():
    graph, model = new_agent(tool_steps(3), new_middleware(preview=True), checkpointer=None)
    with pytest.raises(PolicyError, match="checkpointer=InMemorySaver"):
        graph.invoke(user_input("Look."), thread_config())
    assert model.calls == []


def test_a_preview_with_a_checkpointer_begins():
    graph, model = new_agent(["Done."], new_middleware(preview=True), checkpointer=InMemorySaver())
    graph.invoke(user_input("Look."), thread_config())
    assert len(model.calls) == 1


def test_a_system_prompt_that_is_too_large_is_named_first():
    middleware = new_middleware(trigger=("tokens", 100_000))
    guard = ContextGuard(middleware, window=3_000)
    graph, _ = new_agent(
        ["Done."], middleware, guard, system_prompt="Be careful with each file. " * 500
    )
    with pytest.raises(StuckError, match=r"^the system prompt alone takes [\d,]+ of the window's"):
        graph.invoke(user_input("Look at all modules."), thread_config())


def test_a_fitter_names_only_packages_that_would_help(monkeypatch):
    with Fitter(archive="memory:") as fitter:
        with pytest.raises(PolicyError) as error:
            fitter.fit([], model="my-own-model", thread_id="t")
        monkeypatch.setattr("conspectus_sdk.fitting.find_spec", lambda name: None)
        with pytest.raises(PolicyError, match=r"\[anthropic\]"):
            fitter.fit([], model="claude-unheard-of", thread_id="t")
    assert "install" not in str(error.value)


def turns(count: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(count):
        messages.append({"role": "user", "content": f"Question {number}: " + "why " * 60})
        messages.append({"role": "assistant", "content": f"Answer {number}: " + "so " * 60})
    return messages


@pytest.mark.parametrize("archive", ["memory:", None])
def test_a_deep_copy_goes_on_with_the_same_histories(archive):
    compactor = Compactor(window=2_000, archive=archive)
    first = compactor.compact(turns(20), thread_id="t")
    again = copy.deepcopy(compactor)
    assert again.archive is compactor.archive
    result = again.compact(turns(20), thread_id="t")
    assert result.messages == first.messages
    assert result.record is None


def test_a_pickled_compactor_opens_its_archive_again(tmp_path: Path):
    compactor = Compactor(window=2_000, archive=tmp_path / "a.db", keep=("messages", 4))
    first = compactor.compact(turns(20), thread_id="t")
    with pickle.loads(pickle.dumps(compactor)) as again:
        assert again.compact(turns(20), thread_id="t").messages == first.messages
        assert "Question 3" in again.recall("Question 3", thread_id="t").text


@pytest.mark.parametrize("archive", ["memory:", conspectus.Archive.open("memory:")])
def test_a_compactor_that_cannot_be_pickled_says_why(archive):
    with pytest.raises(TypeError, match=r"cannot be pickled.*give archive= a path"):
        pickle.dumps(Compactor(window=2_000, archive=archive))
