"""Read lists of chat messages: OpenAI's and Anthropic's dicts, and LangChain's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.errors import MessageError
from conspectus.messages.blocks import at_path, blocks_of
from conspectus.transcripts.reading import Reading, Row

LANGCHAIN_TYPES = frozenset("human user ai assistant system tool function chat remove".split())
"""LangChain's types of message. The types of chunks are the names of their classes."""

LANGCHAIN_ALIASES = {"user": "human", "assistant": "ai"}

ANTHROPIC_BLOCKS = frozenset(
    "tool_use tool_result server_tool_use thinking redacted_thinking document".split()
)
"""Kinds of blocks that only Anthropic's messages have."""


def read_dicts(records: Sequence[Any], around: Row) -> Reading:
    """Take messages as they are. A system prompt outside of the list becomes the first one."""
    messages = [*records]
    if "system" in around:
        messages.insert(0, {"role": "system", "content": around["system"]})
    model = around.get("model")
    return Reading(messages, len(records), model if isinstance(model, str) else "")


def is_anthropic(row: Row) -> bool:
    """Tell whether a record, or the object around the records, is in Anthropic's form."""
    return "system" in row or any(block.get("type") in ANTHROPIC_BLOCKS for block in blocks_of(row))


def is_langchain(row: Row) -> bool:
    """Tell whether a record is a message in one of LangChain's written forms."""
    _, fields = _type_and_fields(row)
    return isinstance(fields, Mapping)


def read_langchain(records: Sequence[Any], around: Row) -> Reading:
    """Take LangChain's messages; `langchain_message` makes objects of them."""
    model = ""
    for record in records:
        _, fields = _type_and_fields(record)
        model = str(at_path(fields, "response_metadata.model_name") or model)
    return Reading([*records], len(records), model)


def langchain_message(row: Row) -> Any:
    """Make a LangChain message. No class that a file names is imported.

    Raises:
        MessageError: it is no message of LangChain's.
    """
    from langchain_core.messages import messages_from_dict

    message_type, fields = _type_and_fields(row)
    try:
        data = {key: fields[key] for key in fields if key != "type"}
        plain = {"type": LANGCHAIN_ALIASES.get(message_type, message_type), "data": data}
        return messages_from_dict([plain])[0]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MessageError(
            f"message 0 of the type {message_type!r} is no message of LangChain's, as others are; "
            f"give all in one form ({reason})"
        ) from error


def _type_and_fields(row: Row) -> tuple[str, Any]:
    """Return type and fields of a message in any of LangChain's three written forms.

    The fields are None if it has none of these forms.
    """
    message_type = str(row.get("type"))
    class_path = row.get("id")
    if (
        message_type == "constructor"
        and "lc" in row
        and isinstance(class_path, list)
        and class_path
    ):
        class_name = str(class_path[-1])
        if not class_name.endswith("Chunk"):
            class_name = class_name.removesuffix("Message").lower()
        return class_name, row.get("kwargs")
    is_known = message_type in LANGCHAIN_TYPES or message_type.endswith("MessageChunk")
    is_chat = message_type.lower().startswith("chat")  # the only type that also has a role
    if not is_known or ("role" in row and not is_chat):
        return message_type, None
    if "data" in row:
        return message_type, row["data"]
    return message_type, row if "content" in row else None
