"""Sessions of Gemini CLI: one object, or lines of which a later one replaces a message.

A message of the agent holds its calls with their results. `$rewindTo` takes back a message and all
after it; `$set` changes what is known of the session, and after a compression its messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conspectus.transcripts.chat import called
from conspectus.transcripts.records import Form, Parsed, Reading, Record


def _knows(data: Mapping[str, Any]) -> bool:
    return data.get("type") == "gemini" or {"sessionId", "projectHash"} <= data.keys()


def _read(parsed: Parsed) -> Reading:
    """Read the messages in OpenAI's form; notices and thoughts are left out."""
    turns: dict[Any, Record] = {}
    for part in parsed.records:
        data, back = part.data, part.data.get("$rewindTo")
        if back in turns:
            names = list(turns)
            for name in names[names.index(back) :]:
                del turns[name]
        elif isinstance(update := data.get("$set"), Mapping):
            # A compressed history, whose originals are in the file.
            for message in () if turns else update.get("messages") or ():
                turns[message.get("id")] = Record(message, len(turns), part.line)
        elif data.get("type") in ("user", "gemini"):
            turns[data.get("id", len(turns))] = part
    messages = [
        Record(message, part.index, part.line)
        for part in turns.values()
        for message in _messages(part.data)
    ]
    models = [part.data.get("model") for part in turns.values()]
    model = next((name for name in reversed(models) if name), "")
    return Reading(messages, len(parsed.records) - len(turns), str(model))


def _messages(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make a turn's messages: the words, the calls, and their results."""
    stamp = {key: data[key] for key in ("id", "timestamp") if key in data}
    parts = _parts(data.get("content"))
    text = "".join(str(part["text"]) for part in parts if "text" in part)
    if data.get("type") == "user":
        inline = [part["inlineData"] for part in parts if "inlineData" in part]
        urls = [f"data:{one.get('mimeType')};base64,{one.get('data')}" for one in inline]
        media = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        content = [{"type": "text", "text": text}, *media] if media else text
        # One with results of tools alone says nothing that the agent's message has not.
        return [{"role": "user", "content": content, **stamp}] if content else []
    calls = [call for call in data.get("toolCalls") or () if isinstance(call, Mapping)]
    made = [(str(c.get("id")), str(c.get("name")), c.get("args") or {}) for c in calls]
    results = {str(c.get("id")): _result(c["result"]) for c in calls if c.get("result")}
    return called(text, made, results, stamp)


def _result(result: Any) -> str:
    texts = []
    for part in _parts(result):
        response = part.get("functionResponse", {}).get("response", part.get("text"))
        if isinstance(response, Mapping) and len(response) == 1:
            response = response.get("output", response.get("error", response))
        texts.append(
            response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
        )
    return "\n".join(texts)


def _parts(content: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    texts = ({"text": part} if isinstance(part, str) else part for part in listed)
    return [part for part in texts if isinstance(part, Mapping)]


FORM = Form("gemini-cli", _knows, _read, session=True, added=("id", "timestamp"))
