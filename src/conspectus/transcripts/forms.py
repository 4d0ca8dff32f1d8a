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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conspectus.errors import MessageError
from conspectus.messages.blocks import is_item
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
    models = [_mapping(_fields(r)[1]).get("response_metadata") for r in reversed(records)]
    names = [around.get("model"), *(_mapping(data).get("model_name") for data in models)]
    name = next((name for name in names if isinstance(name, str)), "")
    return Reading([*lead, *records], len(records), name)


def _is_anthropic(data: Row) -> bool:
    content = data.get("content")
    kinds = {_mapping(b).get("type") for b in (content if isinstance(content, list) else ())}
    return "system" in data or not ANTHROPIC_BLOCKS.isdisjoint(kinds)


def _is_langchain(data: Row) -> bool:
    return _fields(data)[1] is not None


def _langchain_message(data: Row) -> Any:
    """Make a LangChain message out of any of its three written forms.

    No class that a file names is imported: its name only chooses a type of message.
    """
    from langchain_core.messages import messages_from_dict

    kind, fields = _fields(data)
    if fields is None or not (kind in KINDS or kind.endswith("MessageChunk")):
        what = "another form than the others" if "role" in data else f"the unknown type {kind!r}"
        known = "human, ai, system, tool, function and chat"
        raise MessageError(f"message 0 has {what}; known among LangChain's messages are {known}")
    try:
        return messages_from_dict([{"type": ALIASES.get(kind, kind), "data": fields}])[0]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        wrong = " ".join(str(error).split())[:200]
        raise MessageError(f"message 0 is no {kind} message ({wrong}); check its fields") from error


def _fields(data: Row) -> tuple[str, dict[str, Any] | None]:
    """Return type and fields of a message in LangChain's form; no fields for others."""
    kind, path = str(data.get("type")), data.get("id")
    fields: Any = None
    if kind == "constructor" and "lc" in data and isinstance(path, list) and path:
        kind, fields = str(path[-1]), data.get("kwargs")
        kind = kind if kind.endswith("Chunk") else kind.removesuffix("Message").lower()
    elif (kind in KINDS or kind.endswith("MessageChunk")) and (
        "role" not in data or kind.lower().startswith("chat")
    ):
        fields = data.get("data", data if "content" in data else None)
    known = isinstance(fields, Mapping)
    return kind, {key: fields[key] for key in fields if key != "type"} if known else None


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
            size = _mapping(payload.get("info") or payload).get("model_context_window")
            window = size if isinstance(size, int) and size > 0 else window
            turns = payload.get("num_turns")
            if payload.get("type") == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
                users = [at for at, item in enumerate(items) if item.get("role") == "user"]
                del items[users[-turns] if turns <= len(users) else 0 :]
        elif kind == "response_item" or not items:
            rest = payload.get("replacement_history") if kind == "compacted" else [payload]
            made = [item for data in rest or () if (item := _codex_item(data, row, typed))]
            items += made
            used += bool(made)
    return Reading(items, used, model, window)


def _codex_item(payload: Any, row: Row, typed: Sequence[str]) -> dict[str, Any] | None:
    """Return an item with the time of its line; None for other payloads."""
    payload = _mapping(payload)
    if payload.get("type") != "message" and not is_item(payload):
        return None
    item = {**payload, "timestamp": row.get("timestamp")}
    if item.get("role") == "user" and typed:
        text = "".join(str(block.get("text", "")) for block in item.get("content") or ())
        if not any(words == text or (words and words in text) for words in typed):
            item["role"] = "developer"
    if isinstance(output := item.get("output"), Mapping):  # in older files
        item["output"] = str(output.get("content", ""))
    return item


# Gemini CLI and opencode, whose messages of the agent hold results


def _turn(
    text: str, calls: Sequence[tuple[str, str, Any]], results: Mapping[str, str], stamp: Row
) -> list[dict[str, Any]]:
    """Make a turn of the agent in OpenAI's form: its words, calls (id, name, arguments), results.

    Nothing for neither words nor calls.
    """
    message: dict[str, Any] = {"role": "assistant", "content": text or None, **stamp}
    functions = {call: {"name": name, "arguments": json.dumps(args)} for call, name, args in calls}
    if functions:
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": made} for call, made in functions.items()
        ]
    made = [{"role": "tool", "tool_call_id": c, "content": output} for c, output in results.items()]
    return [message, *made] if text or calls else []


def _is_gemini(data: Row) -> bool:
    return data.get("type") == "gemini" or {"sessionId", "projectHash"} <= data.keys()


def _read_gemini(records: Sequence[Any], around: Row) -> Reading:
    """Read the messages; notices and thoughts, and what was taken back, are left out."""
    turns: dict[Any, Row] = {}
    for row in records:
        back, update = row.get("$rewindTo"), _mapping(row.get("$set"))
        if back in turns:
            names = list(turns)
            for name in names[names.index(back) :]:
                del turns[name]
        elif row.get("type") in ("user", "gemini"):
            turns[row.get("id", len(turns))] = row
        elif not turns:  # else a compressed history, whose originals are in the file
            turns = {turn.get("id"): turn for turn in update.get("messages") or ()}
    models = [str(turn["model"]) for turn in turns.values() if turn.get("model")]
    messages = [message for turn in turns.values() for message in _gemini_messages(turn)]
    return Reading(messages, len(turns), models[-1] if models else "")


def _gemini_messages(data: Row) -> list[dict[str, Any]]:
    stamp = {key: data[key] for key in ("id", "timestamp") if key in data}
    parts = _gemini_parts(data.get("content"))
    text = "".join(str(part["text"]) for part in parts if "text" in part)
    if data.get("type") == "user":
        inline = [part["inlineData"] for part in parts if "inlineData" in part]
        urls = [f"data:{data.get('mimeType')};base64,{data.get('data')}" for data in inline]
        media = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        content = [{"type": "text", "text": text}, *media] if media else text
        # One with results of tools alone says nothing that the agent's message has not.
        return [{"role": "user", "content": content, **stamp}] if content else []
    calls = [call for call in data.get("toolCalls") or () if isinstance(call, Mapping)]
    made = [(str(c.get("id")), str(c.get("name")), c.get("args") or {}) for c in calls]
    results = {str(c.get("id")): _gemini_result(c["result"]) for c in calls if c.get("result")}
    return _turn(text, made, results, stamp)


def _gemini_result(result: Any) -> str:
    texts = []
    for part in _gemini_parts(result):
        output = part.get("functionResponse", {}).get("response", part.get("text"))
        if isinstance(output, Mapping) and len(output) == 1:
            output = output.get("output", output.get("error", output))
        texts.append(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))
    return "\n".join(texts)


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
        made = [] if summary else list(_opencode_messages(info, row["parts"]))
        messages += made
        used += bool(made)
    return Reading(messages, used, model)


def _opencode_messages(info: Row, parts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Make one message a step, with the results behind their calls."""
    parts = [part for part in parts if isinstance(part, Mapping)]
    made = _mapping(info.get("time")).get("created")
    date = datetime.fromtimestamp(made / 1000, UTC) if isinstance(made, int) else None
    when = {"timestamp": date and date.isoformat(timespec="seconds")}
    stamp = {"id": info.get("id"), **when}
    if info.get("role") == "user":
        yield from _opencode_user(parts, stamp)
        return
    text, calls, results = "", list[tuple[str, str, Any]](), dict[str, str]()
    for part in [*parts, {"type": "step-start"}]:
        kind, state = part.get("type"), _mapping(part.get("state"))
        if (calls and kind == "text") or kind == "step-start":
            turn = _turn(text, calls, results, stamp)
            yield from turn
            text, calls, results = "", [], {}
            stamp = when if turn else stamp
        if kind == "text":
            text += str(part.get("text", ""))
        elif kind == "tool" and state:
            call = str(part.get("callID"))
            calls.append((call, str(part.get("tool")), state.get("input") or {}))
            if (status := state.get("status")) in ("completed", "error"):
                results[call] = str(state.get("output" if status == "completed" else "error", ""))


def _opencode_user(parts: Sequence[Row], stamp: Row) -> Iterator[dict[str, Any]]:
    """Make the user's message; texts that the program added are the developer's, behind it."""
    texts = [part for part in parts if part.get("type") == "text" and not part.get("ignored")]
    blocks: list[Any] = [
        {"type": "text", "text": str(part.get("text", ""))}
        for part in texts
        if not part.get("synthetic")
    ]
    files = [part for part in parts if part.get("type") == "file"]
    pictures = [part for part in files if str(part.get("mime", "")).startswith("image/")]
    blocks += [
        {"type": "image_url", "image_url": {"url": str(part.get("url"))}} for part in pictures
    ]
    added = "\n".join(str(part.get("text", "")) for part in texts if part.get("synthetic"))
    if blocks:
        yield {"role": "user", "content": blocks, **stamp}
    if added.strip():
        yield {"role": "developer", "content": added, "timestamp": stamp["timestamp"]}


# pi, whose newer files are trees of lines


def _is_pi(data: Row) -> bool:
    return data.get("type") == "message" and "role" in _mapping(data.get("message"))


def _read_pi(records: Sequence[Any], around: Row) -> Reading:
    """Read the branch that the last line ends; its summaries are not messages."""
    by_id = {row["id"]: row for row in records if "parentId" in row and "id" in row}
    path, row = list[Any](), records[-1] if by_id else None
    while row is not None:
        path.append(row)
        row = by_id.pop(row.get("parentId"), None)
    rows = [row for row in path[::-1] or records if _is_pi(row)]
    models = [str(row["message"]["model"]) for row in rows if row["message"].get("model")]
    made = [_pi_messages(row["message"], {"timestamp": row.get("timestamp")}) for row in rows]
    used = sum(map(bool, made))
    return Reading([one for each in made for one in each], used, models[-1] if models else "")


def _pi_messages(said: Row, stamp: Row) -> list[dict[str, Any]]:
    content = said.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(str(block["text"]) for block in blocks if block.get("type") == "text")
    if said["role"] == "assistant":
        uses = [block for block in blocks if block.get("type") == "toolCall"]
        calls = [(use["id"], use["name"], use.get("arguments") or {}) for use in uses]
        return _turn(text, calls, {}, stamp)
    if said["role"] == "toolResult":
        return [{"role": "tool", "tool_call_id": said["toolCallId"], "content": text, **stamp}]
    return [{"role": "user", "content": text, **stamp}] if said["role"] == "user" and text else []


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
    Form("pi", _is_pi, _read_pi, session=True, added=STAMP[1:]),
    Form(
        "langchain", _is_langchain, lambda records, _: _read_chat(records, {}), _langchain_message
    ),
    Form("anthropic", _is_anthropic, _read_chat),
    Form("openai", lambda data: True, _read_chat),
)
"""All forms; the first one that knows a record is that of the file."""
