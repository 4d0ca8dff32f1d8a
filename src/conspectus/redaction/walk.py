"""Visit all texts of a message, and replace each of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages.message import too_deep

STRUCTURE = frozenset("id type role tool_call_id tool_use_id call_id index mime_type".split())
"""Structural keys of messages, blocks and calls; in data such as arguments they are redacted."""

MORE = "additional_kwargs"
FREE = {MORE, *"args arguments input artifact output result metadata response_metadata".split()}
"""Keys of data of any form."""

CALLS = ("tool_calls", "function_call")  # Keys of a provider's additions that are no free data

ENCODED = ("data", "base64", "file_data")
"""Keys of a block with a file in base64; a text file is redacted in it."""

NAMING = ("name", "key", "parameterkey", "parametername")
VALUED = ("value", "parametervalue")
"""Keys of a mapping with a name and a value, as tools that set variables take them: `{"name":
"DB_PASSWORD", "value": ...}`."""

_A_NAME = re.compile(r"[\w.:/-]{1,120}+(?: [\w.:/-]{1,40}+)?")  # A sentence is no name
_OPTION = re.compile(r"--[\w-]{1,120}+")
_PASSWORD_NUMBER = 1 << 256  # Larger integers are no passwords

Names = tuple[str, ...]
Put = Callable[[str, str | None], str]


def walk(value: Any, put: Put) -> Any:
    """Return a message or a text with each text replaced; the same object if nothing changed.

    `put` gets a text and its name, such as its key or the option of a command before it. A text
    with two names is put under each until it changes. Parts that are nested too deep to be kept
    are only described.
    """
    if not is_message(value):
        return _value(value, put)
    parts = {**vars(value), **(value.__pydantic_extra__ or {})}
    parts.pop("usage_metadata", None)
    made = _mapping(parts, put, (), False, ())
    update = {name: part for name, part in made.items() if part is not parts.get(name)}
    return value.model_copy(update=update) if update else value


def _value(
    value: Any, put: Put, names: Names = (), free: bool = False, inside: tuple[int, ...] = ()
) -> Any:
    """Return a value with its texts replaced; the same object if nothing changed.

    In data that is `free` in its form, keys are replaced too.
    """
    if isinstance(value, str):
        return _text(value, put, names)
    if isinstance(value, (bytes, bytearray)):
        return _bytes(value, put, names)
    if isinstance(value, (Mapping, list, tuple)):
        if (instead := too_deep(value, inside)) is not None:
            return f"[{instead}]"
        inside = (*inside, id(value))
        if isinstance(value, Mapping):
            return _mapping(value, put, names, free, inside)
        named = zip(value, _names_in(value, names), strict=True)
        parts = [_value(part, put, own, free, inside) for part, own in named]
        if all(map(is_, parts, value)):
            return value
        return tuple(parts) if isinstance(value, tuple) else parts
    if names and type(value) is int and abs(value) < _PASSWORD_NUMBER:
        made = _text(str(value), put, names)
        return value if made == str(value) else made  # a number can be a password
    return value  # no text, or an object of a program, of which only the type is archived


def _mapping(
    value: Mapping[Any, Any], put: Put, names: Names, free: bool, inside: tuple[int, ...]
) -> Any:
    texts = {str(key): part for key, part in value.items() if isinstance(part, str)}
    own = [part for key, part in texts.items() if key.lower() in NAMING]
    named = tuple(str.__str__(name) for name in own if _A_NAME.fullmatch(name))
    mime = texts.get("mime_type") or texts.get("media_type") or ""
    encoded = ENCODED if mime.startswith("text/") or mime.endswith(("json", "xml", "yaml")) else ()
    made: dict[Any, Any] = {}
    for key, part in value.items():
        text = key if isinstance(key, str) else ""
        new_key, under = key, named if named and text.lower() in VALUED else (text,) * bool(text)
        if free and text:
            new_key = put(str.__str__(key), None)
            while new_key != key and new_key in made:
                new_key += "'"
            under = names if "cookies" in map(str.lower, names) else under
        if not free and text in STRUCTURE and isinstance(part, (str, int, type(None))):
            made[new_key] = part
        elif not free and text in encoded and isinstance(part, str):
            made[new_key] = _encoded(part, put)
        else:
            inner = text in FREE or (free and not (text in CALLS and names == (MORE,)))
            made[new_key] = _value(part, put, under, inner, inside)
    same = all(map(is_, made.values(), value.values())) and made.keys() == value.keys()
    return value if same else made


def _names_in(values: Sequence[Any], names: Names) -> list[Names]:
    """Return the names of each part of a list: its own, or the command's option before it.

    For example in `["mysql", "--password", "..."]` or `["curl", "-u", "..."]`.
    """
    words = [value if isinstance(value, str) else "" for value in ("", *values)]
    curl = any(word.rsplit("/", 1)[-1] == "curl" for word in words)
    options = [_OPTION.fullmatch(word) or (curl and word == "-u") for word in words]
    return [
        (words[at], *names) if options[at] and words[at + 1][:1] != "-" else names
        for at in range(len(values))
    ]


def _text(value: str, put: Put, names: Names) -> str:
    for name in names or (None,):
        made = put(str.__str__(value), name)
        if made != value:
            return made
    return value


def _encoded(value: str, put: Put) -> str:
    try:
        raw = base64.b64decode(value, validate=True)
    except ValueError:
        return _text(value, put, ())
    made = _bytes(raw, put, ())
    return value if made is raw else base64.b64encode(made).decode()


def _bytes(value: Any, put: Put, names: Names) -> Any:
    """Redact bytes that are a text."""
    try:
        text = bytes(value).decode()
    except UnicodeDecodeError:
        return value
    made = _text(text, put, names)
    return value if made == text else type(value)(made.encode("utf-8", "surrogatepass"))
