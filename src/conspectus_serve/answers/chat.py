"""Read answers of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import data_of, written
from conspectus_serve.answers.reading import AnswerReader, Lookup, LookupResult

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a message that grow while it is streamed; some providers want them back."""

BROKEN_OFF = ("length", "content_filter")
"""Finish reasons after which a call may be incomplete, so that nothing is looked up."""


class ChatAnswer(AnswerReader):
    """Read one answer of chat completions."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self._frame: dict[str, Any] = {}
        self._said: dict[str, str] = {}

    def _begin(self) -> None:
        super()._begin()
        self._texts: dict[str, str] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._newest: dict[int, int] = {}
        self._held: list[dict[str, Any] | bytes] = []
        self._reason: str | None = None

    @property
    def asks(self) -> Sequence[Lookup]:
        calls = [one["function"] | {"id": one["id"]} for one in self._calls.values()]
        if self._reason in (None, *BROKEN_OFF) or any(c["name"] != self._tool for c in calls):
            return []
        return [Lookup(str(one["id"]), one["arguments"]) for one in calls]

    def event(self, raw: bytes) -> list[bytes]:
        data = data_of(raw)
        if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
            if b"[DONE]" in raw:
                self._held.append(raw)
                return []
            return [raw]
        frame = {key: data[key] for key in ("id", "created") if key in data}
        self._frame = self._frame or frame
        changed = frame != self._frame
        data |= self._frame
        if isinstance(data.get("usage"), Mapping):
            self._usage = data["usage"]
            changed = changed or bool(self._earlier)
            data["usage"] = self._total()
        if not data["choices"]:
            self._held.append(data)
            return []
        choice = data["choices"][0]
        delta = dict(choice.get("delta") or {})
        changed = self._grown(delta) or changed
        if choice.get("finish_reason") is not None and (late := self._left()):
            delta["tool_calls"] = [*late, *(delta.get("tool_calls") or ())]
        made = {**data, "choices": [{**choice, "delta": delta}]}
        self._reason = choice.get("finish_reason") or self._reason
        if choice.get("finish_reason") is None:
            if changed and not any(value for key, value in delta.items() if key != "role"):
                return []
            return [written(made, named=False) if changed else raw]
        self._held.append({**data, "choices": [{**choice, "delta": {}}]})
        if not any(value for key, value in delta.items() if key != "role"):
            return []
        rest = {"choices": [{**choice, "delta": delta, "finish_reason": None}], "usage": None}
        return [written({**data, **rest}, named=False)]

    def _grown(self, delta: dict[str, Any]) -> bool:
        """Add a delta to the message, drop the client's hidden parts; True if it changed."""
        changed = False
        for name in TEXTS:
            piece = delta.get(name)
            if not isinstance(piece, str) or not piece:
                continue
            if not self._texts.get(name) and self._said.get(name):
                delta[name], changed = f"\n\n{piece}", True
            self._texts[name] = self._texts.get(name, "") + piece
        if self._round and "role" in delta:
            del delta["role"]
            changed = True
        given = delta.get("tool_calls")
        if isinstance(given, list):
            delta["tool_calls"] = [seen for one in given for seen in self._called(one)]
            if not delta["tool_calls"]:
                del delta["tool_calls"]
            changed = changed or delta.get("tool_calls") != given
        return changed

    def _called(self, piece: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the visible pieces of a call; none until its name is known."""
        at = self._at(piece)
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(at, empty)
        call["id"] = piece.get("id") or call["id"]
        function = piece.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""
        name = call["function"]["name"]
        pieces = [*self._waiting.pop(at, []), piece]
        if name == self._tool:
            return []
        if self._tool.startswith(name):
            self._waiting[at] = pieces
            return []
        return self._placed(at, pieces)

    def _at(self, piece: Mapping[str, Any]) -> int:
        """Return the number of a piece's call: some providers give every call index 0."""
        at = int(piece.get("index") or 0)
        name, at = piece.get("id"), self._newest.get(at, at)
        if name and at in self._calls and self._calls[at]["id"] not in ("", name):
            self._newest[int(piece.get("index") or 0)] = at = max(self._calls) + 1
        return at

    def _placed(self, at: int, pieces: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "index": self._place(at)} for one in pieces]

    def _left(self) -> list[dict[str, Any]]:
        """Release calls whose name is only a beginning of our tool's name."""
        waiting, self._waiting = self._waiting, {}
        return [one for at, pieces in waiting.items() for one in self._placed(at, pieces)]

    def whole(self, body: Mapping[str, Any]) -> None:
        self._last = dict(body)
        self._frame = self._frame or {key: body[key] for key in ("id", "created") if key in body}
        choice = body["choices"][0]
        message = choice["message"]
        self._reason = choice.get("finish_reason") or "stop"
        self._texts = {name: message[name] for name in TEXTS if message.get(name)}
        self._calls = {
            place: {"id": one["id"], "type": "function", "function": dict(one["function"])}
            for place, one in enumerate(message.get("tool_calls") or ())
        }
        self._usage = body.get("usage")

    def exchange(self, found: Sequence[LookupResult]) -> list[dict[str, Any]]:
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": one.text}
            for call, one in zip(self.asks, found, strict=True)
        ]
        said: dict[str, Any] = {"role": "assistant", "content": None, **self._texts}
        said["tool_calls"] = list(self._calls.values())
        self._said = self._joined()
        self._next()
        return [said, *results]

    def _joined(self) -> dict[str, str]:
        names = {**self._said, **self._texts}
        parts = {name: (self._said.get(name), self._texts.get(name)) for name in names}
        return {name: "\n\n".join(filter(None, pair)) for name, pair in parts.items()}

    def _ended(self, reason: Any) -> Any:
        theirs = any(one["function"]["name"] != self._tool for one in self._calls.values())
        return reason if theirs or not self._calls or reason != "tool_calls" else "stop"

    def end(self) -> list[bytes]:
        made = []
        for one in self._held:
            if isinstance(one, bytes):
                made.append(one)
                continue
            choices = [
                {**choice, "finish_reason": self._ended(choice.get("finish_reason"))}
                for choice in one["choices"]
            ]
            made.append(written({**one, "choices": choices}, named=False))
        return made

    def body(self) -> dict[str, Any]:
        choice = self._last["choices"][0]
        message = {**choice["message"], **self._joined()}
        calls = message.pop("tool_calls", None) or ()
        if kept := [one for one in calls if one["function"]["name"] != self._tool]:
            message["tool_calls"] = kept
        reason = self._ended(choice.get("finish_reason"))
        made = {**self._last, **self._frame}
        made["choices"] = [{**choice, "message": message, "finish_reason": reason}]
        if total := self._total():
            made["usage"] = total
        return made

    def failed(self, said: Any) -> bytes:
        known = isinstance(said, Mapping) and "error" in said
        error = said if known else {"error": {"message": "the upstream has refused to go on"}}
        return written(error, named=False)
