"""Visit all texts of a message, and replace each of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import is_
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages.codec import not_too_deep
from conspectus.redaction.names import named_kind

STRUCTURE = frozenset("id type role tool_call_id tool_use_id call_id index mime_type".split())
"""Structural keys of messages, blocks and calls; in data such as arguments they are redacted."""

FREE = frozenset("args arguments input artifact output result metadata response_metadata".split())
"""Keys of data of any form."""

ENCODED = ("data", "base64", "file_data")
"""Keys of a block with a file in base64; a text file is redacted in it."""

NAMING = ("name", "key", "parameterkey", "parametername")
VALUED = ("value", "parametervalue")
"""Keys of a mapping with a name and a value, as tools that set variables take them: `{"name":
"DB_PASSWORD", "value": ...}`."""

_A_NAME = re.compile(r"[\w.:/-]{1,120}+(?: [\w.:/-]{1,40}+)?")
"""One word or two. A sentence about a password is no name of one."""

Put = Callable[[str, str | None], str]
Leaf = tuple[str, str | None]  # A text and its name, such as its key


def leaves(message: Any) -> list[Leaf]:
    """Return all texts of a message, each with its name."""
    found: list[Leaf] = []
    walk(message, lambda text, key: found.append((text, key)) or text)  # type: ignore[func-returns-value]
    return found


def walk(message: Any, put: Put) -> Any:
    """Return the message with each text replaced; the same object if nothing changed.

    Parts that are nested too deep to be kept are only described.
    """
    if not is_message(message):
        return _mapping(not_too_deep(message), put, False)
    parts = {**vars(message), **(message.__pydantic_extra__ or {})}
    parts.pop("usage_metadata", None)
    made = _mapping(not_too_deep(parts), put, False)
    update = {name: part for name, part in made.items() if part is not parts.get(name)}
    return message.model_copy(update=update) if update else message


def _value(value: Any, put: Put, key: str | None, free: bool) -> Any:
    """Return a value with its texts replaced; the same object if nothing changed.

    In data that is `free` in its form, keys are replaced too, and lists may be commands.
    """
    if isinstance(value, str):
        made = put(str.__str__(value), key)
        return made if made != value else value
    if isinstance(value, int) and not isinstance(value, bool):
        if key is None or value.bit_length() >= 256:
            return value
        made = put(str(value), key)  # a number can be a password, under such a name
        return made if made != str(value) else value
    if isinstance(value, Mapping):
        return _mapping(value, put, free, key)
    if isinstance(value, (list, tuple)):
        keys = _keys(value, key) if free else [None] * len(value)
        parts = [_value(part, put, k, free) for part, k in zip(value, keys, strict=True)]
        if all(map(is_, parts, value)):
            return value
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, (bytes, bytearray)):
        made_bytes = _bytes(bytes(value), put, key)
        return value if made_bytes is None else type(value)(made_bytes)
    return value  # no text, or an object of a program, of which only the type is archived


def _keys(values: Sequence[Any], key: str | None) -> list[str | None]:
    """Return the name of each part of a list: its own, or the command's option before it.

    For example in `["mysql", "--password", "..."]` or `["curl", "-u", "..."]`.
    """
    keys: list[str | None] = [key] * len(values)
    curl = any(isinstance(value, str) and value.rsplit("/", 1)[-1] == "curl" for value in values)
    for number, (option, value) in enumerate(pairwise(values), 1):
        if not isinstance(option, str) or not isinstance(value, str) or value[:1] == "-":
            continue
        long = option.startswith("--") and _A_NAME.fullmatch(option) and named_kind(option)
        if long or (curl and option in ("-u", "--user")):
            keys[number] = option
    return keys


def _mapping(value: Mapping[Any, Any], put: Put, free: bool, key: str | None = None) -> Any:
    made: dict[Any, Any] = {}
    named = _given_name(value)
    mime = str(value.get("mime_type") or value.get("media_type") or "") if not free else ""
    for name, part in value.items():
        new_name, under = name, name if isinstance(name, str) else None
        if under is not None and free:
            new_name = put(str.__str__(name), None)
            while new_name != name and new_name in made:
                new_name += "'"
        if not free and name in STRUCTURE and isinstance(part, (str, int, type(None))):
            new_part = part
        elif name in ENCODED and isinstance(part, str) and _is_text(mime):
            new_part = _encoded(part, put)
        elif name == "additional_kwargs" and not free and isinstance(part, Mapping):
            new_part = _kwargs(part, put)
        else:
            if named is not None and under is not None and under.lower() in VALUED:
                under = named
            if free and key is not None and key.lower() == "cookies":
                under = key
            new_part = _value(part, put, under, free or name in FREE)
        made[new_name] = new_part
    same = all(map(is_, made.values(), value.values())) and made.keys() == value.keys()
    return value if same else made


def _given_name(value: Mapping[Any, Any]) -> str | None:
    """Return the name beside a value in a mapping; of two, the name of a secret."""
    names = [
        str.__str__(part)
        for key, part in value.items()
        if isinstance(key, str) and isinstance(part, str) and key.lower() in NAMING
    ]
    names = [name for name in names if _A_NAME.fullmatch(name)]
    return next(filter(named_kind, names), names[0] if names else None)


def _kwargs(value: Mapping[Any, Any], put: Put) -> Any:
    """Redact a provider's additions to a message: data, and calls, whose ids stay."""
    calls = {k: v for k, v in value.items() if k in ("tool_calls", "function_call")}
    rest = {k: v for k, v in value.items() if k not in calls}
    made = [_mapping(calls, put, False), _mapping(rest, put, True)]
    return value if made[0] is calls and made[1] is rest else {**made[0], **made[1]}


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime.split("/")[-1] in ("json", "xml", "yaml", "x-yaml")


def _encoded(value: str, put: Put) -> str:
    try:
        raw = base64.b64decode(value, validate=True)
    except ValueError:
        made = put(value, None)
        return made if made != value else value
    made_bytes = _bytes(raw, put, None)
    return value if made_bytes is None else base64.b64encode(made_bytes).decode()


def _bytes(value: bytes, put: Put, key: str | None) -> bytes | None:
    """Redact bytes that are a text; None if nothing changes."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    made = put(text, key)
    return made.encode("utf-8", "surrogatepass") if made != text else None
