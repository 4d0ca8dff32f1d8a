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

FREE = frozenset("args arguments input artifact output result metadata response_metadata".split())
"""Keys of data of any form."""

CALLS = ("tool_calls", "function_call")  # Keys of a provider's additions that are no free data

ENCODED = ("data", "base64", "file_data")
"""Keys of a block with a file in base64; a text file is redacted in it."""

NAMING = ("name", "key", "parameterkey", "parametername")
VALUED = ("value", "parametervalue")
"""Keys of a mapping with a name and a value, as tools that set variables take them: `{"name":
"DB_PASSWORD", "value": ...}`."""

_A_NAME = re.compile(r"[\w.:/-]{1,120}+(?: [\w.:/-]{1,40}+)?")
"""One word or two. A sentence about a password is no name of one."""

_OPTION = re.compile(r"--[\w-]{1,120}+")
_PASSWORD_NUMBER = 1 << 256  # Larger integers are no passwords

Names = tuple[str, ...]
Put = Callable[[str, str | None], str]


def walk(message: Any, put: Put) -> Any:
    """Return the message with each text replaced; the same object if nothing changed.

    `put` gets a text and its name, such as its key or the option of a command before it. A text
    with two names is put under each until it changes. Parts that are nested too deep to be kept
    are only described.
    """
    if not is_message(message):
        return _mapping(message, put, False)
    parts = {**vars(message), **(message.__pydantic_extra__ or {})}
    parts.pop("usage_metadata", None)
    made = _mapping(parts, put, False)
    update = {name: part for name, part in made.items() if part is not parts.get(name)}
    return message.model_copy(update=update) if update else message


def _value(value: Any, put: Put, names: Names, free: bool, inside: tuple[int, ...]) -> Any:
    """Return a value with its texts replaced; the same object if nothing changed.

    In data that is `free` in its form, keys are replaced too, and lists may be commands.
    """
    if isinstance(value, str):
        return _text(value, put, names)
    if isinstance(value, (Mapping, list, tuple)):
        if (instead := too_deep(value, inside)) is not None:
            return f"[{instead}]"
        inside = (*inside, id(value))
        if isinstance(value, Mapping):
            return _mapping(value, put, free, names, inside)
        under = _names_in(value, names) if free else [()] * len(value)
        parts = [_value(v, put, n, free, inside) for v, n in zip(value, under, strict=True)]
        if all(map(is_, parts, value)):
            return value
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, (bytes, bytearray)):
        return _bytes(value, put, names)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _PASSWORD_NUMBER:
        made = _text(str(value), put, names) if names else str(value)
        return value if made == str(value) else made  # a number can be a password
    return value  # no text, or an object of a program, of which only the type is archived


def _text(value: str, put: Put, names: Names) -> str:
    for name in names or (None,):
        made = put(str.__str__(value), name)
        if made != value:
            return made
    return value


def _names_in(values: Sequence[Any], names: Names) -> list[Names]:
    """Return the names of each part of a list: its own, or the command's option before it.

    For example in `["mysql", "--password", "..."]` or `["curl", "-u", "..."]`.
    """
    curl = any(isinstance(value, str) and value.rsplit("/", 1)[-1] == "curl" for value in values)
    result = [names] * len(values)
    for number, option in enumerate(values[:-1], 1):
        value = values[number]
        if not isinstance(option, str) or not isinstance(value, str) or value[:1] == "-":
            continue
        if _OPTION.fullmatch(option) or (curl and option == "-u"):
            result[number] = (option, *names)
    return result


def _mapping(
    value: Mapping[Any, Any],
    put: Put,
    free: bool,
    names: Names = (),
    inside: tuple[int, ...] = (),
) -> Any:
    texts = {key: part for key, part in value.items() if isinstance(part, str)}
    named = tuple(
        str.__str__(part)
        for key, part in texts.items()
        if isinstance(key, str) and key.lower() in NAMING and _A_NAME.fullmatch(part)
    )
    mime = str(texts.get("mime_type") or texts.get("media_type") or "")
    text_file = mime.startswith("text/") or mime.endswith(("json", "xml", "yaml"))
    under: Names
    made: dict[Any, Any] = {}
    for key, part in value.items():
        text = key if isinstance(key, str) else ""
        new_key, under = key, named if named and text.lower() in VALUED else (text,) * bool(text)
        if text and free:
            new_key = put(str.__str__(key), None)
            while new_key != key and new_key in made:
                new_key += "'"
            under = names if "cookies" in map(str.lower, names) else under
        if not free and text in STRUCTURE and isinstance(part, (str, int, type(None))):
            made[new_key] = part
        elif not free and text_file and text in ENCODED and isinstance(part, str):
            made[new_key] = _encoded(part, put)
        elif not free and text == "additional_kwargs" and isinstance(part, Mapping):
            inner = {k: _value(v, put, (k,), k not in CALLS, inside) for k, v in part.items()}
            made[new_key] = part if all(map(is_, inner.values(), part.values())) else inner
        else:
            made[new_key] = _value(part, put, under, free or text in FREE, inside)
    same = all(map(is_, made.values(), value.values())) and made.keys() == value.keys()
    return value if same else made


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
