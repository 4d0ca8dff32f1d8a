"""The forms of history files, a table: how a record is known, and what messages are made of all.

Codex: lines with a `type` and a `payload`; `response_item` is an item of OpenAI's Responses, as the
model had it, `event_msg` what the person saw. A compaction leaves the items before it in the file.
Gemini CLI: one object, or lines of which a later one replaces a message; a message of the agent
holds its calls with their results. `opencode export`: messages, each with an `info` and `parts`; a
tool's part holds a call and its result. Of each, summaries that the program wrote are left out
where the messages before them are in the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conspectus.errors import MessageError
from conspectus.messages.blocks import is_item
from conspectus.messages.message import as_text
from conspectus.transcripts import claude_code

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a form makes of the records."""

    messages: list[Any]  # in the order of the conversation
    used: int  # records that are a part of it
    model: str = ""  # that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so


@dataclass(frozen=True, slots=True)
class Form:
    """A form of files."""

    name: str
    knows: Callable[[Row], bool]  # whether a record, or what is around all, is of this form
    read: Callable[[Sequence[Any], Row], Reading]  # of the records, and of what is around them
    made: Callable[[Any], Any] = lambda message: message  # the message, from what was read
    session: bool = False  # a program wrote it for itself: what cannot be understood is skipped
    added: tuple[str, ...] = ()  # keys that `read` adds to messages, and that no request may have


def _mapping(value: Any) -> Row:
    return value if isinstance(value, Mapping) else {}


# Chat messages

KINDS = frozenset("human user ai assistant system tool function chat remove".split())
"""LangChain's types of message; those of chunks are the names of their classes."""

ALIASES = {"user": "human", "assistant": "ai"}
ANTHROPIC_BLOCKS = frozenset(
    "tool_use tool_result server_tool_use thinking redacted_thinking document".split()
)


def _read_chat(records: Sequence[Any], around: Row) -> Reading:
    """Take messages as they are; a system prompt beside the list leads them."""
    lead = [{"role": "system", "content": around["system"]}] if "system" in around else []
    model = around.get("model")
    return Reading([*lead, *records], len(records), model if isinstance(model, str) else "")


def _is_anthropic(data: Row) -> bool:
    content = data.get("content")
    kinds = {_mapping(b).get("type") for b in (content if isinstance(content, list) else ())}
    return "system" in data or not ANTHROPIC_BLOCKS.isdisjoint(kinds)


def _read_langchain(records: Sequence[Any], around: Row) -> Reading:
    fields = [_mapping(_langchain_fields(record)[1]) for record in records]
    models = [_mapping(each.get("response_metadata")).get("model_name") for each in fields]
    return Reading([*records], len(records), str(next(filter(None, models[::-1]), "")))


def _langchain_fields(data: Row) -> tuple[str, Any]:
    """Return type and fields of a message in any of LangChain's three written forms."""
    kind, path = str(data.get("type")), data.get("id")
    if kind == "constructor" and "lc" in data and isinstance(path, list) and path:
        name = str(path[-1])
        chunk = name.endswith("Chunk")
        return name if chunk else name.removesuffix("Message").lower(), data.get("kwargs")
    known = kind in KINDS or kind.endswith("MessageChunk")
    if not known or ("role" in data and not kind.lower().startswith("chat")):
        return kind, None
    return kind, data.get("data", data if "content" in data else None)


def _is_langchain(data: Row) -> bool:
    return isinstance(_langchain_fields(data)[1], Mapping)


def _langchain_message(data: Row) -> Any:
    """Make a LangChain message; no class that a file names is imported."""
    from langchain_core.messages import messages_from_dict

    kind, fields = _langchain_fields(data)
    try:
        body = {key: fields[key] for key in fields if key != "type"}
        return messages_from_dict([{"type": ALIASES.get(kind, kind), "data": body}])[0]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        wrong = " ".join(str(error).split())[:200]
        raise MessageError(
            f"message 0 of the type {kind!r} is no message of LangChain's, as others are ({wrong})"
        ) from error


# Codex

LINES = "session_meta turn_context response_item event_msg compacted".split()


def _is_codex(data: Row) -> bool:
    return data.get("type") in LINES and isinstance(data.get("payload"), Mapping)


def _read_codex(records: Sequence[Any], around: Row) -> Reading:
    """Read the items; what the program says in the user's name is the developer's."""
    rows = [row for row in records if _is_codex(row)]
    events = [row["payload"] for row in rows if row["type"] == "event_msg"]
    typed = [str(e.get("message", "")) for e in events if e.get("type") == "user_message"]
    items: list[dict[str, Any]] = []
    model, window, used = "", None, 0
    for row in rows:
        kind, payload = row["type"], row["payload"]
        if kind == "turn_context":
            model = str(payload.get("model") or model)
        elif kind == "event_msg":
            window = _mapping(payload.get("info")).get("model_context_window") or window
            if payload.get("type") == "thread_rolled_back" and (turns := payload["num_turns"]):
                users = [at for at, item in enumerate(items) if item.get("role") == "user"]
                del items[users[-turns] if turns <= len(users) else 0 :]
        elif kind == "response_item" or not items:
            made = payload.get("replacement_history") if kind == "compacted" else [payload]
            whole = [item for item in made or () if item.get("type") == "message" or is_item(item)]
            items += [
                _codex_item(item, typed) | {"timestamp": row.get("timestamp")} for item in whole
            ]
            used += bool(whole)
    return Reading(items, used, model, window)


def _codex_item(item: Row, typed: Sequence[str]) -> dict[str, Any]:
    """Copy an item; a user's message that the user has not typed becomes the developer's."""
    role = item.get("role")
    if role == "user" and typed:
        text = "".join(str(block.get("text", "")) for block in item.get("content") or ())
        role = role if any(words in text if words else not text for words in typed) else "developer"
    return {**item, "role": role} if role else {**item}


# Gemini CLI and opencode, whose messages of the agent hold results


def _asked(text: str, pictures: Sequence[str], stamp: Row) -> list[dict[str, Any]]:
    """Make a user's message in OpenAI's form, of a text and addresses; nothing for neither."""
    content: Any = text
    if pictures:
        images = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        content = [*([{"type": "text", "text": text}] if text else []), *images]
    return [{"role": "user", "content": content, **stamp}] if content else []


def _worked(text: str, calls: Sequence[tuple[Any, Any, Any, str | None]], stamp: Row) -> list[Any]:
    """Make a turn of the agent in OpenAI's form; nothing without words and calls.

    Each call is an id, a name, arguments, and a result if there is one.
    """
    message: dict[str, Any] = {"role": "assistant", "content": text or None, **stamp}
    results = []
    for call, name, args, result in calls:
        function = {"name": str(name), "arguments": json.dumps(args or {})}
        made = {"id": str(call), "type": "function", "function": function}
        message.setdefault("tool_calls", []).append(made)
        if result is not None:
            results.append({"role": "tool", "tool_call_id": str(call), "content": result})
    return [message, *results] if text or calls else []


def _text(parts: Sequence[Row]) -> str:
    return "".join(str(part.get("text", "")) for part in parts)


def _is_gemini(data: Row) -> bool:
    return data.get("type") == "gemini" or {"sessionId", "projectHash"} <= data.keys()


def _read_gemini(records: Sequence[Any], around: Row) -> Reading:
    """Read the messages; notices and thoughts, and what was taken back, are left out."""
    turns: dict[Any, Row] = {}
    for row in records:
        if (back := row.get("$rewindTo")) in turns:
            names = list(turns)
            for name in names[names.index(back) :]:
                del turns[name]
        elif row.get("type") in ("user", "gemini"):
            turns[row.get("id", len(turns))] = row
        elif not turns:  # else a compressed history, whose originals are in the file
            listed = _mapping(row.get("$set")).get("messages") or ()
            turns = {turn.get("id"): turn for turn in listed}
    models = [str(turn["model"]) for turn in turns.values() if turn.get("model")]
    messages = [message for turn in turns.values() for message in _gemini_messages(turn)]
    return Reading(messages, len(turns), models[-1] if models else "")


def _gemini_messages(data: Row) -> list[dict[str, Any]]:
    stamp = {key: data[key] for key in ("id", "timestamp") if key in data}
    parts = _gemini_parts(data.get("content"))
    if data.get("type") == "user":
        inline = [part["inlineData"] for part in parts if "inlineData" in part]
        urls = [f"data:{data.get('mimeType')};base64,{data.get('data')}" for data in inline]
        # One with results of tools alone says nothing that the agent's message has not.
        return _asked(_text(parts), urls, stamp)
    calls = [
        (call.get("id"), call.get("name"), call.get("args"), _gemini_result(call.get("result")))
        for call in data.get("toolCalls") or ()
    ]
    return _worked(_text(parts), calls, stamp)


def _gemini_result(result: Any) -> str | None:
    texts = []
    for part in _gemini_parts(result):
        output = part.get("functionResponse", {}).get("response", part.get("text"))
        if isinstance(output, Mapping) and len(output) == 1:
            output = output.get("output", output.get("error", output))
        texts.append(as_text(output))
    return "\n".join(texts) if texts else None


def _gemini_parts(content: Any) -> list[Row]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    texts = ({"text": part} if isinstance(part, str) else part for part in listed)
    return [part for part in texts if isinstance(part, Mapping)]


def _is_opencode(data: Row) -> bool:
    return isinstance(data.get("info"), Mapping) and isinstance(data.get("parts"), list)


def _read_opencode(records: Sequence[Any], around: Row) -> Reading:
    """Read the messages, up to the one that the user went back to."""
    end = _mapping(_mapping(around.get("info")).get("revert")).get("messageID")
    messages: list[dict[str, Any]] = []
    model, used = "", 0
    for row in filter(_is_opencode, records):
        info = row["info"]
        if end is not None and info.get("id") == end:
            break
        model = str(info.get("modelID") or _mapping(info.get("model")).get("modelID") or model)
        summary = messages and info.get("summary") is True
        made = [] if summary else _opencode_messages(info, row["parts"])
        messages += made
        used += bool(made)
    return Reading(messages, used, model)


def _opencode_messages(info: Row, parts: Sequence[Row]) -> list[dict[str, Any]]:
    """Make a user's message, or one of the agent for each step with the results behind its calls.

    Texts that the program added are the developer's, behind the user's message.
    """
    made = _mapping(info.get("time")).get("created")
    date = datetime.fromtimestamp(made / 1000, UTC) if isinstance(made, int) else None
    when = {"timestamp": date and date.isoformat(timespec="seconds")}
    stamp = {"id": info.get("id"), **when}
    if info.get("role") == "user":
        texts = [part for part in parts if part["type"] == "text" and not part.get("ignored")]
        added = _text([part for part in texts if part.get("synthetic")])
        pictures = [part for part in parts if str(part.get("mime", "")).startswith("image/")]
        typed = _text([part for part in texts if not part.get("synthetic")])
        said = _asked(typed, [str(part["url"]) for part in pictures], stamp)
        return [*said, {"role": "developer", "content": added, **when}] if added.strip() else said
    messages: list[dict[str, Any]] = []
    text, calls = "", list[Any]()
    for part in [*parts, {"type": "step-start"}]:
        if part["type"] == "step-start":
            messages += _worked(text, calls, when if messages else stamp)
            text, calls = "", []
        elif part["type"] == "text":
            text += str(part["text"])
        elif part["type"] == "tool":
            state = part["state"]
            result = state.get("output", state.get("error"))
            calls.append((part["callID"], part["tool"], state.get("input"), result))
    return messages


def _is_claude(data: Row) -> bool:
    typed = "type" in data and not {"sessionId", "leafUuid"}.isdisjoint(data)
    return typed or claude_code.is_message(data)


def _read_claude(records: Sequence[Any], around: Row) -> Reading:
    return Reading(*claude_code.read_session(records))


STAMP = ("id", "timestamp")

FORMS = (
    Form("claude-code", _is_claude, _read_claude, session=True, added=STAMP),
    Form("codex", _is_codex, _read_codex, session=True, added=STAMP[1:]),
    Form("gemini-cli", _is_gemini, _read_gemini, session=True, added=STAMP),
    Form("opencode", _is_opencode, _read_opencode, session=True, added=STAMP),
    Form("langchain", _is_langchain, _read_langchain, _langchain_message),
    Form("anthropic", _is_anthropic, _read_chat),
    Form("openai", lambda data: True, _read_chat),
)
"""All forms; the first one that knows a record is that of the file."""
