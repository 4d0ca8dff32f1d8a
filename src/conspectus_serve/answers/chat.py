"""Join answers of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import written
from conspectus_serve.answers.joining import Lookup, LookupResult, total

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
"""Texts of a message; some providers want them back."""

BROKEN_OFF = (None, "length", "content_filter")
"""Finish reasons after which a call may be incomplete, so that nothing is looked up."""


class ChatAnswers:
    """Answers of chat completions; see `Answers`."""

    def lookups(self, body: Mapping[str, Any], tool: str) -> list[Lookup]:
        choice = body["choices"][0]
        calls = choice["message"].get("tool_calls") or []
        ours = all(one["function"]["name"] == tool for one in calls)
        if not ours or choice.get("finish_reason") in BROKEN_OFF:
            return []
        return [Lookup(str(one["id"]), one["function"]["arguments"]) for one in calls]

    def exchange(
        self, body: Mapping[str, Any], results: Sequence[tuple[Lookup, LookupResult]]
    ) -> list[dict[str, Any]]:
        message = body["choices"][0]["message"]
        said = {name: message[name] for name in TEXTS if message.get(name)}
        calls = {"role": "assistant", "content": None, **said, "tool_calls": message["tool_calls"]}
        return [
            calls,
            *(
                {"role": "tool", "tool_call_id": call.id, "content": result.text}
                for call, result in results
            ),
        ]

    def joined(self, bodies: Sequence[Mapping[str, Any]], tool: str) -> dict[str, Any]:
        last = bodies[-1]
        choice = last["choices"][0]
        message = dict(choice["message"])
        for name in TEXTS:
            texts = [one["choices"][0]["message"].get(name) for one in bodies]
            if text := "\n\n".join(filter(None, texts)):
                message[name] = text
        calls = message.pop("tool_calls", None) or []
        kept = [one for one in calls if one["function"]["name"] != tool]
        if kept:
            message["tool_calls"] = kept
        reason = choice.get("finish_reason")
        if calls and not kept and reason == "tool_calls":
            reason = "stop"
        frame = {key: bodies[0][key] for key in ("id", "created") if key in bodies[0]}
        made = {**last, **frame}
        made["choices"] = [{**choice, "message": message, "finish_reason": reason}]
        if usage := total(bodies):
            made["usage"] = usage
        return made

    def events(self, body: Mapping[str, Any]) -> list[bytes]:
        rest = {key: value for key, value in body.items() if key not in ("choices", "usage")}
        frame = {**rest, "object": "chat.completion.chunk"}
        choice = body["choices"][0]
        delta = {"role": "assistant", **choice["message"]}
        if calls := delta.pop("tool_calls", None):
            delta["tool_calls"] = [{**one, "index": place} for place, one in enumerate(calls)]
        said = {"index": 0, "delta": delta, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
        made = [{**frame, "choices": [one]} for one in (said, ended)]
        if usage := body.get("usage"):
            made.append({**frame, "choices": [], "usage": usage})
        return [*(written(one, named=False) for one in made), b"data: [DONE]\n\n"]
