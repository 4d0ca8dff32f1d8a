"""Configuration files for tests, agents made of them, and JSON Schemas."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus.config import SummarizationConfig, create_middleware, json_schema, load_config
from scripted_models import ScriptedChatModel

SUMMARY = "## Goal\n- The user has the modules looked at, one after the other."


def written(folder: Path, text: str, name: str = "config.yaml") -> Path:
    """A file with this in it."""
    file = folder / name
    file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def loaded(folder: Path, section: str) -> SummarizationConfig:
    """The configuration whose section holds these lines."""
    body = textwrap.indent(textwrap.dedent(section).strip("\n"), "  ")
    return load_config(written(folder, f"summarization:\n{body}\n"))


def answering(text: str = "Fine.", **more: Any) -> ScriptedChatModel:
    """A model that says the same each time."""
    return ScriptedChatModel(answers=lambda messages: text, **more)


def summarising(**more: Any) -> ScriptedChatModel:
    """A model that writes a sound summary each time."""
    return answering(SUMMARY, **more)


class Agent:
    """An agent out of a configuration: what it sends is there to be looked at."""

    def __init__(self, config: SummarizationConfig, *between: Any, **settings: Any) -> None:
        self.model = settings.setdefault("model", answering())
        self.stack = create_middleware(config, *between, **settings)
        self.saver, self.store = InMemorySaver(), InMemoryStore()
        self.graph = create_agent(
            self.model, middleware=self.stack, checkpointer=self.saver, store=self.store
        )
        self.thread = {"configurable": {"thread_id": "t"}}

    @property
    def middleware(self) -> Any:
        return self.stack[0]

    def say(self, text: str) -> list[BaseMessage]:
        """One turn; what the model was sent in it."""
        self.graph.invoke({"messages": [("user", text)]}, self.thread)
        return list(self.sent[-1])

    async def asay(self, text: str) -> list[BaseMessage]:
        await self.graph.ainvoke({"messages": [("user", text)]}, self.thread)
        return list(self.sent[-1])

    @property
    def sent(self) -> Sequence[Sequence[BaseMessage]]:
        """Every request."""
        return [call.messages for call in self.model.calls]

    @property
    def messages(self) -> list[BaseMessage]:
        """What the state holds."""
        return self.graph.get_state(self.thread).values["messages"]


def fits(value: Any, schema: Any = None) -> bool:
    """Tell whether a value is valid by a JSON Schema, by default by that of our section."""
    return Draft202012Validator(schema or json_schema()).is_valid(value)
