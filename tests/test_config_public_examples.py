"""DeerFlow's public examples, key by key: they load here and do what that page says they do."""

from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from config_support import Agent, answering, loaded, summarising
from conspectus.config import SummarizationConfig
from conspectus.langchain import SummarizationEvent

WINDOW = 10_000
TALK = "tell me what the next module does " * 8

MINIMAL = """
enabled: true
trigger: {type: tokens, value: 4000}
keep: {type: messages, value: 20}
"""
PRODUCTION = """
enabled: true
model_name: gpt-4o-mini
trigger: [{type: tokens, value: 6000}, {type: messages, value: 75}]
keep: {type: messages, value: 25}
trim_tokens_to_summarize: 5000
"""
SEVERAL_MODELS = """
enabled: true
model_name: gpt-4o-mini
trigger: {type: fraction, value: 0.7}
keep: {type: fraction, value: 0.3}
trim_tokens_to_summarize: 4000
"""
CONSERVATIVE = """
enabled: true
model_name: gpt-4
trigger: {type: tokens, value: 8000}
keep: {type: messages, value: 40}
trim_tokens_to_summarize: null
"""


def with_all(*lines: str) -> str:
    """A section in which one key is shown alone there."""
    said = "\n".join(lines)
    trigger = "" if "trigger:" in said else "trigger: {type: tokens, value: 4000}"
    return f"enabled: true\n{trigger}\n{said}"


# What each says: the section, tokens or messages at which it fires, what stays.
EXAMPLES: dict[str, tuple[str, int | None, int | None, tuple[str, float]]] = {
    "minimal": (MINIMAL, 4_000, None, ("messages", 20)),
    "production": (PRODUCTION, 6_000, 75, ("messages", 25)),
    "several models": (SEVERAL_MODELS, 7_000, None, ("tokens", 3_000)),
    "conservative": (CONSERVATIVE, 8_000, None, ("messages", 40)),
    "tokens": (with_all("trigger: {type: tokens, value: 4000}"), 4_000, None, ("messages", 20)),
    "messages": (with_all("trigger: {type: messages, value: 50}"), None, 50, ("messages", 20)),
    "fraction": (with_all("trigger: {type: fraction, value: 0.8}"), 8_000, None, ("messages", 20)),
    "any of two": (
        with_all("trigger:", "  - {type: tokens, value: 4000}", "  - {type: messages, value: 50}"),
        4_000,
        50,
        ("messages", 20),
    ),
    "keep 20": (with_all("keep: {type: messages, value: 20}"), 4_000, None, ("messages", 20)),
    "keep 25": (with_all("keep: {type: messages, value: 25}"), 4_000, None, ("messages", 25)),
    "keep tokens": (with_all("keep: {type: tokens, value: 3000}"), 4_000, None, ("tokens", 3_000)),
    "keep a share": (
        with_all("keep: {type: fraction, value: 0.3}"),
        4_000,
        None,
        ("tokens", 3_000),
    ),
    "reading": (with_all("trim_tokens_to_summarize: 4000"), 4_000, None, ("messages", 20)),
}
PROFILE = {"max_input_tokens": WINDOW}


def talked(config: SummarizationConfig, text: str = TALK) -> tuple[SummarizationEvent, Agent]:
    """A conversation until the first summary: what was about to leave then, and the agent."""
    seen: list[SummarizationEvent] = []
    writes = summarising(profile={"max_input_tokens": 128_000})
    agent = Agent(
        config,
        model=answering("It reads the settings. " * 10, profile=PROFILE),
        model_registry=lambda name: writes,
        before_summarization=seen.append,
    )
    for _ in range(90):
        agent.say(text)
        if seen:
            return seen[0], agent
    raise AssertionError("it never fired")


def size(messages: Any) -> int:
    return count_tokens_approximately(messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_fires_where_its_page_says_and_keeps_what_it_says(name, tmp_path):
    section, tokens, messages, (kind, amount) = EXAMPLES[name]
    event, _ = talked(loaded(tmp_path, section))
    left, stays = list(event.messages_to_summarize), list(event.preserved_messages)
    whole: list[BaseMessage] = [*left, *stays]

    def due(history: list[BaseMessage], nearly: float = 1.0) -> bool:
        by_tokens = tokens is not None and size(history) >= tokens * nearly
        return by_tokens or (messages is not None and len(history) >= messages)

    # A model that reports no usage leaves the count to an estimate, there as here.
    assert due(whole, nearly=0.9)
    assert not due(whole[:-2])
    if kind == "messages":
        assert len(stays) == amount
    else:
        assert size(stays) <= amount < size([left[-1], left[-2], *stays])


@pytest.mark.parametrize(
    ("section", "model", "trim"),
    [
        (MINIMAL, None, 4_000),
        (PRODUCTION, "gpt-4o-mini", 5_000),
        (SEVERAL_MODELS, "gpt-4o-mini", 4_000),
        (CONSERVATIVE, "gpt-4", None),
    ],
)
def test_an_example_sets_what_it_says_and_leaves_the_rest_at_its_defaults(
    section, model, trim, tmp_path
):
    config = loaded(tmp_path, section)
    assert (config.enabled, config.model_name) == (True, model)
    assert config.trim_tokens_to_summarize == trim
    assert config.summary_prompt is None
    assert config.skill_file_read_tool_names == ["read_file", "read", "view", "cat"]
