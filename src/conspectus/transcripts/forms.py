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
from datetime import UTC, datetime
from typing import Any, NamedTuple

from conspectus.errors import MessageError
from conspectus.messages.blocks import at_path, blocks_of, is_item
from conspectus.messages.message import as_text
from conspectus.transcripts import claude_code

Row = Mapping[str, Any]


class Reading(NamedTuple):
    """What a form makes of the records."""

    messages: list[Any]  # in the order of the conversation
    used: int  # records that are a part of it
    model: str = ""  # that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so


class Form(NamedTuple):
    """A form of files."""

    name: str
    knows: Callable[[Row], bool]  # whether a record, or what is around all, is of this form
    read: Callable[[Sequence[Any], Row], Reading]  # of the records, and of what is around them
    made: Callable[[Any], Any] = lambda message: message  # the message, from what was read
    session: bool = False  # a program wrote it for itself: what cannot be understood is skipped
    added: tuple[str, ...] = ()  # keys that `read` adds to messages, and that no request may have


# Chat messages

KINDS = frozenset("human user ai assistant system tool function chat remove".split())
"""LangChain's types of message; those of chunks are the names of their classes."""

ALIASES = {"user": "human", "assistant": "ai"}
ANTHROPIC = "tool_use tool_result server_tool_use thinking redacted_thinking document".split()
"""Blocks that only Anthropic's messages hold."""


def _read_chat(records: Sequence[Any], around: Row) -> Reading:
    """Take messages as they are; a system prompt beside the list leads them."""
    lead = [{"role": "system", "content": around["system"]}] if "system" in around else []
    model = around.get("model")
    return Reading([*lead, *records], len(records), model if isinstance(model, str) else "")


def _is_anthropic(data: Row) -> bool:
    return "system" in data or any(block.get("type") in ANTHROPIC for block in blocks_of(data))


def _read_langchain(records: Sequence[Any], around: Row) -> Reading:
    path = "response_metadata.model_name"
    models = [at_path(_langchain_fields(record)[1], path) for record in records]
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
            f"message 0 of the type {kind!r} is no message of LangChain's, as others are; give all "
            f"in one form ({wrong})"
        ) from error


# Codex

LINES = "session_meta turn_context response_item event_msg compacted".split()


def _is_codex(data: Row) -> bool:
    return data.get("type") in LINES and isinstance(data.get("payload"), Mapping)


def _read_codex(records: Sequence[Any], around: Row) -> Reading:
    """Read the items; what the program says in the user's name is the developer's."""
    rows = [row for row in records if _is_codex(row)]
    events = [row["payload"] for row in rows if row["type"] == "event_msg"]
    typed = {str(e.get("message", "")).strip() for e in events if e.get("type") == "user_message"}
    items: list[dict[str, Any]] = []
    model, window, used = "", None, 0
    for row in rows:
        kind, payload = row["type"], row["payload"]
        if kind == "turn_context":
            model = str(payload.get("model") or model)
        elif kind == "event_msg":
            window = at_path(payload, "info.model_context_window") or window
            if payload.get("type") == "thread_rolled_back" and (turns := payload["num_turns"]):
                users = [at for at, item in enumerate(items) if item.get("role") == "user"]
                del items[users[-turns] if turns <= len(users) else 0 :]
        elif kind == "response_item" or not items:
            made = payload.get("replacement_history") if kind == "compacted" else [payload]
            whole = [item for item in made or () if item.get("type") == "message" or is_item(item)]
            for item in whole:
                role = {"role": "developer"} if typed and not _typed(item, typed) else {}
                items.append({**item, **role, "timestamp": row.get("timestamp")})
            used += bool(whole)
    return Reading(items, used, model, window)


def _typed(item: Row, typed: set[str]) -> bool:
    """Tell whether an item is no message of the user's, or one that the user has typed."""
    content = item.get("content") or ""
    texts = [content] if isinstance(content, str) else [_text([block]) for block in content]
    said = {"".join(texts).strip(), *(text.strip() for text in texts if text)}
    ends = any(text.endswith(f"\n{words}") for text in said for words in typed if words)
    return item.get("role") != "user" or ends or not said.isdisjoint(typed)


# Gemini CLI and opencode, whose messages of the agent hold results

Call = tuple[Any, Any, Any, str | None]  # id, name, arguments, and the result if there is one


def _turn(
    role: str, text: str, stamp: Row, pictures: Sequence[str] = (), calls: Sequence[Call] = ()
) -> list[dict[str, Any]]:
    """Make the messages of a turn in OpenAI's form; none without words, pictures and calls."""
    content: Any = text
    if pictures:
        images = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        content = [*([{"type": "text", "text": text}] if text else []), *images]
    message: dict[str, Any] = {"role": role, "content": content or None, **stamp}
    results = []
    for call, name, args, result in calls:
        function = {"name": str(name), "arguments": json.dumps(args or {})}
        made = {"id": str(call), "type": "function", "function": function}
        message.setdefault("tool_calls", []).append(made)
        if result is not None:
            results.append({"role": "tool", "tool_call_id": str(call), "content": result})
    return [message, *results] if content or calls else []


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
            turns = {turn.get("id"): turn for turn in at_path(row, "$set.messages") or ()}
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
        return _turn("user", _text(parts), stamp, urls)
    calls = [
        (call.get("id"), call.get("name"), call.get("args"), _gemini_result(call.get("result")))
        for call in data.get("toolCalls") or ()
    ]
    return _turn("assistant", _text(parts), stamp, calls=calls)


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
    end = at_path(around, "info.revert.messageID")
    messages: list[dict[str, Any]] = []
    model, used = "", 0
    for row in filter(_is_opencode, records):
        info = row["info"]
        if end is not None and info.get("id") == end:
            break
        model = str(info.get("modelID") or at_path(info, "model.modelID") or model)
        summary = messages and info.get("summary") is True
        made = [] if summary else _opencode_messages(info, row["parts"])
        messages += made
        used += bool(made)
    return Reading(messages, used, model)


def _opencode_messages(info: Row, parts: Sequence[Row]) -> list[dict[str, Any]]:
    """Make a user's message, or one of the agent for each step with the results behind its calls.

    Texts that the program added are the developer's, behind the user's message.
    """
    made = at_path(info, "time.created")
    date = datetime.fromtimestamp(made / 1000, UTC) if isinstance(made, int) else None
    when = {"timestamp": date and date.isoformat(timespec="seconds")}
    stamp: Row = {"id": info.get("id"), **when}
    if info.get("role") == "user":
        texts = [part for part in parts if part["type"] == "text" and not part.get("ignored")]
        typed = _text([part for part in texts if not part.get("synthetic")])
        added = _text([part for part in texts if part.get("synthetic")])
        pictures = [part for part in parts if str(part.get("mime", "")).startswith("image/")]
        said = _turn("user", typed, stamp, [str(part["url"]) for part in pictures])
        return [*said, *_turn("developer", added if added.strip() else "", when)]
    messages: list[dict[str, Any]] = []
    text, calls = "", list[Call]()
    for part in [*parts, {"type": "step-start"}]:
        if part["type"] == "step-start":
            messages += _turn("assistant", text, when if messages else stamp, calls=calls)
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
