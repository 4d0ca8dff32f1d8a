"""Messages as JSON text, and back, equal to the originals.

Stores choke on bytes, on integers beyond 64 bits, on NUL and on lone surrogates, so an archived
message is one ASCII text of JSON. Values without a form in JSON are tagged; an artifact that has
none at all becomes a described placeholder, and `Encoded.lossless` says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_message
from conspectus.errors import MessageError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

TAG = "~conspectus"  # Key of a tagged value: `{"~conspectus": "bytes", "value": ...}`
_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")
LONG = 4096  # Bits above which an integer is written in hexadecimal

DEEPEST = 200
"""Levels of nesting that are kept; a description replaces deeper parts. JSON readers and writers
recurse, which Python limits to 1,000 calls, those of the agent around them included."""

_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class NoPlainData(Exception):
    """A value has a part that JSON has no form for, or is nested too deep."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message as ASCII JSON without its id; `form` is `langchain` or `dict`."""

    form: str
    text: str
    lossless: bool


def encode(message: BaseMessage | Mapping[str, Any]) -> Encoded:
    """Write a message as JSON text, without its id, which is kept beside it.

    Keys are sorted, so that equal messages have equal text.

    Example:
        >>> encode({"role": "user", "content": "hi", "id": "7"}).text
        '{"content":"hi","role":"user"}'
    """
    form, data, lossless = to_json(message)
    return Encoded(form, _WRITER.encode(data), lossless)


def copied(value: Any, levels: int = DEEPEST) -> Any:
    """Copy lists and dicts of plain JSON data; a `NoPlainData` for all other data.

    The copy has the same texts and numbers, so it takes little room, and `==` compares it with its
    original at some 50 ns a part.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is float:
        return value
    if levels and kind is list:
        return [copied(part, levels - 1) for part in value]
    if levels and kind is dict and TAG not in value and all(type(key) is str for key in value):
        return {key: copied(part, levels - 1) for key, part in value.items()}
    if kind is int and value.bit_length() <= LONG:  # Python reads no longer decimal number
        return value
    raise NoPlainData


def encode_copy(copy: dict[str, Any], kind: str) -> str:
    """Write what `copied` returned of a dict, or of the fields of a LangChain message of a kind.

    The text is that of `encode`. `kind` is empty for a dict.
    """
    body = {key: part for key, part in copy.items() if key != "id" or type(part) is not str}
    if kind:
        body.pop("id", None)
        body = {"type": kind, "data": body}
    return _WRITER.encode(body)


def to_json(message: BaseMessage | Mapping[str, Any]) -> tuple[str, dict[str, Any], bool]:
    """Return a message's form, JSON data without its id, and whether nothing is lost."""
    if is_message(message):
        from langchain_core.messages.base import message_to_dict

        # pydantic would dump a model inside an artifact to a dict, and not back, and give up where
        # an artifact is nested deep or holds itself.
        artifact = getattr(message, "artifact", None)
        bare = message if artifact is None else message.model_copy(update={"artifact": None})
        dumped = message_to_dict(bare)
        data = {key: part for key, part in dumped["data"].items() if key != "id"}
        if artifact is not None:
            data["artifact"] = artifact
        body, lossless = _tagged(data)
        return "langchain", {"type": dumped["type"], "data": body}, lossless
    # The id beside the message is a text, so an id of another type stays in it.
    return "dict", *_tagged({k: v for k, v in message.items() if k != "id" or type(v) is not str})


def _tagged(data: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return data in which all is JSON's or tagged, and whether nothing is lost."""
    kept = not_too_deep(data)
    lossless = kept is data

    def plain(value: Any) -> Any:
        nonlocal lossless
        kind = type(value)
        if kind is str or kind is float or kind is bool or value is None:
            return value
        if kind is int:
            return value if value.bit_length() <= LONG else {TAG: "int", "value": hex(value)}
        if kind is dict:
            if value.keys() == {TAG, "value"} and value[TAG] == "placeholder":
                return {TAG: "placeholder", "value": plain(value["value"])}  # read back before
            if TAG in value or not all(type(key) is str for key in value):
                pairs = [[plain(key), plain(part)] for key, part in value.items()]
                return {TAG: "pairs", "value": pairs}
            return {key: plain(part) for key, part in value.items()}
        if kind is list:
            return [plain(part) for part in value]
        if kind is tuple:
            return {TAG: "tuple", "value": [plain(part) for part in value]}
        if kind is bytes or kind is bytearray:
            return {TAG: kind.__name__, "value": base64.b64encode(value).decode()}
        if isinstance(value, str):  # enumerations and the like that are strings
            return str.__str__(value)
        lossless = False
        name = f"{kind.__module__}.{kind.__qualname__}"
        return _described(f"an object of {name} that has no JSON form")

    made: dict[str, Any] = plain(kept)
    return made, lossless


def not_too_deep(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Describe parts that are nested too deep or contain themselves.

    The same value comes back if there are none.
    """
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) in inside:
        return _described("a part that holds itself")
    if len(inside) == DEEPEST:
        return _described(f"a part nested more than {DEEPEST} levels deep")
    around = (*inside, id(value))
    old = list(value.values() if isinstance(value, dict) else value)
    new = [not_too_deep(part, around) for part in old]
    if all(map(is_, old, new)):
        return value
    if isinstance(value, dict):
        return dict(zip(value, new, strict=True))
    return tuple(new) if isinstance(value, tuple) else new


def sendable(text: str) -> str:
    """Replace characters that JSON in UTF-8 or a store cannot carry: lone surrogates and NUL."""
    return _UNSENDABLE.sub("\ufffd", text)


def _described(what: str) -> dict[str, str]:
    return {TAG: "placeholder", "value": what}


def decode(form: str, text: str, message_id: str | None) -> BaseMessage | dict[str, Any]:
    """Read a message that `encode` wrote; another text is a `MessageError`."""
    try:
        data = _untag(json.loads(text))
        if form == "langchain":
            from langchain_core.messages import messages_from_dict

            body = {**data["data"], "id": message_id}
            return messages_from_dict([{"type": data["type"], "data": body}])[0]
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"an archived message cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise MessageError(f"an archived message is {type(data).__name__}, not an object")
    return data if message_id is None or "id" in data else {**data, "id": message_id}


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(part) for part in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _untag(part) for key, part in value.items()}
    tag, inner = value[TAG], value["value"]
    if tag == "pairs":
        return {_key(_untag(key)): _untag(part) for key, part in inner}
    if tag == "int":
        return int(inner, 16)
    if tag == "tuple":
        return tuple(_untag(part) for part in inner)
    if tag in ("bytes", "bytearray"):
        raw = base64.b64decode(inner)
        return raw if tag == "bytes" else bytearray(raw)
    return value  # a placeholder stays a description


def _key(value: Any) -> Any:
    return str(value.get("value")) if isinstance(value, dict) else value
