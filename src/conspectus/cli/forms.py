"""Recognise the form of a history by its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from conspectus.cli.claude_code import is_claude_code
from conspectus.cli.placed import Placed
from conspectus.errors import MessageError
from conspectus.messages import Source

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Name = Literal["openai", "anthropic", "langchain", "claude-code"]

ENVELOPES = {
    f"{name}Message{chunk}": f"{name}MessageChunk" if chunk else kind
    for name, kind in {
        "Human": "human",
        "AI": "ai",
        "System": "system",
        "Tool": "tool",
        "Function": "function",
        "Chat": "chat",
    }.items()
    for chunk in ("", "Chunk")
} | {"RemoveMessage": "remove"}
"""Class names in LangChain's constructor envelopes, with their types of message."""

ALIASES = {"user": "human", "assistant": "ai"}
KINDS = frozenset(ENVELOPES.values()) | ALIASES.keys()

ANTHROPIC_BLOCKS = frozenset(
    "tool_use tool_result server_tool_use thinking redacted_thinking document".split()
)


@dataclass(frozen=True, slots=True)
class Format:
    """The form of a history, so that it can be written that way again.

    With `lines`, one message a line; with `values`, the list is under `values`, as in the state of
    a LangGraph thread; with `system`, the wrapper's `system` became the first message; with
    `compact`, all is on one line.
    """

    name: Name
    lines: bool = False
    wrapper: Mapping[str, Any] | None = None
    values: bool = False
    system: bool = False
    compact: bool = False


def name_of(placed: Sequence[Placed], wrapper: Mapping[str, Any] | None) -> Name:
    """Name the form of messages; plain `{"role", "content"}` counts as OpenAI's."""
    if any(is_claude_code(part.data) for part in placed):
        return "claude-code"
    if any(_langchain(part.data) for part in placed):
        return "langchain"
    if wrapper is not None and "system" in wrapper:
        return "anthropic"
    for part in placed:
        content = part.data.get("content") if isinstance(part.data, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping) and block.get("type") in ANTHROPIC_BLOCKS:
                return "anthropic"
    return "openai"


def langchain_messages(placed: Sequence[Placed]) -> list[Source]:
    """Make LangChain messages out of any of LangChain's three written forms.

    Only LangChain's message classes are made: a class named in the file is looked up in `ENVELOPES`
    and never imported.
    """
    return [_message(part) for part in placed]


def _message(part: Placed) -> BaseMessage:
    found = _langchain(part.data)
    if found is None:
        if isinstance(part.data, Mapping) and "role" in part.data:
            raise MessageError(
                f"{part.where} is in OpenAI's or Anthropic's form among messages in "
                "LangChain's; write all of them in one form"
            )
        kind = part.data.get("type") if isinstance(part.data, Mapping) else None
        raise MessageError(
            f"{part.where} has the unknown type {kind!r}; known are human, ai, system, "
            "tool, function and chat"
        )
    kind, data = found
    if kind not in KINDS:
        raise MessageError(
            f"{part.where} is an envelope of {kind!r}, which is no message of LangChain; "
            f"known are {', '.join(name for name in ENVELOPES if not name.endswith('Chunk'))}"
        )
    from langchain_core.messages import messages_from_dict
    from pydantic import ValidationError

    try:
        return messages_from_dict([{"type": ALIASES.get(kind, kind), "data": data}])[0]
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"]) or "content"
        raise MessageError(f"{part.where} is no {kind} message: {field}: {first['msg']}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MessageError(
            f"{part.where} is no {kind} message ({error}); check its fields"
        ) from error


def _langchain(data: Any) -> tuple[str, dict[str, Any]] | None:
    """Return type and fields of a message in LangChain's form; None for others."""
    if not isinstance(data, Mapping):
        return None
    kind, path = data.get("type"), data.get("id")
    if kind == "constructor" and "lc" in data and isinstance(path, list) and path:
        fields = data.get("kwargs")
        kind = ENVELOPES.get(str(path[-1]), str(path[-1]))
    elif not isinstance(kind, str) or kind not in KINDS:
        return None
    elif isinstance(data.get("data"), Mapping) and "role" not in data:
        fields = data["data"]
    elif "content" in data and ("role" not in data or kind.startswith(("chat", "Chat"))):
        fields = data
    else:
        return None
    fields = fields if isinstance(fields, Mapping) else {}
    return kind, {key: value for key, value in fields.items() if key != "type"}


def nested_deeper_than(data: Any, limit: int) -> bool:
    """Tell whether lists and objects are nested more than `limit` levels."""
    level = [data]
    for _ in range(limit + 1):
        parts = (value.values() if isinstance(value, dict) else value for value in level)
        level = [one for part in parts for one in part if isinstance(one, (dict, list))]
        if not level:
            return False
    return True
