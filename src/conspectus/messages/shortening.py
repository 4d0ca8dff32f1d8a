"""Clip a message: keep its beginning and its end, with a pointer to the original.

The table of `blocks` names the parts of a block that may be shortened. All else stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_message
from conspectus.core.bisection import highest_that_fits
from conspectus.messages.blocks import (
    CALLS,
    Shortenable,
    ShorteningMode,
    is_item,
    kind_name,
    kind_of,
    plain_text,
    stays_whole,
)
from conspectus.messages.media import described
from conspectus.messages.message import Message, Source

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

SourceCount = Callable[[Source], int]

POINTER = "archived as "  # in every clip, before the name of its original
ARCHIVED = POINTER + "{cite}"  # what a clip says of the place of its original

MARK = "[clipped: {left_out:,} of {whole:,} characters left out; original {pointer}]"

HEAD = 2 / 3
"""Share of a clipped text for its beginning: ends hold results, beginnings the kind of text."""

MAX_PER_TOKEN = 8  # most characters shown for a token, so that a giant is never counted whole

INPUTS = frozenset({"input_image", "input_file"})
"""Kinds of media in OpenAI's Responses. Text between them is an `input_text`."""

SIGNED_CALLS = "__gemini_function_call_thought_signatures__"
"""Where Google's messages keep the signatures of their calls, by the calls' ids."""


def clip_message(
    message: Message, limit: int, count: SourceCount, pointer: str = ARCHIVED
) -> Source:
    """Shorten a message to at most `limit` tokens, or else as far as possible.

    Texts, tool results and long values in tool arguments are shortened in the middle, the longest
    first. If that is not enough, images and files become short descriptions, and a part of their
    text replaces the arguments of a call. Ids and names stay, calls keep their results, and a block
    stays that the table of `blocks` does not shorten. In `pointer`, the name of the original
    replaces `{cite}`.
    """
    if count(message.source) <= limit:
        return message.source
    texts_are_not_enough = count(_clipped(message, 0, pointer, clip_media=False)) > limit
    longest = max([len(message.text), *(len(call.args) for call in message.calls)])

    def fits(length: int) -> bool:
        return count(_clipped(message, length, pointer, texts_are_not_enough)) <= limit

    length = highest_that_fits(0, min(longest, MAX_PER_TOKEN * limit), fits)
    return _clipped(message, length, pointer, texts_are_not_enough)


def smallest_clip(
    message: Message, count: SourceCount, pointer: str = ARCHIVED, *, media_stay: bool = False
) -> int:
    """Return the fewest tokens that `clip_message` can bring a message to."""
    return min(
        count(message.source), count(_clipped(message, 0, pointer, clip_media=not media_stay))
    )


def _clipped(message: Message, length: int, pointer: str, clip_media: bool) -> Source:
    """Return a message with each of its texts cut to a number of characters."""
    pointer = pointer.replace("{cite}", message.cite)
    return _Shortening(message, partial(_cut, length, pointer), pointer, clip_media).message()


def _cut(length: int, pointer: str, text: str) -> str:
    """Return the beginning and the end of a text, with a mark between that says what is missing."""
    whole = len(text)
    kept = min(length, whole)
    mark = MARK.format(left_out=whole - kept, whole=whole, pointer=pointer)
    if whole <= length + len(mark):
        return text
    head = int(length * HEAD)
    tail = max(0, kept - head)
    parts = (text[:head], mark, text[-tail:] if tail else "")
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Shortening:
    """One message whose long texts are cut.

    Attributes:
        original: the message.
        cut: cuts a text.
        pointer: says where the original is.
        clip_media: whether descriptions, with an address, replace media, and arguments are cut as a
            whole.
    """

    original: Message
    cut: Callable[[str], str]
    pointer: str
    clip_media: bool = False

    def message(self) -> Source:
        """Return the message with its texts cut."""
        source = self.original.source
        if is_message(source):
            return self._langchain_message(source)
        if is_item(source):
            return {**source, **self._block(source)}
        return {**source, **self._parts(source)}

    def _langchain_message(self, source: BaseMessage) -> BaseMessage:
        options = source.additional_kwargs
        if options.get("type") == "computer_call_output":  # its content is a picture
            return source
        signed = options.get(SIGNED_CALLS) or {}
        short_options = {**options, **self._parts(options, signed)}
        short_options["conspectus"] = {"clip_of": self.original.cite}
        update = {**self._parts(vars(source), signed), "additional_kwargs": short_options}
        return source.model_copy(update=update)

    def _parts(self, holder: Mapping[str, Any], signed: Collection[str] = ()) -> dict[str, Any]:
        """Return the fields of a message that change; `signed` are ids of calls that may not."""
        changed: dict[str, Any] = {}
        if "content" in holder:
            changed["content"] = self._content(holder["content"])
        for name in ("tool_calls", "invalid_tool_calls"):
            calls = holder.get(name)
            if isinstance(calls, list) and calls:
                changed[name] = [self._call(call, signed) for call in calls]
        function = holder.get("function_call")
        if isinstance(function, Mapping) and not signed:
            changed["function_call"] = self._call(function, ())
        return changed

    def _call(self, call: Any, signed: Collection[str]) -> Any:
        """Shorten a call as OpenAI, or as LangChain, writes it."""
        if not isinstance(call, Mapping) or call.get("id") in signed:
            return call
        return self._fields(call, CALLS)

    def _content(self, value: Any) -> Any:
        """Shorten content; join blocks of plain text that follow each other."""
        if not isinstance(value, list):
            return self._block(value)
        blocks: list[Any] = []
        for text_type, run in groupby(value, key=plain_text):
            parts = list(run)
            if text_type and len(parts) > 1:
                parts = [{"type": text_type, "text": "\n".join(part["text"] for part in parts)}]
            blocks += map(self._block, parts)
        return blocks

    def _block(self, value: Any) -> Any:
        """Shorten a text, or a block as the table says."""
        if isinstance(value, str):
            return self.cut(value)
        if not isinstance(value, Mapping) or stays_whole(value):
            return value
        name = kind_name(value)
        kind = kind_of(value)
        inner = value.get(kind.wrapped_in) if kind.wrapped_in else None
        if isinstance(inner, Mapping):
            is_named_by_key = kind.wrapped_in == name
            short = self._fields(inner, kind.shortenable) if is_named_by_key else self._block(inner)
            return {**value, kind.wrapped_in: short}
        if kind.media and self.clip_media and self.original.role != "assistant":
            note = f"{described(value)} ({self.pointer})"
            return {"type": "input_text" if name in INPUTS else "text", "text": note}
        return self._fields(value, kind.shortenable)

    def _fields(self, value: Mapping[str, Any], shortenable: Shortenable) -> dict[str, Any]:
        """Shorten the fields that a row of the table names."""
        fields = dict(value)
        for path, mode in shortenable:
            outer, _, name = path.rpartition(".")
            holder = fields.get(outer) if outer else fields
            if isinstance(holder, Mapping) and name in holder:
                changed = {**holder, name: self._field(holder[name], mode)}
                fields = {**fields, outer: changed} if outer else changed
        return fields

    def _field(self, value: Any, mode: ShorteningMode) -> Any:
        """Shorten one field; see `ShorteningMode`."""
        if mode == "content":
            return self._content(value)
        if isinstance(value, str):
            return self._json(value) if mode == "json" else self.cut(value)
        if mode == "object" and self.clip_media:
            text = json.dumps(value, default=str)
            short = self.cut(text)
            if short != text:
                return {"clipped": short}
        if isinstance(value, Mapping):
            return {key: self._field(part, "strings") for key, part in value.items()}
        if isinstance(value, list):
            return [self._field(part, "strings") for part in value]
        return value

    def _json(self, value: str) -> str:
        """Shorten arguments; they stay a JSON object in a string, because providers need that."""
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            short = self.cut(value)
            return value if short == value else json.dumps({"clipped": short})
        shortened = self._field(parsed, "object")
        return value if shortened == parsed else json.dumps(shortened, ensure_ascii=False)
