"""Messages as JSON text, and back, equal to the originals.

Stores choke on bytes, on integers beyond 64 bits, on NUL and on lone surrogates, so an archived
message is one ASCII text of JSON. Values without a form in JSON are tagged; an object that has
none at all becomes a described placeholder, and `Encoded.lossless` says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_message
from conspectus.errors import MessageError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

TAG = "~conspectus"  # Key of a tagged value: `{"~conspectus": "bytes", "value": ...}`
LONG = 4096  # Bits above which an integer is written in hexadecimal

DEEPEST = 200
"""Levels of nesting that are kept; a description replaces deeper parts. JSON readers and writers
recurse, which Python limits to 1,000 calls, those of the agent around them included."""

_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")
_LEAVES = frozenset({str, float, bool, type(None)})
_KEYS = frozenset({str})
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class NoPlainData(Exception):
    """A value has a part that JSON has no form for, or is nested too deep."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message as ASCII JSON without its id; `form` is `langchain` or `dict`."""

    form: str
    text: str
    lossless: bool


def encode(message: BaseMessage | Mapping[str, Any], copy: dict[str, Any] | None = None) -> Encoded:
    """Write a message as JSON text, without its id, which is kept beside it.

    Keys are sorted, so that equal messages have equal text. `copy` is what `copied` has returned of
    its fields, if that is known.

    Example:
        >>> encode({"role": "user", "content": "hi", "id": "7"}).text
        '{"content":"hi","role":"user"}'
    """
    form, data, lossless = to_json(message, copy)
    return Encoded(form, _WRITER.encode(data), lossless)


def to_json(
    message: BaseMessage | Mapping[str, Any], copy: dict[str, Any] | None = None
) -> tuple[str, dict[str, Any], bool]:
    """Return a message's form, JSON data without its id, and whether nothing is lost."""
    fields: Any = message
    if is_message(message) and copy is None:
        fields = {**vars(message), **(message.__pydantic_extra__ or {})}
    data, lossless = (copy, True) if copy is not None else as_json(fields)
    if is_message(message):
        body = {key: part for key, part in data.items() if key != "id"}
        return "langchain", {"type": message.type, "data": body}, lossless
    # The id beside the message is a text, so an id of another type stays in it.
    body = {key: part for key, part in data.items() if key != "id" or type(part) is not str}
    return "dict", body, lossless


def copied(value: Any, levels: int = DEEPEST) -> Any:
    """Copy lists and dicts of plain JSON data; a `NoPlainData` for all other data.

    The copy has the same texts and numbers, so it takes little room, and `==` compares it with its
    original at some 50 ns a part.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    if levels and kind is dict and (not value or _KEYS.issuperset(map(type, value))):
        if TAG not in value:
            return {
                key: part if type(part) in _LEAVES else copied(part, levels - 1)
                for key, part in value.items()
            }
    elif levels and kind is list:
        return [copied(part, levels - 1) for part in value]
    elif kind is int and value.bit_length() <= LONG:  # Python reads no longer decimal number
        return value
    raise NoPlainData


def as_json(value: Any) -> tuple[Any, bool]:
    """Return a value in which all is JSON's or tagged, and whether nothing is lost."""
    try:
        return copied(value), True
    except NoPlainData:
        lost: list[Any] = []
        return _tagged(value, lost, ()), not lost


def _tagged(value: Any, lost: list[Any], inside: tuple[int, ...]) -> Any:
    """Return a value with tags; the parts around it are `inside`, what is lost goes to `lost`."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):  # with enumerations and the like
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= LONG else {TAG: "int", "value": hex(value)}
    kind = type(value)
    if kind in (bytes, bytearray):
        return {TAG: kind.__name__, "value": base64.b64encode(value).decode()}
    if (instead := too_deep(value, inside)) is None:
        plain = partial(_tagged, lost=lost, inside=(*inside, id(value)))
        if isinstance(value, (list, tuple)):
            parts = list(map(plain, value))
            return parts if isinstance(value, list) else {TAG: "tuple", "value": parts}
        if isinstance(value, Mapping):
            if TAG not in value and all(type(key) is str for key in value):
                return {key: plain(part) for key, part in value.items()}
            if value.keys() == {TAG, "value"} and value[TAG] == "placeholder":  # read back before
                return {TAG: "placeholder", "value": plain(value["value"])}
            pairs = [[plain(key), plain(part)] for key, part in value.items()]
            return {TAG: "pairs", "value": pairs}
        if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
            lost.append(kind)
            return plain(value.model_dump())
        instead = f"an object of {kind.__module__}.{kind.__qualname__} that has no JSON form"
    lost.append(kind)
    return {TAG: "placeholder", "value": instead}


def too_deep(value: Any, inside: tuple[int, ...]) -> str | None:
    """Say why a part is not kept inside the parts with these identities; None if it is."""
    if id(value) in inside:
        return "a part that holds itself"
    return f"a part nested more than {DEEPEST} levels deep" if len(inside) >= DEEPEST else None


def sendable(text: str) -> str:
    """Replace characters that JSON in UTF-8 or a store cannot carry: lone surrogates and NUL."""
    return _UNSENDABLE.sub("\ufffd", text)


def decode(form: str, text: str, message_id: str | None) -> BaseMessage | dict[str, Any]:
    """Read a message that `encode` wrote; another text is a `MessageError`."""
    try:
        data = _untagged(json.loads(text))
        if form == "langchain":
            from langchain_core.messages import messages_from_dict

            body = {**data["data"], "id": message_id}
            return messages_from_dict([{"type": data["type"], "data": body}])[0]
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"an archived message cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise MessageError(f"an archived message is {type(data).__name__}, not an object")
    return data if message_id is None or "id" in data else {**data, "id": message_id}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(part) for part in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _untagged(part) for key, part in value.items()}
    tag, inner = value[TAG], value["value"]
    if tag == "pairs":
        keys = [_untagged(key) for key, _ in inner]
        plain = [str(key.get("value")) if isinstance(key, dict) else key for key in keys]
        return dict(zip(plain, (_untagged(part) for _, part in inner), strict=True))
    if tag == "int":
        return int(inner, 16)
    if tag == "tuple":
        return tuple(_untagged(part) for part in inner)
    if tag in ("bytes", "bytearray"):
        raw = base64.b64decode(inner)
        return raw if tag == "bytes" else bytearray(raw)
    return value  # a placeholder stays a description
