"""A file of DeerFlow's: the same keys and values, its `models`, and its own classes."""

import asyncio
import os
import re
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typing_extensions
import yaml
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

from config_support import SUMMARY, Agent, answering, loaded, summarising, written
from conspectus.config import (
    ConfigError,
    SummarizationConfig,
    create_summarization_middleware,
    load_config,
)
from conspectus.langchain import ContextGuard, SummarizationEvent
from conspectus.messages import is_summary_message
from scripted_models import ScriptedChatModel
from test_config_files import FORMS

FILE = """
models:
  - name: house
    display_name: House model
    use: {use}
    model: gpt-4o-mini
    api_key: $HOUSE_KEY
    temperature: 0.2
    context_window: 10000
    supports_thinking: true
    when_thinking_enabled: {{extra_body: {{thinking: {{type: enabled}}}}}}
    when_thinking_disabled: {{temperature: 0.4}}
summarization:
  enabled: true
  model_name: house
  trigger: [{{type: messages, value: 6}}]
  keep: {{type: messages, value: 2}}
"""


class HouseModel(ScriptedChatModel):
    """A model that an entry of `models` names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(answers=lambda messages: SUMMARY)
        MADE.append(settings)


MADE: list[dict[str, Any]] = []


def config_of(folder: Path, use: str = f"{__name__}:HouseModel") -> Any:
    return load_config(written(folder, FILE.format(use=use)))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "hunter2")
    MADE.clear()


@pytest.mark.parametrize("use", [f"{__name__}:HouseModel", f"{__name__}.HouseModel"])
def test_a_model_that_the_file_defines_is_built_from_there(use, tmp_path):
    made = create_summarization_middleware(config_of(tmp_path, use), model=answering())
    assert MADE == [{"model": "gpt-4o-mini", "api_key": "hunter2", "temperature": 0.4}]
    assert made is not None
    said = [HumanMessage(f"look at module {n}, the one in src/module_{n}.py") for n in range(6)]
    update = made.before_model({"messages": said}, Runtime())
    assert SUMMARY.splitlines()[1] in str(update["messages"][1].text)


@pytest.mark.parametrize(
    ("use", "name", "why"),
    [
        ("no_such_package:Model", "house", "No module named 'no_such_package'"),
        (f"{__name__}:FORMS", "house", "not callable"),
        ("langchain_openai:ChatOpenAI", "hosue", "did you mean 'house'?"),
        ("langchain_openai:ChatOpenAI\n    base_url: $NO_SUCH_URL", "house", "NO_SUCH_URL is not"),
    ],
)
def test_a_model_that_cannot_be_had_is_the_runs_own_and_that_is_said(
    use, name, why, tmp_path, caplog
):
    text = FILE.format(use=use).replace("model_name: house", f"model_name: {name}")
    config = load_config(written(tmp_path, text))
    own = summarising()
    made = create_summarization_middleware(config, model=own, model_registry={})
    assert made is not None
    assert made._setup.engine.order[0] == made._setup.engine.order[-1]
    [said] = [one.getMessage() for one in caplog.records]
    assert re.search(r"line 1[45]: the model '", said)
    assert why in said
    assert "the agent's own model stands in" in said
    with pytest.raises(ConfigError, match=r"line 1[45]: the model"):
        create_summarization_middleware(config, model_registry={})


def test_no_message_shows_the_key_of_a_model(tmp_path, caplog):
    create_summarization_middleware(config_of(tmp_path, f"{__name__}:refusing"), model=answering())
    assert "cannot be had" in caplog.text
    assert "hunter2" not in caplog.text
    assert "\n" not in caplog.records[0].getMessage()


def refusing(**settings: Any) -> BaseChatModel:
    raise ValueError(f"no such key:\n\n{settings['api_key']}")


def test_a_file_of_an_earlier_version_loads(tmp_path):
    earlier = "preserve_recent_skill_count: 5\npreserve_recent_skill_tokens: 25000\n"
    more = "preserve_recent_skill_tokens_per_skill: 5000\n"
    config = loaded(
        tmp_path, "enabled: true\ntrigger: {type: tokens, value: 4000}\n" + earlier + more
    )
    assert config.enabled


# DeerFlow's public examples, key by key: they load here and do what that page says they do.
# What each says: the section, tokens or messages at which it fires, what stays.

TOKENS = "enabled: true\ntrigger: {type: tokens, value: 4000}\n"
EITHER = "trigger: [{type: tokens, value: 6000}, {type: messages, value: 75}]\n"
SHARES = "trigger: {type: fraction, value: 0.7}\nkeep: {type: fraction, value: 0.3}\n"
EXAMPLES: dict[str, tuple[str, int | None, int | None, tuple[str, float]]] = {
    "production": (
        f"enabled: true\nmodel_name: gpt-4o-mini\n{EITHER}keep: {{type: messages, value: 25}}\n"
        "trim_tokens_to_summarize: 5000",
        6_000,
        75,
        ("messages", 25),
    ),
    "several models": (
        f"enabled: true\nmodel_name: gpt-4o-mini\n{SHARES}",
        7_000,
        None,
        ("tokens", 3_000),
    ),
    "keep tokens": (TOKENS + "keep: {type: tokens, value: 3000}", 4_000, None, ("tokens", 3_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_fires_where_its_page_says_and_keeps_what_it_says(name, tmp_path):
    section, tokens, messages, (kind, amount) = EXAMPLES[name]
    seen: list[SummarizationEvent] = []
    writes = summarising(profile={"max_input_tokens": 128_000})
    agent = Agent(
        loaded(tmp_path, section),
        model=answering("It reads the settings. " * 10, profile={"max_input_tokens": 10_000}),
        model_registry=lambda name: writes,
        before_summarization=seen.append,
    )
    for _ in range(90):
        if not seen:
            agent.say("tell me what the next module does " * 8)
    left, stays = list(seen[0].messages_to_summarize), list(seen[0].preserved_messages)
    whole: list[BaseMessage] = [*left, *stays]  # type: ignore[list-item]
    size = count_tokens_approximately

    def due(history: list[BaseMessage], nearly: float = 1.0) -> bool:
        by_tokens = tokens is not None and size(history) >= tokens * nearly
        return by_tokens or (messages is not None and len(history) >= messages)

    # A model that reports no usage leaves the count to an estimate, there as here.
    assert due(whole, nearly=0.9)
    assert not due(whole[:-2])
    if kind == "messages":
        assert len(stays) == amount
    else:
        assert size(stays) <= amount < size(whole[-len(stays) - 2 :])  # type: ignore[arg-type]


# With DeerFlow's own classes: DEERFLOW names the folder `backend/packages/harness` of a checkout.


@pytest.fixture
def _deerflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make single modules of DeerFlow importable, without the servers that its packages import."""
    harness = Path(os.environ.get("DEERFLOW", "/nowhere"))
    if not (harness / "deerflow").is_dir():
        pytest.skip("DEERFLOW names no checkout")
    monkeypatch.setattr(typing, "override", typing_extensions.override, raising=False)
    for folder in [harness / "deerflow", *(harness / "deerflow").rglob("*/")]:
        package = ModuleType(".".join(folder.relative_to(harness).parts))
        package.__path__ = [str(folder)]
        monkeypatch.setitem(sys.modules, package.__name__, package)


@pytest.mark.usefixtures("_deerflow")
@pytest.mark.parametrize(("key", "value", "read"), [one for one in FORMS if one[0] != "recall"])
def test_a_value_is_what_deerflows_own_class_reads(key, value, read):
    from deerflow.config.summarization_config import SummarizationConfig as Theirs

    theirs = Theirs(**yaml.safe_load(f"trigger: {{type: tokens, value: 1e4}}\n{key}: {value}"))
    found = getattr(theirs, key)
    assert (found.to_tuple() if key == "keep" else found) == read
    assert theirs.trigger.to_tuple() == ("tokens", 10_000)


@pytest.mark.usefixtures("_deerflow")
def test_the_defaults_are_those_of_deerflow():
    from deerflow.config.summarization_config import SummarizationConfig as Theirs

    theirs, ours = Theirs().model_dump(), SummarizationConfig().model_dump()
    assert {key: ours[key] for key in theirs} == theirs


@pytest.mark.usefixtures("_deerflow")
@pytest.mark.parametrize("loop", [False, True])
def test_an_agent_of_deerflows_state_and_middlewares_is_summarised_by_us(loop, tmp_path):
    from deerflow.agents.middlewares import (
        clarification_middleware,
        durable_context_middleware,
        system_message_coalescing_middleware,
    )
    from deerflow.agents.thread_state import ThreadState

    seen: list[str] = []
    own = answering("Looked at.")
    summarization = create_summarization_middleware(
        config_of(tmp_path),
        model=own,
        tenant=lambda runtime: "ann",
        before_summarization=lambda event: seen.append(f"{event.tenant}, {event.thread_id}"),
    )
    assert summarization is not None
    agent = create_agent(
        own,
        state_schema=ThreadState,
        middleware=[
            durable_context_middleware.DurableContextMiddleware(
                skills_container_path="/mnt/skills", skill_file_read_tool_names=["read_file"]
            ),
            summarization,
            system_message_coalescing_middleware.SystemMessageCoalescingMiddleware(),
            ContextGuard(summarization),
            clarification_middleware.ClarificationMiddleware(),
        ],
        checkpointer=InMemorySaver(),
    )
    thread: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(7):
        said: Any = {"messages": [("user", f"Look at src/module_{turn}.py, whole. " * 9)]}
        if loop:
            asyncio.run(agent.ainvoke(said, thread))
        else:
            agent.invoke(said, thread)
    held = agent.get_state(thread).values["messages"]
    [summary] = [one for one in held if is_summary_message(one)]
    assert "Look at src/module_0.py, whole." in str(summary.text)
    assert len(held) < 10
    assert seen[0] == "ann, t"
    assert any(one.text == summary.text for one in own.calls[-1].messages)
