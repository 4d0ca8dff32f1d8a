"""Configuration files for tests, agents made of them, and a small checker of JSON Schemas."""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus.config import SummarizationConfig, create_middleware, load_config
from conspectus_lab.testing.scripted_models import ScriptedChatModel

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
        found: list[BaseMessage] = self.graph.get_state(self.thread).values["messages"]
        return found


def fits(value: Any, schema: Any, root: Any) -> bool:
    """Whether a value is what a JSON Schema says: as much of the language as ours uses."""
    named = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    if named and not fits(value, named, root):
        return False
    if "anyOf" in schema and not any(fits(value, one, root) for one in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(value, one, root) for one in schema["oneOf"]) != 1:
        return False
    if not all(fits(value, one, root) for one in schema.get("allOf", ())):
        return False
    if "if" in schema and fits(value, schema["if"], root) and not fits(value, schema["then"], root):
        return False
    if "not" in schema and fits(value, schema["not"], root):
        return False
    if "const" in schema and value is not schema["const"]:
        return False
    if "enum" in schema and not any(value is one or value == one for one in schema["enum"]):
        return False
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "integer": number and isinstance(value, int),
        "number": number,
    }
    if "type" in schema and not kinds[schema["type"]]:
        return False
    if number and value < schema.get("minimum", value):
        return False
    if number and value > schema.get("maximum", value):
        return False
    if number and value <= schema.get("exclusiveMinimum", value - 1):
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {}), root) for one in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if len(value) < schema.get("minProperties", 0):
            return False
        if any(key not in value for key in schema.get("required", ())):
            return False
        for key, one in value.items():
            other = schema.get("additionalProperties", {})
            if key not in known and other is False:
                return False
            if not fits(one, known.get(key, other if isinstance(other, dict) else {}), root):
                return False
    return True
