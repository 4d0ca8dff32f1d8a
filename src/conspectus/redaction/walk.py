"""Visit all texts of a message, and replace each of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, NamedTuple

from conspectus._langchain import is_message
from conspectus.messages.message import why_left_out

STRUCTURE = frozenset("id type role tool_call_id tool_use_id call_id index mime_type".split())
"""Structural keys of messages, blocks and calls. Their values stay, except in free data such as
arguments."""

ADDITIONS = "additional_kwargs"
FREE_DATA = frozenset(
    f"{ADDITIONS} args arguments input artifact output result metadata response_metadata".split()
)
"""Keys of free data, which may have any form."""

CALLS = ("tool_calls", "function_call")
"""Keys of a provider's calls, which are no free data."""

ENCODED = ("data", "base64", "file_data")
"""The keys of a block with a file in base64. If the file is a text, it is redacted."""

TEXT_TYPES = ("json", "xml", "yaml")
"""Ends of MIME types that are texts, in addition to `text/...`."""

NAMING = frozenset("name key parameterkey parametername".split())
VALUED = frozenset("value parametervalue".split())
"""Keys of a mapping with a name and a value, as tools that set variables need it: `{"name":
"DB_PASSWORD", "value": ...}`. In a mapping without a name, the key of the mapping names the value:
`{"DB_PASSWORD": {"value": ...}}`."""

_A_NAME = re.compile(r"[\w.:/-]{1,120}+(?: [\w.:/-]{1,40}+)?")  # a sentence is no name
_OPTION = re.compile(r"--[\w-]{1,120}+")
_LARGEST_PASSWORD = 1 << 256  # larger integers are no passwords

ReplaceText = Callable[[str, str | None], str]
"""Takes a text and its name, such as its key or the option of a command before it; returns the text
that replaces it."""


class _Place(NamedTuple):
    """Where a value is."""

    names: tuple[str, ...] = ()
    """The names of the value: its key, or other words that say what it is."""

    is_free: bool = False
    """Whether it is part of free data, in which keys are redacted, too."""

    inside: tuple[int, ...] = ()
    """The id() of each value around it."""


def walk(value: Any, replace_text: ReplaceText) -> Any:
    """Return a message or a text with each text replaced; the same object if nothing changed.

    A text with several names is replaced under each of them until it changes. A description
    replaces parts that are nested too deeply.
    """
    walker = _Walker(replace_text)
    if not is_message(value):
        return walker.in_value(value, _Place())
    fields = {**vars(value), **(value.__pydantic_extra__ or {})}
    fields.pop("usage_metadata", None)
    replaced = walker.in_mapping(fields, _Place())
    changed = {name: part for name, part in replaced.items() if part is not fields.get(name)}
    return value.model_copy(update=changed) if changed else value


@dataclass(frozen=True, slots=True)
class _Walker:
    """Replaces texts in values of every kind. A value without such a text is the same object."""

    replace_text: ReplaceText

    def in_value(self, value: Any, place: _Place) -> Any:
        if isinstance(value, str):
            return self.in_text(value, place.names)
        if isinstance(value, (bytes, bytearray)):
            return self.in_bytes(value, place.names)
        if isinstance(value, (Mapping, list, tuple)):
            description = why_left_out(value, place.inside)
            if description is not None:
                return f"[{description}]"
            inner = _Place(place.names, place.is_free, (*place.inside, id(value)))
            if isinstance(value, Mapping):
                return self.in_mapping(value, inner)
            return self.in_sequence(value, inner)
        if place.names and type(value) is int and abs(value) < _LARGEST_PASSWORD:
            digits = str(value)  # a number can be a password
            replaced = self.in_text(digits, place.names)
            return value if replaced == digits else replaced
        return value  # no text, or an object; only the type of an object is archived

    def in_text(self, text: str, names: Sequence[str]) -> str:
        plain = str.__str__(text)  # of a subclass of `str`
        for name in names or (None,):
            replaced = self.replace_text(plain, name)
            if replaced != text:
                return replaced
        return text

    def in_bytes(self, value: Any, names: Sequence[str]) -> Any:
        """Redact bytes that are a text."""
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            return value
        replaced = self.in_text(text, names)
        if replaced == text:
            return value
        return type(value)(replaced.encode("utf-8", "surrogatepass"))

    def in_file(self, text: str) -> str:
        """Redact a text file in base64."""
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            return self.in_text(text, ())
        replaced = self.in_bytes(raw, ())
        return text if replaced is raw else base64.b64encode(replaced).decode()

    def in_sequence(self, values: Any, place: _Place) -> Any:
        names = _names_in(values, place.names)
        parts = [
            self.in_value(value, _Place(own_names, place.is_free, place.inside))
            for value, own_names in zip(values, names, strict=True)
        ]
        if all(map(is_, parts, values)):
            return values
        return tuple(parts) if isinstance(values, tuple) else parts

    def in_mapping(self, values: Mapping[Any, Any], place: _Place) -> Any:
        names_beside = _names_beside_a_value(values)
        encoded_keys = ENCODED if _is_text_file(values) else ()
        is_cookies = "cookies" in map(str.lower, place.names)
        replaced: dict[Any, Any] = {}
        for key, value in values.items():
            word = str.__str__(key) if isinstance(key, str) else ""
            new_key = key
            names: tuple[str, ...] = (word,) if word else ()
            if word.lower() in VALUED:
                names = names_beside or place.names or names
            if place.is_free and word:
                new_key = self._new_key(key, word, replaced)
                if is_cookies:
                    names = place.names
            if not place.is_free and word in STRUCTURE and _is_simple(value):
                replaced[new_key] = value
            elif not place.is_free and word in encoded_keys and isinstance(value, str):
                replaced[new_key] = self.in_file(value)
            else:
                is_free = word in FREE_DATA or (
                    place.is_free and not (word in CALLS and place.names == (ADDITIONS,))
                )
                replaced[new_key] = self.in_value(value, _Place(names, is_free, place.inside))
        is_same = replaced.keys() == values.keys()
        return values if is_same and all(map(is_, replaced.values(), values.values())) else replaced

    def _new_key(self, key: Any, word: str, taken: Mapping[Any, Any]) -> Any:
        """Return a redacted key, with marks after it if that key is taken."""
        new_key: Any = self.replace_text(word, None)
        while new_key != key and new_key in taken:
            new_key += "'"
        return new_key


def _names_beside_a_value(values: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the names that a mapping has for a value in it."""
    texts = {str(key): value for key, value in values.items() if isinstance(value, str)}
    names = [text for key, text in texts.items() if key.lower() in NAMING]
    return tuple(str.__str__(name) for name in names if _A_NAME.fullmatch(name))


def _is_text_file(values: Mapping[Any, Any]) -> bool:
    for key in ("mime_type", "media_type"):
        mime_type = values.get(key)
        if isinstance(mime_type, str) and mime_type:
            return mime_type.startswith("text/") or mime_type.endswith(TEXT_TYPES)
    return False


def _is_simple(value: Any) -> bool:
    return value is None or isinstance(value, (str, int))


def _names_in(values: Sequence[Any], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the names of each part of a list: the list's own, and the command's option before it.

    For example in `["mysql", "--password", "..."]` or `["curl", "-u", "..."]`.
    """
    words = [value if isinstance(value, str) else "" for value in values]
    is_curl = any(word.rsplit("/", 1)[-1] == "curl" for word in words)
    names_of_each: list[tuple[str, ...]] = []
    previous_word = ""
    for word in words:
        is_option = _OPTION.fullmatch(previous_word) or (is_curl and previous_word == "-u")
        takes_value = is_option and not word.startswith("-")
        names_of_each.append((previous_word, *names) if takes_value else names)
        previous_word = word
    return names_of_each
