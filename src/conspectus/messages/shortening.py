"""Cut each long text in a message to one size, block by block.

The table of `blocks` names the parts of a block that are shortened; the rest stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from conspectus._langchain import is_ai_message, is_message
from conspectus.messages.blocks import How, is_item, kind_name, kind_of, stays_whole
from conspectus.messages.content import describe
from conspectus.messages.entries import Entry, Source
from conspectus.messages.reading import answers_computer

HEAD = 2 / 3
"""Share of a clipped text for its beginning: ends hold results, beginnings the kind of text."""

MARK = "[clipped: {left_out:,} of {whole:,} characters left out; original {where}]"

_EQUAL_LINES = re.compile(r"^([^\n]{4,400})\n(?:\1\n){2,}", re.MULTILINE)

Level = Literal["texts", "joined", "media", "whole"]

LEVELS: tuple[Level, ...] = ("texts", "joined", "media", "whole")
"""Steps of shortening: long texts; runs of plain texts joined; images and files too; at last the
arguments of a call as a whole."""

WITH_MEDIA: Level = "joined"  # The last level that leaves images and files as they are

INPUTS = frozenset({"input_image", "input_file"})
"""Media of OpenAI's Responses, in which an input text is an `input_text`."""

TEXTS = ("text", "input_text")
PLAIN = frozenset({"type", "text", "index"})
"""Text blocks that can be joined with others, and the keys that they may have."""

SIGNED_CALLS = "__gemini_function_call_thought_signatures__"
"""Where Google's messages keep the signatures of their calls, by the calls' ids."""


def shortened(entry: Entry, size: int, level: Level, where: str) -> Source:
    """Cut every text of a message to `size` characters; `where` names the original."""
    return _Shortening(entry, size, level, where.replace("{cite}", entry.cite)).message()


@dataclass(frozen=True, slots=True)
class _Shortening:
    """One message made shorter in one way."""

    entry: Entry
    size: int
    level: Level
    where: str

    def message(self) -> Source:
        source = self.entry.source
        if not is_message(source):
            return self._dict(source)
        if answers_computer(source):
            return source
        update: dict[str, Any] = {"content": self._content(source.content)}
        extra = {**source.additional_kwargs, "conspectus": {"clip_of": self.entry.cite}}
        if is_ai_message(source):
            signed = extra.get(SIGNED_CALLS) or {}
            if source.tool_calls:
                update["tool_calls"] = [
                    c if c["id"] in signed else {**c, "args": self._arguments(c["args"])}
                    for c in source.tool_calls
                ]
            if source.invalid_tool_calls:
                update["invalid_tool_calls"] = [
                    self._fields(c, (("args", "text"),)) for c in source.invalid_tool_calls
                ]
            if raw := extra.get("tool_calls"):
                extra["tool_calls"] = self._openai_calls(raw)
            if isinstance(first := extra.get("function_call"), Mapping) and not signed:
                extra["function_call"] = self._fields(first, (("arguments", "json"),))
        return source.model_copy(update={**update, "additional_kwargs": extra})

    def _dict(self, source: Mapping[str, Any]) -> Source:
        if is_item(source):
            item: Mapping[str, Any] = self._block(source)
            return item
        short = {**source, "content": self._content(source.get("content"))}
        if source.get("tool_calls"):
            short["tool_calls"] = self._openai_calls(source["tool_calls"])
        if isinstance(first := source.get("function_call"), Mapping):
            short["function_call"] = self._fields(first, (("arguments", "json"),))
        return short

    def _text(self, value: str) -> str:
        left_out, whole = max(0, len(value) - self.size), len(value)
        mark = MARK.format(left_out=left_out, whole=whole, where=self.where)
        if whole <= self.size + len(mark):
            return value
        value = _EQUAL_LINES.sub(_once, value)
        shown = min(self.size, len(value))
        mark = MARK.format(left_out=whole - shown, whole=whole, where=self.where)
        head = int(self.size * HEAD)
        tail = max(0, shown - head)
        return "\n".join(
            part for part in (value[:head], mark, value[-tail:] if tail else "") if part
        )

    def _content(self, value: Any) -> Any:
        if not isinstance(value, list):
            return self._block(value)
        if self.level in ("joined", "whole"):
            return self._joined(value)
        return [self._block(part) for part in value]

    def _block(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        kind = kind_of(value) if isinstance(value, Mapping) else None
        if kind is None or stays_whole(value):
            return value
        name = kind_name(value)
        if kind.inside and isinstance(inner := value.get(kind.inside), Mapping):
            wrapped = kind.inside != name
            short = self._block(inner) if wrapped else self._fields(inner, kind.short)
            return {**value, kind.inside: short}
        gives_way = self.level in ("media", "whole") and self.entry.role != "assistant"
        if kind.media and gives_way:
            note = f"{describe(name, value)} ({self.where})"
            return {"type": "input_text" if name in INPUTS else "text", "text": note}
        return self._fields(value, kind.short)

    def _fields(
        self, value: Mapping[str, Any], short: tuple[tuple[str, How], ...]
    ) -> dict[str, Any]:
        made = dict(value)
        for path, how in short:
            outer, _, name = path.rpartition(".")
            holder = made.get(outer) if outer else made
            if isinstance(holder, Mapping) and name in holder:
                changed = {**holder, name: self._field(holder[name], how)}
                made = {**made, outer: changed} if outer else changed
        return made

    def _field(self, value: Any, how: How) -> Any:
        if how == "content":
            return self._content(value)
        if how == "object":
            return self._arguments(value)
        if how == "strings":
            return self._strings(value)
        if not isinstance(value, str):
            return value
        return self._text(value) if how == "text" else self._json(value)

    def _arguments(self, value: Any) -> Any:
        if self.level == "whole":
            shown = json.dumps(value, default=str)
            if len(shown) > self.size + 200:
                return {"clipped": self._text(shown)}
        return self._strings(value)

    def _strings(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._strings(part) for key, part in value.items()}
        return [self._strings(part) for part in value] if isinstance(value, list) else value

    def _json(self, value: str) -> str:
        """Shorten arguments; they stay a JSON object in a string, as providers ask."""
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value if len(value) <= self.size else json.dumps({"clipped": self._text(value)})
        short = self._arguments(parsed)
        return value if short == parsed else json.dumps(short, ensure_ascii=False)

    def _openai_calls(self, calls: Any) -> Any:
        return [self._openai_call(call) if isinstance(call, Mapping) else call for call in calls]

    def _openai_call(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(function := call.get("function"), Mapping):
            return {**call, "function": self._fields(function, (("arguments", "json"),))}
        if isinstance(custom := call.get("custom"), Mapping):
            return {**call, "custom": self._fields(custom, (("input", "text"),))}
        return call

    def _joined(self, blocks: list[Any]) -> list[Any]:
        """Join each run of plain texts, so that many small ones can be clipped."""
        out: list[Any] = []
        for kind, run in groupby(blocks, key=_plain_text):
            parts = list(run)
            if kind and len(parts) > 1:
                whole = "\n".join(part["text"] for part in parts)
                short = self._text(whole)
                # Joined blocks are not the original, even if nothing is left out.
                note = f"\n[joined: {len(parts)} blocks; original {self.where}]"
                out.append({"type": kind, "text": short if short != whole else whole + note})
            else:
                out += map(self._block, parts)
        return out


def _once(match: re.Match[str]) -> str:
    """Return a run of equal lines as one, with their number."""
    return f"{match[1]} (this line {match[0].count(match[1])} times)\n"


def _plain_text(block: Any) -> str:
    """Return the kind of a block of plain text; empty for any other block."""
    if not isinstance(block, Mapping) or not block.keys() <= PLAIN:
        return ""
    kind = str(block.get("type"))
    return kind if kind in TEXTS and isinstance(block.get("text"), str) else ""
