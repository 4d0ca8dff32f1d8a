"""A truncated message: its beginning, its end, a pointer to the original.

The table of `blocks` names the parts of a block that may be shortened; the rest stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from conspectus._langchain import is_message
from conspectus.core.items import highest
from conspectus.messages.blocks import (
    CALLS,
    How,
    Short,
    described,
    is_item,
    kind_name,
    kind_of,
    plain_text,
    stays_whole,
)
from conspectus.messages.message import Message, Source

Count = Callable[[Source], int]

POINTER = "archived as "  # Stands in every clip, before the name of its original
ARCHIVED = POINTER + "{cite}"  # Where the original is, in the words of a clip

MARK = "[clipped: {left_out:,} of {whole:,} characters left out; original {where}]"

HEAD = 2 / 3
"""Share of a clipped text for its beginning: ends hold results, beginnings the kind of text."""

MOST_PER_TOKEN = 8  # Characters that are shown at most, so that never all of a giant is counted

INPUTS = frozenset({"input_image", "input_file"})
"""Media of OpenAI's Responses, in which an input text is an `input_text`."""

SIGNED_CALLS = "__gemini_function_call_thought_signatures__"
"""Where Google's messages keep the signatures of their calls, by the calls' ids."""


def clip(message: Message, limit: int, count: Count, where: str = ARCHIVED) -> Source:
    """Shorten a message to at most `limit` tokens, or else as far as possible.

    Texts, tool results and long values in tool arguments are shortened in the middle, the longest
    first. If that is not enough, images and files become short descriptions, and the arguments of a
    call a part of their text. Ids, names and the pairing of calls with results stay, and so does
    each block that the table of `blocks` does not shorten. In `where`, `{cite}` becomes the
    original's name.
    """
    if count(message.source) <= limit:
        return message.source
    everything = count(_shown(message, 0, where, everything=False)) > limit
    longest = max([len(message.text), *(len(call.args) for call in message.calls)])

    def fits(size: int) -> bool:
        return count(_shown(message, size, where, everything)) <= limit

    size = highest(0, min(longest, MOST_PER_TOKEN * limit), fits)
    return _shown(message, size, where, everything)


def smallest_clip(
    message: Message, count: Count, where: str = ARCHIVED, *, media_stay: bool = False
) -> int:
    """Return the fewest tokens that `clip` can bring a message to."""
    return min(count(message.source), count(_shown(message, 0, where, everything=not media_stay)))


def _shown(message: Message, size: int, where: str, everything: bool) -> Source:
    """Return a message with each of its texts cut to a size in characters."""
    where = where.replace("{cite}", message.cite)
    return _Shortening(message, partial(_cut, size, where), where, everything).message()


def _cut(size: int, where: str, text: str) -> str:
    whole, kept = len(text), min(size, len(text))
    mark = MARK.format(left_out=whole - kept, whole=whole, where=where)
    if whole <= size + len(mark):
        return text
    head = int(size * HEAD)
    tail = max(0, kept - head)
    return "\n".join(filter(None, (text[:head], mark, text[-tail:] if tail else "")))


@dataclass(frozen=True, slots=True)
class _Shortening:
    """One message whose long texts are cut.

    With `everything`, media are described and say where they are, and arguments are cut as a whole.
    """

    original: Message
    cut: Callable[[str], str]
    where: str
    everything: bool = False

    def message(self) -> Source:
        source = self.original.source
        if not is_message(source):
            short: dict[str, Any] = self._block(source) if is_item(source) else self._parts(source)
            return {**source, **short}
        extra = source.additional_kwargs
        if extra.get("type") == "computer_call_output":  # its content is a picture
            return source
        signed = extra.get(SIGNED_CALLS) or {}
        more = {**extra, **self._parts(extra, signed)}
        more["conspectus"] = {"clip_of": self.original.cite}
        update = {**self._parts(vars(source), signed), "additional_kwargs": more}
        return source.model_copy(update=update)

    def _parts(self, holder: Mapping[str, Any], signed: Any = ()) -> dict[str, Any]:
        """Return the fields of a message that change."""
        made: dict[str, Any] = {}
        if "content" in holder:
            made["content"] = self._content(holder["content"])
        for name in ("tool_calls", "invalid_tool_calls"):
            if isinstance(calls := holder.get(name), list) and calls:
                made[name] = [self._call(call, signed) for call in calls]
        if isinstance(first := holder.get("function_call"), Mapping) and not signed:
            made["function_call"] = self._call(first, ())
        return made

    def _call(self, call: Any, signed: Any) -> Any:
        """Shorten a call as OpenAI, or as LangChain, writes it."""
        if not isinstance(call, Mapping):
            return call
        return self._fields(call, CALLS) if call.get("id") not in signed else call

    def _content(self, value: Any) -> Any:
        if not isinstance(value, list):
            return self._block(value)
        blocks: list[Any] = []
        for kind, run in groupby(value, key=plain_text):
            parts = list(run)
            if kind and len(parts) > 1:
                parts = [{"type": kind, "text": "\n".join(part["text"] for part in parts)}]
            blocks += map(self._block, parts)
        return blocks

    def _block(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.cut(value)
        if not isinstance(value, Mapping) or stays_whole(value):
            return value
        name, kind = kind_name(value), kind_of(value)
        if kind.inside and isinstance(inner := value.get(kind.inside), Mapping):
            wrapped = kind.inside != name
            short = self._block(inner) if wrapped else self._fields(inner, kind.short)
            return {**value, kind.inside: short}
        if kind.media and self.everything and self.original.role != "assistant":
            note = f"{described(value)} ({self.where})"
            return {"type": "input_text" if name in INPUTS else "text", "text": note}
        return self._fields(value, kind.short)

    def _fields(self, value: Mapping[str, Any], short: Short) -> dict[str, Any]:
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
        if isinstance(value, str):
            return self._json(value) if how == "json" else self.cut(value)
        if how == "object" and self.everything:
            text = json.dumps(value, default=str)
            if (short := self.cut(text)) != text:
                return {"clipped": short}
        if isinstance(value, Mapping):
            return {key: self._field(part, "strings") for key, part in value.items()}
        if isinstance(value, list):
            return [self._field(part, "strings") for part in value]
        return value

    def _json(self, value: str) -> str:
        """Shorten arguments; they stay a JSON object in a string, as providers ask."""
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            short = self.cut(value)
            return value if short == value else json.dumps({"clipped": short})
        made = self._field(parsed, "object")
        return value if made == parsed else json.dumps(made, ensure_ascii=False)
