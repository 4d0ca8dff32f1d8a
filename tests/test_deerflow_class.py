"""The class that takes the place of DeerFlow's, built as DeerFlow's factory builds its own."""

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel, ConfigDict

from conspectus.config import ConfigError
from conspectus.config.deerflow import DEERFLOWS, DeerFlowSummarizationMiddleware, config_of
from graph_support import look, new_summariser, thread_config, tool_steps, tool_turns, user_input
from scripted_models import ScriptedChatModel


class Section(BaseModel):
    """A section as DeerFlow's configuration has it, which keeps keys of ours."""

    model_config = ConfigDict(extra="allow")
    enabled: bool = False
    trim_tokens_to_summarize: int | None = 4000


class NoSummary(RuntimeError):
    """What DeerFlow's command expects where no summary could be made."""


SECTION = {"enabled": True, "trigger": {"type": "messages", "value": 10}, "archive": "memory:"}


def app_config(**section: Any) -> Any:
    models = [{"name": "run", "use": "langchain_openai:ChatOpenAI", "context_window": 50_000}]
    return SimpleNamespace(
        summarization=Section(**(SECTION | section)),
        models=models,
        skills=SimpleNamespace(container_path="/mnt/skills"),
    )


@pytest.fixture
def deerflow(monkeypatch):
    """What of DeerFlow's own modules is used, and the models that it has built, by name."""
    models: dict[str, Any] = {}
    middlewares: Any = ModuleType(DEERFLOWS)
    middlewares.create_chat_model = lambda *, name, **options: models[name]
    middlewares.SummaryGenerationError = NoSummary
    users: Any = ModuleType("deerflow.runtime.user_context")
    users.resolve_runtime_user_id = lambda runtime: "ada"
    monkeypatch.setitem(sys.modules, DEERFLOWS, middlewares)
    monkeypatch.setitem(sys.modules, "deerflow.runtime.user_context", users)
    return models


def build_middleware(model: Any, **changes: Any) -> DeerFlowSummarizationMiddleware:
    """As DeerFlow's factory calls its class."""
    usual: dict[str, Any] = {
        "trigger": ("messages", 10),
        "keep": ("messages", 4),
        "trim_tokens_to_summarize": 4000,
        "app_config": app_config(),
        "configured_model_name": None,
        "run_model_name": "run",
        "anchor_model_name": "run",
        "extensions": object(),
    }
    return DeerFlowSummarizationMiddleware(model, **(usual | changes))


def test_the_object_that_deerflow_was_given_is_the_configuration(deerflow):
    middleware = build_middleware(new_summariser(), app_config=app_config(max_summary_tokens=400))

    assert middleware.window == 50_000
    assert middleware.max_summary_tokens == 400
    assert middleware.archive is not None
    assert middleware.trim_tokens_to_summarize is None
    assert middleware.name == "DeerFlowSummarizationMiddleware"


def test_a_wrong_key_is_named_in_the_error(deerflow):
    with pytest.raises(ConfigError, match="archiv"):
        config_of(app_config(archiv="memory:"))


def test_the_hook_knows_agent_user_and_thread(deerflow):
    events: list[Any] = []
    middleware = build_middleware(new_summariser(), before_summarization=[events.append])
    model = ScriptedChatModel(answers=tool_steps(24))
    graph: Any = create_agent(
        model, [look], middleware=[middleware, *middleware.guards], checkpointer=InMemorySaver()
    )
    config = thread_config()
    config["configurable"]["agent_name"] = "researcher"
    graph.invoke(user_input("Look at all modules."), config)

    assert events
    assert {(event.tenant, event.agent_name, event.thread_id) for event in events} == {
        ("ada", "researcher", "t")
    }
    assert all("Look at all modules." in call.text for call in model.calls)


def test_the_configured_model_writes_and_the_runs_own_stands_in(deerflow):
    deerflow["run"] = runs_model = new_summariser()
    broken = ScriptedChatModel(answers=lambda messages: ValueError("the key has expired"))
    middleware = build_middleware(broken, configured_model_name="small", anchor_model_name="small")
    graph: Any = create_agent(
        ScriptedChatModel(answers=tool_steps(16)),
        [look],
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    state = graph.invoke(user_input("Look at all modules."), thread_config())

    assert broken.calls
    assert runs_model.calls
    assert "are looked at" in state["messages"][0].text


def compacted(
    middleware: DeerFlowSummarizationMiddleware, messages: list[Any], **options: Any
) -> Any:
    runtime = SimpleNamespace(context={"thread_id": "t", "user_id": "ada"})
    return asyncio.run(middleware.acompact_state({"messages": messages}, runtime, **options))


def test_the_next_run_continues_what_the_command_compacted(deerflow):
    middleware = build_middleware(new_summariser())
    messages = tool_turns(6)
    result = compacted(middleware, messages, force=True, raise_on_failure=True)

    kept_ids = [message.id for message in result.preserved_messages]
    assert kept_ids[0].startswith("summary-")
    assert kept_ids[-1] == messages[-1].id
    summarised_ids = [message.id for message in result.messages_to_summarize]
    assert sorted([*summarised_ids, *kept_ids[1:]]) == sorted(message.id for message in messages)
    assert result.summary_text == ""
    assert result.total_tokens > 0

    model = ScriptedChatModel(answers=tool_steps(12))
    graph: Any = create_agent(model, [look], middleware=[middleware], checkpointer=InMemorySaver())
    new = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *result.preserved_messages]
    graph.update_state(thread_config(), {"messages": new})
    graph.invoke({"messages": [HumanMessage("And the rest?")]}, thread_config())
    assert all("And the rest?" in call.text for call in model.calls)
    assert all("Part 0" in call.text for call in model.calls)


def test_the_command_says_where_no_summary_could_be_made(deerflow):
    broken = ScriptedChatModel(answers=lambda messages: ValueError("the key has expired"))
    with pytest.raises(NoSummary, match="the key has expired"):
        compacted(build_middleware(broken), tool_turns(6), force=True, raise_on_failure=True)


def test_the_command_says_where_nothing_can_leave(deerflow):
    middleware = build_middleware(new_summariser())
    assert compacted(middleware, tool_turns(1)) is None


@pytest.mark.parametrize("force", [True, False])
def test_the_command_finds_nothing_after_it_has_compacted(deerflow, force):
    middleware = build_middleware(new_summariser())
    first = compacted(middleware, tool_turns(6), force=True)
    assert compacted(middleware, [*first.preserved_messages], force=force) is None
