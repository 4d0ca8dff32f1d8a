"""Messages as JSON text, and back, equal to the originals.

Stores choke on bytes, on integers beyond 64 bits, on NUL and on lone surrogates, so an archived
message is one ASCII text of JSON. Values without a form in JSON are tagged; an object that has
none at all becomes a described placeholder, and `Encoded.lossless` says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Encoded(NamedTuple):
    """A message as ASCII JSON without its id; `form` is `langchain` or `dict`."""

    form: str
    text: str
    lossless: bool


def encode(message: BaseMessage | Mapping[str, Any], copy: dict[str, Any] | None = None) -> Encoded:
    """Write a message as JSON text, without its id, which is kept beside it.

    Keys are sorted, so that equal messages have equal text. `copy` is what `tagged` has returned of
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
    data, lost = copy, list[type]()
    if data is None:
        fields: Any = message
        if is_message(message):
            fields = {**vars(message), **(message.__pydantic_extra__ or {})}
        data = tagged(fields, lost)
    if is_message(message):
        body = {key: part for key, part in data.items() if key != "id"}
        return "langchain", {"type": message.type, "data": body}, not lost
    # The id beside the message is a text, so an id of another type stays in it.
    body = {key: part for key, part in data.items() if key != "id" or type(part) is not str}
    return "dict", body, not lost


def tagged(value: Any, lost: list[type], inside: tuple[int, ...] = ()) -> Any:
    """Copy a value as JSON data; what has no form in it gets a tag, and is no longer equal.

    The copy has the same texts, so it takes little room. `inside` has the identities of the parts
    around it; the types of what is lost go to `lost`.
    """
    kind = type(value)
    if kind in _LEAVES or (kind is int and value.bit_length() <= LONG):
        return value
    if (kind is dict or kind is list) and not value:
        return kind()
    if isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):  # with enumerations and the like
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= LONG else {TAG: "int", "value": hex(value)}
    if isinstance(value, (bytes, bytearray)):
        return {TAG: "bytes", "value": base64.b64encode(value).decode()}
    if (instead := too_deep(value, inside)) is None:
        inside = (*inside, id(value))
        if isinstance(value, (list, tuple)):
            parts = [tagged(part, lost, inside) for part in value]
            return parts if isinstance(value, list) else {TAG: "tuple", "value": parts}
        if kind is dict or isinstance(value, Mapping):
            if TAG not in value and _KEYS.issuperset(map(type, value)):
                return {
                    key: part if type(part) in _LEAVES else tagged(part, lost, inside)
                    for key, part in value.items()
                }
            if value.keys() == {TAG, "value"} and value[TAG] == "placeholder":  # read back before
                return {TAG: "placeholder", "value": tagged(value["value"], lost, inside)}
            pairs = [[tagged(part, lost, inside) for part in pair] for pair in value.items()]
            return {TAG: "pairs", "value": pairs}
        if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
            lost.append(kind)
            return tagged(value.model_dump(), lost, inside)
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
        data = json.loads(text, object_hook=_untagged)
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"an archived message cannot be read: {error}") from error
    return restored(form, data, message_id)


def restored(form: str, data: Any, message_id: str | None) -> BaseMessage | dict[str, Any]:
    """Make a message of its data without tags, as of `to_json`; `MessageError` if it is none."""
    try:
        if form == "langchain":
            from langchain_core.messages import messages_from_dict

            body = {**data["data"], "id": message_id}
            return messages_from_dict([{"type": data["type"], "data": body}])[0]
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"an archived message cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise MessageError(f"an archived message is {type(data).__name__}, not an object")
    return data if message_id is None or "id" in data else {**data, "id": message_id}


def _pairs(pairs: list[list[Any]]) -> dict[Any, Any]:
    """Read a mapping; a key that has become a placeholder is its description."""
    return {key["value"] if isinstance(key, dict) else key: part for key, part in pairs}


_READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "int": lambda value: int(value, 16),
    "pairs": _pairs,
    "tuple": tuple,
}


def _untagged(value: dict[str, Any]) -> Any:
    reader = _READERS.get(value.get(TAG, ""))  # a placeholder stays a description
    return reader(value["value"]) if reader else value
