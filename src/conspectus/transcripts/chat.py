"""Lists of chat messages: OpenAI's, Anthropic's and LangChain's forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conspectus.errors import MessageError
from conspectus.transcripts.records import Form, Parsed, Reading, Record

KINDS = frozenset("human user ai assistant system tool function chat remove".split())
"""LangChain's types of message; those of chunks are the names of their classes."""

ALIASES = {"user": "human", "assistant": "ai"}
ANTHROPIC_BLOCKS = frozenset(
    "tool_use tool_result server_tool_use thinking redacted_thinking document".split()
)


def _read(parsed: Parsed) -> Reading:
    """Take dicts as they are; a system prompt beside the list leads them."""
    records, beside = parsed.records, parsed.wrapper or {}
    if "system" in beside:
        records = [Record({"role": "system", "content": beside["system"]}, None), *records]
    model = beside.get("model")
    return Reading(records, model=model if isinstance(model, str) else "")


def _is_anthropic(data: Mapping[str, Any]) -> bool:
    content = data.get("content")
    blocks = content if isinstance(content, list) else ()
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return "system" in data or not ANTHROPIC_BLOCKS.isdisjoint(kinds)


def _read_langchain(parsed: Parsed) -> Reading:
    """Make LangChain messages out of any of LangChain's three written forms.

    No class that a file names is imported: its name only chooses a type of message.
    """
    records = [replace(part, data=_message(part)) for part in parsed.records]
    models = [getattr(part.data, "response_metadata", {}).get("model_name") for part in records]
    return Reading(records, model=next(filter(None, reversed(models)), ""))


def _message(part: Record) -> Any:
    kind, fields = _fields(part.data)
    if fields is None and "role" in part.data:
        which = "is in OpenAI's or Anthropic's form among messages in LangChain's"
        raise MessageError(f"{part.where} {which}; write all of them in one form")
    if fields is None or not (kind in KINDS or kind.endswith("MessageChunk")):
        what = "is an envelope of" if fields is not None else "has the unknown type"
        known = "human, ai, system, tool, function and chat"
        raise MessageError(f"{part.where} {what} {kind!r}; known are {known}")
    from langchain_core.messages import messages_from_dict

    try:
        return messages_from_dict([{"type": ALIASES.get(kind, kind), "data": fields}])[0]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        wrong = " ".join(str(error).split())[:200]
        said = f"{part.where} is no {kind} message ({wrong}); check its fields"
        raise MessageError(said) from error


def _fields(data: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return type and fields of a message in LangChain's form; no fields for others."""
    kind, path, fields = str(data.get("type")), data.get("id"), None
    if kind == "constructor" and "lc" in data and isinstance(path, list) and path:
        kind, fields = str(path[-1]), data.get("kwargs") or {}
        if kind.removesuffix("Message").lower() in KINDS:
            kind = kind.removesuffix("Message").lower()
    elif kind in KINDS or kind.endswith("MessageChunk"):
        if isinstance(data.get("data"), Mapping) and "role" not in data:
            fields = data["data"]
        elif "content" in data and ("role" not in data or kind.startswith(("chat", "Chat"))):
            fields = data
    if not isinstance(fields, Mapping):
        return kind, None
    return kind, {key: value for key, value in fields.items() if key != "type"}


LANGCHAIN = Form("langchain", lambda data: _fields(data)[1] is not None, _read_langchain)
ANTHROPIC = Form("anthropic", _is_anthropic, _read)
OPENAI = Form("openai", lambda data: True, _read)


def called(
    text: str,
    calls: Sequence[tuple[str, str, Any]],
    results: Mapping[str, str],
    stamp: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Make a turn of the agent in OpenAI's form: its words, calls (id, name, arguments), results.

    Nothing for neither words nor calls.
    """
    message: dict[str, Any] = {"role": "assistant", "content": text or None, **stamp}
    if calls:
        message["tool_calls"] = [
            {
                "id": call,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for call, name, args in calls
        ]
    made = [{"role": "tool", "tool_call_id": c, "content": said} for c, said in results.items()]
    return [message, *made] if text or calls else []
