"""Sessions that `opencode export` writes: messages, each with an `info` and `parts`.

A tool's part holds a call and its result. A summary of opencode's own is left out where the
messages before it are in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from conspectus.transcripts.chat import called
from conspectus.transcripts.records import Form, Parsed, Reading, Record

ENDED = {"completed": "output", "error": "error"}  # states of a call, and the key of the result


def _knows(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("info"), Mapping) and isinstance(data.get("parts"), list)


def _read(parsed: Parsed) -> Reading:
    """Read the messages in OpenAI's form, up to the one that the user went back to."""
    session = (parsed.wrapper or {}).get("info")
    reverted = session.get("revert") if isinstance(session, Mapping) else None
    end = reverted.get("messageID") if isinstance(reverted, Mapping) else None
    messages: list[Record] = []
    model, used = "", 0
    for part in filter(lambda part: _knows(part.data), parsed.records):
        info = part.data["info"]
        if end is not None and info.get("id") == end:
            break
        model = str(info.get("modelID") or (info.get("model") or {}).get("modelID") or model)
        made = [] if messages and info.get("summary") is True else list(_messages(part.data))
        messages += [Record(message, part.index, part.line) for message in made]
        used += bool(made)
    return Reading(messages, len(parsed.records) - used, model)


def _messages(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make one message a step, with the results behind their calls."""
    info = data["info"]
    parts = [part for part in data["parts"] if isinstance(part, Mapping)]
    made = info["time"].get("created") if isinstance(info.get("time"), Mapping) else None
    date = datetime.fromtimestamp(made / 1000, UTC) if isinstance(made, int) else None
    stamp = {"id": info.get("id"), "timestamp": date and date.isoformat(timespec="seconds")}
    if info.get("role") == "user":
        yield from _asked(parts, stamp)
        return
    text, calls, results = "", list[tuple[str, str, Any]](), dict[str, str]()
    for part in [*parts, {"type": "step-start"}]:
        kind = part.get("type")
        if (calls and kind == "text") or kind == "step-start":
            if text or calls:
                yield from called(text, calls, results, stamp)
                stamp = {"timestamp": stamp["timestamp"]}
            text, calls, results = "", [], {}
        if kind == "text":
            text += str(part.get("text", ""))
        elif kind == "tool" and isinstance(state := part.get("state"), Mapping):
            call, key = str(part.get("callID")), ENDED.get(str(state.get("status")))
            calls.append((call, str(part.get("tool")), state.get("input") or {}))
            if key is not None:
                results[call] = str(state.get(key, ""))


def _asked(parts: list[Mapping[str, Any]], stamp: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the user's message; texts that the program added are the developer's, behind it."""
    blocks: list[dict[str, Any]] = []
    added: list[str] = []
    for part in parts:
        if part.get("type") == "text" and part.get("synthetic"):
            added += [] if part.get("ignored") else [str(part.get("text", ""))]
        elif part.get("type") == "text" and not part.get("ignored"):
            blocks.append({"type": "text", "text": str(part.get("text", ""))})
        elif part.get("type") == "file" and str(part.get("mime", "")).startswith("image/"):
            blocks.append({"type": "image_url", "image_url": {"url": str(part.get("url"))}})
    if blocks:
        yield {"role": "user", "content": blocks, **stamp}
    if any(added):
        text = "\n".join(added)
        yield {"role": "developer", "content": text, "timestamp": stamp["timestamp"]}


FORM = Form("opencode", _knows, _read, session=True, added=("id", "timestamp"))
